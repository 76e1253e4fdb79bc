"""The attacks that the settings promise to hold or let through, and the meaning of an open one.

The table is docs/isolation.md's; a test compares the two. `held` is a promise: an attack that is open in
spite of it is a fault. `open` is what the level is for. `depends` is neither: it is up to the rights of the
service's user, to the kernel, or to whether cgroups are delegated.
"""

from dataclasses import dataclass
from typing import Literal

from ipc.isolation import Attack, Result

Promise = Literal["held", "open", "depends"]
Column = Literal["workspace", "home", "host", "weaker"]
COLUMNS: tuple[Column, ...] = ("workspace", "home", "host", "weaker")

_MARKS: dict[str, Promise] = {"h": "held", "o": "open", "d": "depends"}
# A letter for each of COLUMNS. An attack that is not listed is held in cells of namespaces, and depends in
# weaker ones.
_USUAL = "hhhd"
_OTHERS = {
    "containers": "hddd",
    "key agents": "hddd",
    "tmux": "hddd",
    "systemd": "hddd",
    "D-Bus": "hddd",
    "display": "hddd",
    "Unix sockets": "hdoo",
    "loopback": "oooo",
    "embedded model": "hhhh",
    "privileges": "hhhh",
    "settings": "hhho",
    "state": "hhho",
    "worker memory": "hhhh",
    "home folder": "hooo",
    "host files": "hhoo",
    "/proc roots": "hhho",
    "devices": "hhdd",
    "kernel log": "hhdd",
    "other user": "dddd",
    "memory": "dddd",
    "open files": "hhhh",
    "memory files": "hhoo",
    "shared memory": "dddd",
    "control socket": "hhho",
    "other workspaces": "hhho",
}
_BY_LEVEL = {
    "workspace": "it depends on this host",
    "home": 'level = "home" shows the home folder',
    "host": "level = \"host\" shows the host's files, as the service's user may use them",
    "weaker": "this cell has no view of its own: an agent may do what the service's user may",
}
# Reasons other than the level.
_REASONS = {
    "loopback": 'network = "host" gives tools the network of the host',
    "other user": "agents run as the service's user: what a cell sees is the wall",
    "memory": "the kernel limits it where cgroups are delegated to the service: hermesctl install",
    "shared memory": "the kernel lets only a service of root limit it, or a cgroup: hermesctl install",
}


@dataclass(frozen=True)
class Judged:
    """A result beside its promise; `why` tells what an open one means, or why it is no fault."""

    attack: Attack
    result: Result
    promise: Promise
    why: str

    @property
    def is_fault(self) -> bool:
        return self.result.verdict == "broken" or (self.result.verdict == "open" and self.promise == "held")


def promise(name: str, column: Column, network: str) -> Promise:
    if name == "loopback" and network == "none":
        return "held"
    return _MARKS[_OTHERS.get(name, _USUAL)[COLUMNS.index(column)]]


def column(level: str, cell: str) -> Column:
    """Cells that are not namespaces have no view, whatever the level."""
    if cell != "pidns":
        return "weaker"
    return next((each for each in COLUMNS if each == level), "workspace")


def judge(attack: Attack, result: Result, in_column: Column, network: str) -> Judged:
    promised = promise(attack.name, in_column, network)
    why = ""
    if result.verdict in ("open", "broken"):
        is_fault = promised == "held" or result.verdict == "broken"
        why = attack.matters if is_fault else _REASONS.get(attack.name, _BY_LEVEL[in_column])
    return Judged(attack, result, promised, why)
