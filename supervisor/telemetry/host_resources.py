"""Resources of the host, read once a second by a thread: free memory, and pressure (PSI)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from ipc import cgroups
from supervisor.containment import Containment
from supervisor.core.events import HostRead

_SECONDS = 1.0
_KIB = 1024


class Gauges:
    """Reads and reports until it is closed."""

    def __init__(self, report: Callable[[HostRead], None], contain: Containment) -> None:
        self._report = report
        self._contain = contain
        self._reading: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._reading = self._contain.task("schedule", self._read_for_ever(), self._failed)

    def _failed(self, fault: object) -> None:
        asyncio.get_running_loop().call_later(_SECONDS, self.open)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _read_for_ever(self) -> None:
        while True:
            self._report(await asyncio.to_thread(read_host))
            await asyncio.sleep(_SECONDS)


def read_host(
    proc: Path = Path("/proc"), root: Path = cgroups.ROOT, membership: Path = cgroups.MEMBERSHIP
) -> HostRead:
    """Read the host. A value that the kernel does not provide is None, and sets no limit.

    Memory and disk use the "full" line of PSI, the time in which all tasks waited. CPU uses "some": there is
    always one task that runs.
    """
    pressure = proc / "pressure"
    return HostRead(
        memory_free_bytes=_free_bytes(proc, root, membership),
        memory_pressure=_pressure(pressure / "memory", "full"),
        io_pressure=_pressure(pressure / "io", "full"),
        cpu_pressure=_pressure(pressure / "cpu", "some"),
    )


def _free_bytes(proc: Path, root: Path, membership: Path) -> int | None:
    """Return the free memory of the host, or less where a control group has a lower limit."""
    rooms = (_room_bytes(folder) for folder in cgroups.folders("memory", root, membership))
    found = [room for room in (_available_bytes(proc / "meminfo"), *rooms) if room is not None]
    return min(found, default=None)


def _available_bytes(meminfo: Path) -> int | None:
    found = _words_of_line(meminfo, "MemAvailable:")
    return int(found[1]) * _KIB if len(found) > 1 else None


def _room_bytes(folder: Path) -> int | None:
    """Return what a control group may still allocate. Inactive file cache is reclaimable, so it is free."""
    limit = cgroups.number(folder / "memory.max") or cgroups.number(folder / "memory.limit_in_bytes")
    used = cgroups.number(folder / "memory.current") or cgroups.number(folder / "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    cached = _words_of_line(folder / "memory.stat", "inactive_file ")
    return max(0, limit - used + (int(cached[1]) if len(cached) > 1 else 0))


def _pressure(file: Path, kind: str) -> float | None:
    for word in _words_of_line(file, f"{kind} "):
        name, _, value = word.partition("=")
        if name == "avg10":
            return float(value)
    return None


def _words_of_line(file: Path, beginning: str) -> list[str]:
    """Return the words of the first line with this beginning; none where the line or the file is missing."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return []
    return next((line.split() for line in lines if line.startswith(beginning)), [])
