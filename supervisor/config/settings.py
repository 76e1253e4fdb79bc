"""hermes.toml -> Settings: every key has a default; each fault is reported with its line and a hint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from ipc.cpus import seats_for
from ipc.messages import AgentSpec, BusyMode
from supervisor.config import mcp_settings
from supervisor.config.agent_settings import (
    Agent,
    options_of,
    refuse_useless_entries,
    refuse_useless_graces,
    refuse_useless_homes,
)
from supervisor.config.budget_settings import Budget, refuse_unknown_scopes
from supervisor.config.fields import (
    AFTER_RESTART,
    DATABASE,
    DURATION,
    NEW_SERVICE,
    NEW_WORKERS,
    POSITIVE,
    SIZE,
    SWITCH,
    TEXT,
    URL,
    VARIABLE,
    at_least,
    has_password,
    key,
    maybe,
    one_of,
    whole,
)
from supervisor.config.gateway_settings import Gateway, refuse_open_doors
from supervisor.config.host_settings import LABELS, Hosts
from supervisor.config.mcp_settings import McpServer
from supervisor.config.model_settings import (
    DEFAULT_MODEL,
    Embedded,
    Model,
    models_of,
    refuse_incomplete_models,
    refuse_unknown_models,
)
from supervisor.config.rule_settings import refuse_useless_rules
from supervisor.config.sandbox_settings import Sandbox, refuse_useless_paths
from supervisor.config.toml_file import SettingsFile

CellChoice = Literal["auto", "pidns", "cgroup", "sweep"]
Resume = Literal["auto", "ask", "never"]
SttEngine = Literal["faster-whisper", "openai", "off"]
SttFallback = Literal["faster-whisper", "openai"]
LogFormat = Literal["logfmt", "json"]

_KEY_REFUSED = "holds a secret, which does not belong in this file"
_KEY_REMEDY = 'remove it, and write api_key_env = "OPENAI_API_KEY" or api_key_file = "/path/to/key" instead'


@dataclass(frozen=True)
class Workers:
    """[workers]: their number and their limits."""

    per_cpu: float = key("per_cpu", POSITIVE, 2)
    count: int | None = key("count", maybe(whole(1, 10_000)))
    spares: int = key("spares", whole(0, 1000), 1)
    memory_bytes_max: int = key("memory_max", SIZE, "1GiB", NEW_WORKERS)
    processes_max: int = key("processes_max", whole(1), 256, NEW_WORKERS)
    files_max: int = key("files_max", whole(64), 4096, NEW_WORKERS)
    turns_max: int = key("turns_max", whole(1), 200)
    # Workers are asked once a second; fewer than three missed answers are no proof.
    pulse_seconds: float = key("pulse", at_least(3), "15s")
    memory_free_bytes_min: int = key("memory_free_min", SIZE, "256MiB")
    memory_pressure_max: int | None = key("memory_pressure_max", maybe(whole(1, 100)), 50)
    io_pressure_max: int | None = key("io_pressure_max", maybe(whole(1, 100)))
    cpu_pressure_max: int | None = key("cpu_pressure_max", maybe(whole(1, 100)))
    cell: CellChoice = key("cell", one_of(CellChoice), "auto", AFTER_RESTART)

    @property
    def seats(self) -> int:
        """Return the busy seats: the count, or a number per CPU that this process may use; at least one."""
        return self.count or seats_for(self.per_cpu)


@dataclass(frozen=True)
class Turns:
    """[turns]: the effect of a message on a running turn, and the limits of time and attempts."""

    busy: BusyMode = key("busy", one_of(BusyMode), "interrupt")
    attempts_max: int = key("attempts_max", whole(1, 100), 3)
    resume: Resume = key("resume", one_of(Resume), "auto")
    freshness_seconds: float = key("freshness", DURATION, "1h")
    deadline_seconds: float = key("deadline", DURATION, "30m")
    silence_seconds: float = key("silence", DURATION, "5m")
    outage_seconds_max: float = key("outage_max", DURATION, "1h")
    hold_seconds: float = key("hold", DURATION, "2m")
    waiting_max: int = key("waiting_max", whole(1), 1000)
    queue_max: int = key("queue_max", whole(1), 10_000)
    drain_seconds: float = key("drain", DURATION, "30s")


@dataclass(frozen=True)
class Stt:
    """[stt]: how a clip becomes a transcript."""

    engine: SttEngine = key("engine", one_of(SttEngine), "faster-whisper", NEW_SERVICE)
    model: str = key("model", TEXT, "tiny.en", NEW_SERVICE)
    deadline_seconds: float = key("deadline", DURATION, "60s")
    echo: bool = key("echo", SWITCH, True)
    language: str | None = key("language", maybe(TEXT), applies=NEW_SERVICE)
    prompt: str | None = key("prompt", maybe(TEXT), applies=NEW_SERVICE)
    hotwords: str | None = key("hotwords", maybe(TEXT), applies=NEW_SERVICE)
    idle_seconds: float | None = key("idle", maybe(DURATION), applies=NEW_SERVICE)
    fallback: SttFallback | None = key("fallback", maybe(one_of(SttFallback)), applies=NEW_SERVICE)
    base_url: str | None = key("base_url", maybe(URL), applies=NEW_SERVICE)
    remote_model: str = key("remote_model", TEXT, "whisper-1", NEW_SERVICE)
    api_key_env: str | None = key("api_key_env", maybe(VARIABLE), applies=NEW_SERVICE)
    api_key_file: str | None = key("api_key_file", maybe(TEXT), applies=NEW_SERVICE)
    clips_seconds: float = key("clips_keep", DURATION, "7d")
    clips_bytes_max: int = key("clips_max", SIZE, "1GiB")


@dataclass(frozen=True)
class Keeping:
    """[journal]: where it is, and how much of the past is kept. Open work is always kept."""

    url: str | None = key("url", maybe(DATABASE), applies=AFTER_RESTART)
    password_file: str | None = key("password_file", maybe(TEXT), applies=AFTER_RESTART)
    keep_seconds: float = key("keep", DURATION, "90d")
    bytes_max: int = key("size_max", SIZE, "4GiB")


@dataclass(frozen=True)
class Logging:
    """[log]: the format of the supervisor's own log."""

    format: LogFormat = key("format", one_of(LogFormat), "logfmt")


