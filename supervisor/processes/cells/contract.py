"""The interface of a cell: specify it, strike at once, and finish when no process is left."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ipc.service_messages import CellSpec, Sandbox
from supervisor.processes.procfs import Process, Status


class CellUnavailable(Exception):
    """This kind of cell is not available here."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one worker tree; 0 means no limit."""

    memory_bytes_max: int = 0
    processes_max: int = 0
    files_max: int = 0


@dataclass(slots=True)
class Held:
    """A cell that exists: its keeper, and the facts about its end."""

    incarnation: int
    keeper: Process
    pidfd: int
    # Its cgroup, where it has one in addition to its namespaces.
    leaf: str = ""
    # The keeper has ended: its pidfd became readable.
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    # The zygote has reaped the keeper and found no process of the cell.
    reaped: asyncio.Event = field(default_factory=asyncio.Event)
    # False when the processes that would have found the rest were killed themselves.
    is_certain: bool = True


class Cell(Protocol):
    name: str
    # Whether a cell sees other files than its host does.
    has_view: bool
    description: str
    # Limits of cells that are made from now on.
    limits: Limits

    def set_up(self) -> None:
        """Make the prerequisites of all cells of this kind, or raise CellUnavailable; may be repeated."""

    def spec(self, incarnation: int, sandbox: Sandbox, hide: tuple[str, ...]) -> CellSpec:
        """Return how to make the cell of this incarnation, and make its prerequisites."""

    def members(self, held: Held, at_most: int) -> Iterator[Status]:
        """Yield the worker and its descendants, as far as one scan finds them."""

    def strike(self, held: Held, seen: Sequence[Status]) -> None:
        """Begin the kill; never blocks, may be repeated. `seen` are the members of the latest scan."""

    async def finish(self, held: Held) -> None:
        """Return when it is certain that no process of the cell is left."""

    def clear(self, incarnation: int) -> None:
        """Remove what spec made, once the cell is empty or was never used."""
