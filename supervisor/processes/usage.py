"""Usage of worker process trees, read by a thread so that the loop never waits for /proc."""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from supervisor.clock import monotonic
from supervisor.processes import procfs
from supervisor.processes.memory import memory_bytes

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_TREE_MAX = 1000
# A log that is larger than this is truncated.
_LOG_BYTES_MAX = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """Usage of a worker's process tree. Shared memory counts by its proportional share."""

    pid: int
    memory_bytes: int
    cpu_percent: float
    processes: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Watched:
    """A cell, as the thread needs it."""

    # Called with a maximum count.
    members: Callable[[int], Iterable[procfs.Status]]
    pid: int
    started_at: float


class Meter:
    """Reads all trees at once, and CPU time relative to the previous pass."""

    def __init__(self) -> None:
        self._ticks: dict[int, tuple[float, int]] = {}

    def read(self, watched: Mapping[int, Watched]) -> dict[int, TreeUsage]:
        now = monotonic()
        usages = {}
        ticks = {}
        for incarnation, cell in watched.items():
            members = list(cell.members(_TREE_MAX))
            total = sum(member.ticks for member in members)
            since, before = self._ticks.get(incarnation, (cell.started_at, 0))
            ticks[incarnation] = (now, total)
            usages[incarnation] = TreeUsage(
                pid=cell.pid,
                memory_bytes=memory_bytes([member.process.pid for member in members]),
                cpu_percent=_percent(total - before, now - since),
                processes=len(members),
                age_seconds=now - cell.started_at,
            )
        self._ticks = ticks
        return usages


def _percent(ticks: int, seconds: float) -> float:
    return max(0.0, 100.0 * ticks / _TICKS_PER_SECOND / seconds) if seconds > 0 else 0.0


def read(meter: Meter, watched: Mapping[int, Watched], logs: list[Path]) -> dict[int, TreeUsage]:
    """Runs in a thread: read the usage, and bound the logs."""
    for log in logs:
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > _LOG_BYTES_MAX:
                os.truncate(log, 0)
    return meter.read(watched)
