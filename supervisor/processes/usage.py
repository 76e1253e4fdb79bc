"""Usage of worker process trees, read by a thread so that the loop never waits for /proc.

The kernel walks all page tables of a process to tell its memory: a millisecond for an idle worker, where all
else that is read of it takes a tenth. So the memory of a tree is read again only when one of its processes
has begun, ended or used CPU time since, or after `_MEMORY_SECONDS_MAX`. A process whose CPU time is the same
has run for less than a clock tick, a hundredth of a second: it cannot have come much closer to its limit.
"""

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
# The share of a page depends on other processes too, so it is read again after this.
_MEMORY_SECONDS_MAX = 10.0


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


@dataclass(frozen=True, slots=True)
class _Pass:
    """What was read of one tree; `memory_at` is when its memory was."""

    at: float
    ticks: dict[procfs.Process, int]
    memory_bytes: int
    memory_at: float


class Meter:
    """Reads all trees at once, and CPU time relative to the previous pass."""

    def __init__(self) -> None:
        self._last: dict[int, _Pass] = {}

    def read(self, watched: Mapping[int, Watched]) -> dict[int, TreeUsage]:
        now = monotonic()
        usages = {}
        passes = {}
        for incarnation, cell in watched.items():
            ticks = {member.process: member.ticks for member in cell.members(_TREE_MAX)}
            last = self._last.get(incarnation) or _Pass(cell.started_at, {}, 0, 0.0)
            memory, memory_at = last.memory_bytes, last.memory_at
            if ticks != last.ticks or now - memory_at > _MEMORY_SECONDS_MAX:
                memory, memory_at = memory_bytes([process.pid for process in ticks]), now
            passes[incarnation] = _Pass(now, ticks, memory, memory_at)
            usages[incarnation] = TreeUsage(
                pid=cell.pid,
                memory_bytes=memory,
                cpu_percent=_percent(sum(ticks.values()) - sum(last.ticks.values()), now - last.at),
                processes=len(ticks),
                age_seconds=now - cell.started_at,
            )
        self._last = passes
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
