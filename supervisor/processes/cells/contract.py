"""What every cell can do: say how it is made, strike at once, and finish when nothing is left."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ipc.service_messages import CellSpec, Sandbox
from supervisor.processes.procfs import Process, Status


class CellUnavailable(Exception):
    """This kind of cell cannot be had here."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Limits:
    """What one worker tree may use; 0 means no limit."""

    memory_bytes_max: int = 0
    processes_max: int = 0
    files_max: int = 0


@dataclass(slots=True)
class Held:
    """A cell that exists: its keeper, and what is known about its end."""

    incarnation: int
    keeper: Process
    pidfd: int
    # Its cgroup, where it has one beside its namespaces.
    leaf: str = ""
    # The keeper has ended: its pidfd became readable.
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    # The zygote has reaped the keeper and found nothing left of the cell.
    reaped: asyncio.Event = field(default_factory=asyncio.Event)
    # False when those who would have found what is left were killed themselves.
    is_certain: bool = True


class Cell(Protocol):
    name: str
    # Whether a cell sees other files than its host does.
    has_view: bool
    description: str
    # Of cells that are made from now on.
    limits: Limits

    def set_up(self) -> None:
        """Makes what all cells of this kind need, or raises CellUnavailable; may be repeated."""

    def spec(self, incarnation: int, sandbox: Sandbox, hide: tuple[str, ...]) -> CellSpec:
        """How the cell of this incarnation is to be made; what it needs beforehand is made now."""

    def members(self, held: Held, at_most: int) -> Iterator[Status]:
        """The worker and what it has started, as far as a look at them can tell."""

    def strike(self, held: Held, seen: Sequence[Status]) -> None:
        """The first act of the kill; never blocks, may be repeated. `seen` are the members found just now."""

    async def finish(self, held: Held) -> None:
        """Returns when it is certain that nothing of the cell is left."""

    def clear(self, incarnation: int) -> None:
        """Removes what spec made, once the cell is empty or was never used."""
