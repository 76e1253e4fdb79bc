"""[sandbox] and [agents.NAME.sandbox]: the view that a cell has of the host, for all agents and for one.

The first table holds for every agent; a key of the second replaces that key for its agent, lists included.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from supervisor.config.fields import NEW_WORKERS, PATHS, SIZE, key, maybe, one_of
from supervisor.config.toml_file import SettingsFile

Level = Literal["workspace", "home", "host"]
Network = Literal["host", "none"]


@dataclass(frozen=True)
class Sandbox:
    """[sandbox]: the files and network of the host that cells see, and the size limit of a workspace."""

    level: Level = key("level", one_of(Level), "workspace", NEW_WORKERS)
    read: tuple[str, ...] = key("read", PATHS, [], NEW_WORKERS)
    write: tuple[str, ...] = key("write", PATHS, [], NEW_WORKERS)
    network: Network = key("network", one_of(Network), "host", NEW_WORKERS)
    quota_bytes: int = key("quota", SIZE, "10GiB")


@dataclass(frozen=True)
class AgentSandbox:
    """[agents.NAME.sandbox]: the keys of [sandbox] that differ for one agent."""

    level: Level | None = key("level", maybe(one_of(Level)), applies=NEW_WORKERS)
    read: tuple[str, ...] | None = key("read", maybe(PATHS), applies=NEW_WORKERS)
    write: tuple[str, ...] | None = key("write", maybe(PATHS), applies=NEW_WORKERS)
    network: Network | None = key("network", maybe(one_of(Network)), applies=NEW_WORKERS)
    quota_bytes: int | None = key("quota", maybe(SIZE))

    def over(self, common: Sandbox) -> Sandbox:
        """Return the sandbox of this agent: its own keys, and those of [sandbox] for the rest."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(common, **{name: value for name, value in own.items() if value is not None})


def refuse_useless_paths(source: SettingsFile, common: Sandbox, agents: Mapping[str, AgentSandbox]) -> None:
    """A path must exist, and be in one of the lists read and write of an agent, not in both."""
    _refuse_missing(source, ("sandbox",), common)
    _refuse_both(source, ("sandbox",), common)
    for name, own in agents.items():
        table = ("agents", name, "sandbox")
        _refuse_missing(source, table, own)
        _refuse_both(source, table, own.over(common))


def _refuse_missing(source: SettingsFile, table: tuple[str, ...], sandbox: Sandbox | AgentSandbox) -> None:
    for name in ("read", "write"):
        for path in getattr(sandbox, name) or ():
            if not os.path.exists(path):
                raise source.error(
                    (*table, name), f"names {path}, which does not exist", "create it, or remove it there"
                )


def _refuse_both(source: SettingsFile, table: tuple[str, ...], sandbox: Sandbox) -> None:
    both = next((path for path in sandbox.read if path in sandbox.write), None)
    if both is not None:
        here, there = ("read", "write") if source.has(*table, "read") else ("write", "read")
        raise source.error((*table, here), f"names {both}, and so does {there}", "keep it in one of the two")