@dataclass(frozen=True)
class Override:
    """[sessions."PATTERN"]: overrides for the sessions whose name matches."""

    agent: str | None = key("agent", maybe(TEXT))
    busy: BusyMode | None = key("busy", maybe(one_of(BusyMode)))
    instructions: str | None = key("instructions", maybe(TEXT))
    labels: tuple[str, ...] = key("labels", LABELS, [])


@dataclass(frozen=True)
class SessionSettings:
    """The settings of one session after its overrides."""

    agent: str
    busy: BusyMode
    instructions: str = ""
    labels: tuple[str, ...] = ()  # those that a host must have to run its turns


@dataclass(frozen=True)
class Settings:
    """All of hermes.toml, read and checked. Holds no secret: keys are fetched by `model_endpoint`."""

    model: Model | None = None
    models: Mapping[str, Model] = field(default_factory=dict)
    embedded: Embedded = field(default_factory=Embedded)
    workers: Workers = Workers()
    turns: Turns = Turns()
    stt: Stt = Stt()
    gateway: Gateway = field(default_factory=Gateway)
    journal: Keeping = Keeping()
    hosts: Hosts = field(default_factory=Hosts)
    log: Logging = Logging()
    sandbox: Sandbox = Sandbox()
    agents: Mapping[str, Agent] = field(default_factory=lambda: {"default": Agent()})
    sessions: Mapping[str, Override] = field(default_factory=dict)
    mcp: Mapping[str, McpServer] = field(default_factory=dict)
    mcp_file: str | None = None
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    file: Path | None = None

    def for_session(self, name: str) -> SessionSettings:
        """Return the override with exactly this name, else the first matching pattern in the file's order."""
        override = self.sessions.get(name)
        if override is None:
            matching = (found for pattern, found in self.sessions.items() if fnmatchcase(name, pattern))
            override = next(matching, Override())
        busy = override.busy or self.turns.busy
        instructions = override.instructions or ""
        return SessionSettings(override.agent or "default", busy, instructions, override.labels)

    def agent(self, name: str, session: str = "", instructions: str = "") -> AgentSpec | None:
        """Return the agent as workers receive it for a turn; None when hermes.toml has no such agent.

        The instructions of the session follow those of the agent, and `instructions`, those of the turn,
        follow both.
        """
        found = self.agents.get(name)
        if found is None:
            return None
        level = self.sandbox_of(name).level
        added = self.for_session(session).instructions, instructions
        options = options_of(found, self.file, added, level)
        if not self._calls_tools(found):
            del options["tools"]
        return AgentSpec(name, options.pop("kind"), options)

    def _calls_tools(self, agent: Agent) -> bool:
        is_embedded = self.model is None and set(models_of(agent)) == {DEFAULT_MODEL}
        return not is_embedded or self.embedded.calls_tools

    def servers_of(self, agent: str) -> dict[str, McpServer]:
        """Return the MCP servers of this agent: all, unless it names some; none where no tool is called."""
        found = self.agents.get(agent)
        if found is None or found.kind != "builtin" or not self._calls_tools(found):
            return {}
        return {name: each for name, each in self.mcp.items() if found.mcp is None or name in found.mcp}

    def sandbox_of(self, agent: str) -> Sandbox:
        """Return the sandbox of the agent of that name; [sandbox] alone when there is no such agent."""
        found = self.agents.get(agent)
        return found.sandbox.over(self.sandbox) if found is not None else self.sandbox


