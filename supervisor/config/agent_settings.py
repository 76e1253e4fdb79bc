"""[agents.NAME]: which agents there are, and the options of each."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from supervisor.config.fields import (
    DURATION,
    FOLDERS,
    NAMES,
    NEW_WORKERS,
    RULES,
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
from supervisor.config.sandbox_settings import AgentSandbox, Level
from supervisor.config.toml_file import SettingsFile

AgentKind = Literal["builtin", "python", "acp", "hermes"]
ToolName = Literal["shell", "read", "write", "edit", "fetch", "ask"]
Decision = Literal["allow", "ask", "deny"]
# Kinds whose tool calls pass the rules; agents of other kinds ask for themselves.
GATED_KINDS = ("builtin", "acp", "hermes")
# An interrupt takes no longer, whatever the agent does.
CANCEL_GRACE_SECONDS_MAX = 30.0
# Keys that only a python agent has.
_OF_PYTHON = ("entry", "path", "output")
_ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Agent:
    """[agents.NAME]: an agent. Keys beside `kind` are passed to it as options when they are given."""

    kind: AgentKind = key("kind", one_of(AgentKind), "builtin")
    command: tuple[str, ...] | None = key("command", maybe(WORDS))
    env: Mapping[str, str] | None = key("env", maybe(VALUES))
    cancel_grace_seconds: float | None = key("cancel_grace", maybe(DURATION))
    model: str | None = key("model", maybe(TEXT))
    fallback: tuple[str, ...] = key("fallback", NAMES, [])
    python: str | None = key("python", maybe(TEXT), applies=NEW_WORKERS)
    entry: str | None = key("entry", maybe(TEXT), applies=NEW_WORKERS)
    env_from: tuple[str, ...] = key("env_from", VARIABLES, [])
    path: tuple[str, ...] = key("path", FOLDERS, [], NEW_WORKERS)
    output: str | None = key("output", maybe(TEXT))
    home: str | None = key("home", maybe(TEXT), applies=NEW_WORKERS)
    system: str | None = key("system", maybe(TEXT))
    instructions: str | None = key("instructions", maybe(TEXT))
    tools: tuple[str, ...] = key("tools", some_of(ToolName), list(get_args(ToolName)))
    fetch_private: bool = key("fetch_private", SWITCH, False)
    history_characters_max: int | None = key("history_characters_max", maybe(whole(1000, 4_000_000)))
    mcp: tuple[str, ...] | None = key("mcp", maybe(TEXTS), None, NEW_WORKERS)
    allow: tuple[str, ...] = key("allow", RULES, [])
    ask: tuple[str, ...] = key("ask", RULES, [])
    deny: tuple[str, ...] = key("deny", RULES, [])
    otherwise: Decision | None = key("otherwise", maybe(one_of(Decision)))
    sandbox: AgentSandbox = inner_table("sandbox", AgentSandbox)


def refuse_useless_entries(source: SettingsFile, agents: Mapping[str, Agent]) -> None:
    """A python agent needs an entry, and folders that exist; no other kind has them."""
    for name, agent in agents.items():
        table = ("agents", name)
        if agent.kind != "python":
            useless = next((each for each in _OF_PYTHON if source.has(*table, each)), None)
            if useless is not None:
                hint = 'add kind = "python" to the table, or remove the key'
                raise source.error((*table, useless), f'is of no use with kind = "{agent.kind}"', hint)
            continue
        if agent.entry is None:
            raise source.error(table, "has no entry", 'add entry = "package.module:function"')
        if not _ENTRY.fullmatch(agent.entry):
            hint = 'write entry = "package.module:function"'
            raise source.error((*table, "entry"), f'= "{agent.entry}" names no function of a module', hint)
        for folder in code_folders(source.path, agent):
            if not os.path.isdir(folder):
                raise source.error((*table, "path"), f"names {folder}, which is no folder", "create it there")
            if source.path.parent.resolve().is_relative_to(Path(folder).resolve()):
                what = f"names {folder}, which holds the settings: an agent must not see them"
                raise source.error(
                    (*table, "path"), what, "move the agent's modules to a folder of their own"
                )


def refuse_useless_graces(source: SettingsFile, agents: Mapping[str, Agent]) -> None:
    """Only the protocol of an acp agent has a cancellation; a person waits for it."""
    for name, agent in agents.items():
        place = ("agents", name, "cancel_grace")
        if agent.cancel_grace_seconds is None:
            continue
        if agent.kind != "acp":
            hint = "remove the key: an interrupt kills this agent at once"
            raise source.error(place, f'is of no use with kind = "{agent.kind}"', hint)
        if agent.cancel_grace_seconds > CANCEL_GRACE_SECONDS_MAX:
            limit = f"{CANCEL_GRACE_SECONDS_MAX:g} s"
            raise source.error(place, f"is more than {limit}", f"write a duration of at most {limit}")


def refuse_useless_homes(source: SettingsFile, agents: Mapping[str, Agent]) -> None:
    """A hermes agent needs an interpreter; its home must be a folder. No other kind has a home."""
    for name, agent in agents.items():
        table = ("agents", name)
        if agent.kind == "hermes" and agent.python is None:
            hint = 'add python = ".venv/bin/python" of an environment with hermes-agent'
            raise source.error(table, "has no python", hint)
        home = home_folder(source.path, agent)
        if home is None:
            continue
        if agent.kind != "hermes":
            hint = 'add kind = "hermes" to the table, or remove the key'
            raise source.error((*table, "home"), f'is of no use with kind = "{agent.kind}"', hint)
        if not os.path.isdir(home):
            raise source.error((*table, "home"), f"names {home}, which is no folder", "create it there")
        useless = next((each for each in ("model", "fallback") if source.has(*table, each)), None)
        if useless is not None:
            what = "is of no use with home, whose settings name the models"
            raise source.error((*table, useless), what, "write them into its config.yaml, or remove home")
        if source.path.parent.resolve().is_relative_to(Path(home).resolve()):
            what = f"names {home}, which holds the settings: an agent must not see them"
            raise source.error((*table, "home"), what, "give hermes-agent a folder of its own")
        for other in agents.values():
            if any(_overlap(home, folder) for folder in _zygote_folders(source.path, other)):
                what = f"names {home}, and agents could change code there that runs outside of their cells"
                raise source.error((*table, "home"), what, "keep environments and modules out of the home")


def _zygote_folders(file: Path, agent: Agent) -> tuple[str, ...]:
    """Return the folders of code that the agent's zygote imports; it is in no cell."""
    if agent.python is None:
        return code_folders(file, agent)
    python = os.path.abspath(file.parent / Path(agent.python).expanduser())
    return (*code_folders(file, agent), os.path.dirname(os.path.dirname(python)))


