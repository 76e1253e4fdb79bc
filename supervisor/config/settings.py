"""hermes.toml -> Settings: every key has a default; each fault is reported with its line and a hint."""

import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from ipc.cpus import seats_for
from ipc.messages import AgentSpec, BusyMode, ModelEndpoint
from supervisor.config.agent_settings import Agent, refuse_kinds_to_come
from supervisor.config.fields import (
    AFTER_RESTART,
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
    key,
    maybe,
    one_of,
    whole,
)
from supervisor.config.key_remedies import missing_variable
from supervisor.config.model_settings import (
    DEFAULT_MODEL,
    EMBEDDED,
    Model,
    models_of,
    refuse_incomplete_models,
    refuse_unknown_models,
)
from supervisor.config.sandbox_settings import Sandbox, refuse_useless_paths
from supervisor.config.toml_file import SettingsError, SettingsFile

CellChoice = Literal["auto", "pidns", "cgroup", "sweep"]
Resume = Literal["auto", "ask", "never"]
SttEngine = Literal["faster-whisper", "openai", "off"]
SttFallback = Literal["faster-whisper", "openai"]
LogFormat = Literal["logfmt", "json"]

# A key is one line of text; a larger file was named by mistake.
_KEY_BYTES_MAX = 16 * 1024
# The folder in which systemd puts the files of LoadCredential=.
_CREDENTIALS = "CREDENTIALS_DIRECTORY"
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
    """[journal]: how much of the past is kept. Open work is always kept."""

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


@dataclass(frozen=True)
class SessionSettings:
    """The settings of one session after its overrides."""

    agent: str
    busy: BusyMode


@dataclass(frozen=True)
class Settings:
    """All of hermes.toml, read and checked. Holds no secret: keys are fetched by `model_endpoint`."""

    model: Model | None = None
    models: Mapping[str, Model] = field(default_factory=dict)
    workers: Workers = Workers()
    turns: Turns = Turns()
    stt: Stt = Stt()
    journal: Keeping = Keeping()
    log: Logging = Logging()
    sandbox: Sandbox = Sandbox()
    agents: Mapping[str, Agent] = field(default_factory=lambda: {"default": Agent()})
    sessions: Mapping[str, Override] = field(default_factory=dict)
    file: Path | None = None

    def for_session(self, name: str) -> SessionSettings:
        """Return the override with exactly this name, else the first matching pattern in the file's order."""
        override = self.sessions.get(name)
        if override is None:
            matching = (found for pattern, found in self.sessions.items() if fnmatchcase(name, pattern))
            override = next(matching, Override())
        return SessionSettings(override.agent or "default", override.busy or self.turns.busy)

    def agent(self, name: str) -> AgentSpec | None:
        """Return the agent as workers receive it; None when hermes.toml has no such agent."""
        found = self.agents.get(name)
        if found is None:
            return None
        options = {option: value for option, value in asdict(found).items() if value is not None}
        # For the cell and the runtime only; endpoints and secrets travel beside it.
        for option in ("sandbox", "python", "env_from", "model", "fallback"):
            options.pop(option, None)
        if self.model is None and set(models_of(found)) == {DEFAULT_MODEL}:
            # The embedded model calls no tools, and their descriptions would confuse it.
            del options["tools"]
        return AgentSpec(name, options.pop("kind"), options)

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
    "journal": Keeping,
    "log": Logging,
    "sandbox": Sandbox,
    "models": Model,
    "agents": Agent,
    "sessions": Override,
}
# Tables of tables: [models.NAME], [agents.NAME] and [sessions."PATTERN"].
NAMED = ("models", "agents", "sessions")


def load(path: Path) -> Settings:
    """Return the settings in the file; the defaults where there is none. SettingsError has fault and hint."""
    source = SettingsFile.open(path)
    _refuse_what_is_to_come(source)
    refuse_kinds_to_come(source)
    source.refuse_unknown_tables(tuple(TABLES))
    _refuse_contradictions(source)
    found: dict[str, Any] = {"file": source.path}
    for name, table in TABLES.items():
        if name in source.data:
            found[name] = source.read_named(name, table) if name in NAMED else source.read(table, name)
    found["agents"] = {"default": Agent()} | found.get("agents", {})
    _refuse_strangers(source, found["agents"], found.get("sessions", {}))
    refuse_unknown_models(source, found["agents"], found.get("models", {}))
    _refuse_unknown_languages(source, found.get("stt", Stt()))
    own = {name: agent.sandbox for name, agent in found["agents"].items()}
    refuse_useless_paths(source, found.get("sandbox", Sandbox()), own)
    return Settings(**found)