DEFAULTS = Settings()
TABLES: dict[str, type[Any]] = {
    "model": Model,
    "workers": Workers,
    "turns": Turns,
    "stt": Stt,
    "gateway": Gateway,
    "journal": Keeping,
    "hosts": Hosts,
    "log": Logging,
    "sandbox": Sandbox,
    "models": Model,
    "embedded": Embedded,
    "agents": Agent,
    "sessions": Override,
    "mcp": McpServer,
    "budgets": Budget,
}
# Tables of tables: [models.NAME], [agents.NAME], [sessions."PATTERN"], [mcp.NAME] and [budgets.SCOPE].
NAMED = ("models", "agents", "sessions", "mcp", "budgets")


def load(path: Path) -> Settings:
    """Return the settings in the file; the defaults where there is none. SettingsError has fault and hint."""
    source = SettingsFile.open(path)
    source.refuse_unknown_tables((*TABLES, "mcp_file"))
    _refuse_contradictions(source)
    found: dict[str, Any] = {"file": source.path}
    for name, table in TABLES.items():
        if name in source.data:
            found[name] = source.read_named(name, table) if name in NAMED else source.read(table, name)
    found["mcp"], found["mcp_file"] = mcp_settings.all_servers(source, found.get("mcp", {}))
    found["agents"] = {"default": Agent()} | found.get("agents", {})
    _refuse_strangers(source, found["agents"], found.get("sessions", {}))
    refuse_unknown_models(source, found["agents"], found.get("models", {}))
    mcp_settings.refuse_strangers(source, found["agents"], found["mcp"])
    refuse_useless_entries(source, found["agents"])
    refuse_useless_rules(source, found["agents"], found["mcp"])
    refuse_unknown_scopes(source, found.get("budgets", {}))
    refuse_useless_homes(source, found["agents"])
    refuse_open_doors(source, found.get("gateway", Gateway()))
    refuse_useless_graces(source, found["agents"])
    _refuse_unknown_languages(source, found.get("stt", Stt()))
    own = {name: agent.sandbox for name, agent in found["agents"].items()}
    refuse_useless_paths(source, found.get("sandbox", Sandbox()), own)
    return Settings(**found)


def _refuse_contradictions(source: SettingsFile) -> None:
    """Refuse faults that no single key shows: keys that exclude each other, misplaced and missing ones."""
    models = source.data.get("models")
    named = [("models", name) for name in models] if isinstance(models, dict) else []
    with_keys: list[tuple[str, ...]] = [("model",), ("stt",), *named]
    for table in with_keys:
        if source.has(*table, "api_key"):
            raise source.error((*table, "api_key"), _KEY_REFUSED, _KEY_REMEDY)
    choices = [((*table, "api_key_env"), "api_key_file") for table in with_keys]
    for first, second in [(("workers", "per_cpu"), "count"), *choices]:
        if source.has(*first) and source.has(*first[:-1], second):
            raise source.error(first, f"and {second} are both given", "keep one of the two")
    stt = source.data.get("stt")
    if (
        isinstance(stt, dict)
        and "openai" in (stt.get("engine"), stt.get("fallback"))
        and "base_url" not in stt
    ):
        raise source.error(
            ("stt",), "asks a server and has no base_url", 'add base_url = "http://127.0.0.1:8000/v1"'
        )
    journal = source.data.get("journal")
    if isinstance(journal, dict) and has_password(journal.get("url")):
        hint = "write it into a file that only this user can read, and name that by password_file"
        raise source.error(("journal", "url"), "contains a password", hint)
    if source.has("journal", "password_file") and not source.has("journal", "url"):
        hint = 'add url = "postgresql://host/database", or remove password_file'
        raise source.error(("journal", "password_file"), "is given without url", hint)
    refuse_incomplete_models(source)


def _refuse_strangers(
    source: SettingsFile, agents: Mapping[str, Agent], sessions: Mapping[str, Override]
) -> None:
    for pattern, override in sessions.items():
        if override.agent is not None and override.agent not in agents:
            known = ", ".join(f'"{name}"' for name in agents)
            raise source.error(
                ("sessions", pattern, "agent"),
                f'= "{override.agent}" names an agent that does not exist',
                f"use one of {known}, or add a table [agents.{override.agent}]",
            )


def _refuse_unknown_languages(source: SettingsFile, stt: Stt) -> None:
    """Whisper weights for English alone end in `.en`."""
    is_heard_here = "faster-whisper" in (stt.engine, stt.fallback)
    if is_heard_here and stt.model.endswith(".en") and stt.language not in (None, "en"):
        raise source.error(
            ("stt", "language"),
            f'= "{stt.language}" is no language of {stt.model}, which knows English only',
            'set model = "base" and run `hermesctl models pull base`, or remove language',
        )
