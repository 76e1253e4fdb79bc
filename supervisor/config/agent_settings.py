"""[agents.NAME]: which agents there are, and the options of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from supervisor.config.fields import (
    NAMES,
    NEW_WORKERS,
    SWITCH,
    TEXT,
    TEXTS,
    VALUES,
    VARIABLES,
    WORDS,
    inner_table,
    key,
    maybe,
    one_of,
    some_of,
    whole,
)
from supervisor.config.sandbox_settings import AgentSandbox
from supervisor.config.toml_file import SettingsFile

AgentKind = Literal["builtin", "acp"]
ToolName = Literal["shell", "read", "write", "edit", "fetch", "ask"]
_KINDS_TO_COME = ("python", "hermes")


@dataclass(frozen=True)
class Agent:
    """[agents.NAME]: an agent. Keys beside `kind` are passed to it as options when they are given."""

    kind: AgentKind = key("kind", one_of(AgentKind), "builtin")
    command: tuple[str, ...] | None = key("command", maybe(WORDS))
    env: Mapping[str, str] | None = key("env", maybe(VALUES))
    model: str | None = key("model", maybe(TEXT))
    fallback: tuple[str, ...] = key("fallback", NAMES, [])
    python: str | None = key("python", maybe(TEXT), applies=NEW_WORKERS)
    entry: str | None = key("entry", maybe(TEXT), applies=NEW_WORKERS)
    env_from: tuple[str, ...] = key("env_from", VARIABLES, [])
    system: str | None = key("system", maybe(TEXT))
    tools: tuple[str, ...] = key("tools", some_of(ToolName), list(get_args(ToolName)))
    fetch_private: bool = key("fetch_private", SWITCH, False)
    history_characters_max: int | None = key("history_characters_max", maybe(whole(1000, 4_000_000)))
    mcp: tuple[str, ...] | None = key("mcp", maybe(TEXTS), None, NEW_WORKERS)
    sandbox: AgentSandbox = inner_table("sandbox", AgentSandbox)


def refuse_kinds_to_come(source: SettingsFile) -> None:
    """Refuse planned kinds by name: it is not a spelling mistake."""
    agents = source.data.get("agents")
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        kind = agent.get("kind") if isinstance(agent, dict) else None
        if kind in _KINDS_TO_COME:
            what = f'= "{kind}" is a kind of agent that this version does not have'
            raise source.error(("agents", name, "kind"), what, 'write kind = "builtin", or remove the table')