def model_endpoint(settings: Settings) -> ModelEndpoint | None:
    """Return the address of the model, with its key; None for the embedded model."""
    model = settings.model
    return _endpoint(settings, "model", model, model.base_url) if model else None


def named_endpoints(settings: Settings) -> dict[str, ModelEndpoint]:
    """Return the endpoints of [models.NAME], with their keys, by name."""
    return {
        name: _endpoint(settings, f"models.{name}", model, endpoint_id(settings, name))
        for name, model in settings.models.items()
    }


def endpoint_id(settings: Settings, name: str) -> str:
    """Return the name under which the outage of a model is known: two models of one server have two."""
    if name in settings.models:
        model = settings.models[name]
        return f"{model.name} at {model.base_url}"
    return settings.model.base_url if settings.model else EMBEDDED


def _endpoint(settings: Settings, table: str, model: Model, known_as: str) -> ModelEndpoint:
    api_key = _api_key(settings, table, model)
    return ModelEndpoint(
        model.base_url, model.name, api_key, id=known_as, price_in=model.price_in, price_out=model.price_out
    )


def stt_api_key(settings: Settings) -> str:
    """Return the key of the transcription server; empty when it needs none."""
    return _api_key(settings, "stt", settings.stt)


def cautions(settings: Settings) -> tuple[str, ...]:
    """Return sentences about settings that work but are better changed."""
    found = (settings.model, *settings.models.values(), settings.stt)
    holders = [holder for holder in found if holder is not None]
    paths = [_key_path(settings, holder.api_key_file) for holder in holders if holder.api_key_file]
    return tuple(
        f"the key file {path} can be read by every user of this machine: run `chmod 600 {path}`"
        for path in dict.fromkeys(paths)
        if _is_readable_by_all(path)
    )


def _is_readable_by_all(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _refuse_what_is_to_come(source: SettingsFile) -> None:
    """Refuse planned features by name: without this a `[gateway]` would be ignored silently."""
    if source.has("gateway"):
        hint = "remove the table; until there is one, hermesctl and the control socket are the way in"
        raise source.error(("gateway",), "names a gateway, and this version has none", hint)


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


def key_files(settings: Settings) -> tuple[Path, ...]:
    """Return the files with secrets, except systemd's credentials: settings whose names end in `_file`."""
    tables = [table for table in vars(settings).values() if is_dataclass(table)]
    tables += settings.models.values()
    names = [(table, each.name) for table in tables for each in fields(table) if each.name.endswith("_file")]
    values = [value for table, name in names if (value := getattr(table, name)) is not None]
    return tuple(_key_path(settings, value) for value in values if not value.startswith(f"${_CREDENTIALS}/"))


def _key_path(settings: Settings, name: str) -> Path:
    """A relative key file is beside hermes.toml; systemd passes keys in a folder that it names."""
    folder = settings.file.parent if settings.file else Path()
    named, _, inside = name.partition("/")
    if named == f"${_CREDENTIALS}":
        if not os.environ.get(_CREDENTIALS):
            raise SettingsError(
                f'api_key_file = "{name}", and {_CREDENTIALS} is not set',
                "start the service through systemd, which sets it, or name another file",
            )
        return Path(os.environ[_CREDENTIALS]) / inside
    return folder / Path(name).expanduser()


def _api_key(settings: Settings, table: str, holder: Model | Stt) -> str:
    if holder.api_key_env is not None:
        secret = os.environ.get(holder.api_key_env, "").strip()
        if not secret:
            raise SettingsError(
                f"the environment variable {holder.api_key_env}, named by [{table}] api_key_env, is not set",
                missing_variable(settings.file, holder.api_key_env),
            )
        return secret
    path = _key_path(settings, holder.api_key_file) if holder.api_key_file else None
    if path is None:
        return ""
    try:
        with path.open("rb") as opened:
            content = opened.read(_KEY_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(
            f"the key file {path}, named by [{table}] api_key_file, cannot be read: {error.strerror}",
            "write the key into that file, readable by this user only (chmod 600), or correct the path",
        ) from None
    secret = content.decode("ascii", "replace").strip()
    if not secret or len(content) > _KEY_BYTES_MAX or not secret.isascii() or not secret.isprintable():
        raise SettingsError(
            f"the key file {path}, named by [{table}] api_key_file, does not hold one line with a key",
            "write the key alone into that file",
        )
    return secret
