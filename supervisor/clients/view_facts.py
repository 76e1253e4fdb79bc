"""What queries show beside the state and the journal: measured values, and facts that the wiring has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ipc.paging import Row


class TreeUsage(Protocol):
    """The usage of one worker's cell."""

    @property
    def memory_bytes(self) -> int: ...
    @property
    def cpu_percent(self) -> float: ...
    @property
    def processes(self) -> int: ...


class Gauges(Protocol):
    """Counters and measured values."""

    def rows(self) -> list[Row]: ...
    def totals(self) -> dict[str, int]: ...
    def questions(self) -> Row: ...


class Health(Protocol):
    """Late work, and the lag of the loop."""

    def late(self) -> list[Row]: ...
    def lag_ms(self) -> float: ...


@dataclass(frozen=True)
class Host:
    """Facts that the wiring has and the core does not."""

    home: str
    started_at: float
    cell: Callable[[], str]
    model: Callable[[], str]
    # Sentences about things a person should check.
    hints: Callable[[], list[str]]
    trouble: Callable[[], object | None]
    # Whether the disk has a reserve for closing records.
    has_reserve: Callable[[], bool]
    # Text about a stop that still waits, or empty.
    waits_for: Callable[[], str]
    health: Health