def _overlap(one: str, other: str) -> bool:
    first, second = os.path.realpath(one), os.path.realpath(other)
    return os.path.commonpath((first, second)) in (first, second)


def home_folder(file: Path | None, agent: Agent) -> str | None:
    """Return the home of a hermes agent; a relative one starts beside hermes.toml."""
    beside = file.parent if file else Path()
    return os.path.abspath(beside / Path(agent.home).expanduser()) if agent.home else None


def code_folders(file: Path | None, agent: Agent) -> tuple[str, ...]:
    """Return the folders of the agent's modules; relative ones start beside hermes.toml."""
    beside = file.parent if file else Path()
    return tuple(os.path.abspath(beside / Path(folder).expanduser()) for folder in agent.path)


def options_of(
    agent: Agent, file: Path | None, instructions: tuple[str, ...], level: Level
) -> dict[str, Any]:
    """Return the keys as workers receive them; further instructions follow those of the agent.

    `level` is that of the agent's sandbox.
    """
    options = {option: value for option, value in vars(agent).items() if value is not None}
    # For the cell and the runtime only; endpoints, servers and values of secrets travel beside it.
    for option in ("sandbox", "python", "model", "fallback", "mcp"):
        options.pop(option, None)
    if agent.kind != "acp":
        del options["env_from"]
    elif agent.model is not None:
        options["model"] = agent.model  # the prices of that endpoint are those of the agent's own model
    for option in ("allow", "ask", "deny"):
        if not options[option]:
            del options[option]
    if agent.kind in GATED_KINDS:
        # In a workspace of its own an agent can do what it likes; elsewhere it meets the user's files.
        options.setdefault("otherwise", "allow" if level == "workspace" else "ask")
    if agent.home:
        options["home"] = home_folder(file, agent)
    if options.pop("path"):
        options["path"] = code_folders(file, agent)
    given = [text for text in (agent.instructions, *instructions) if text]
    return options | ({"instructions": "\n\n".join(given)} if given else {})
