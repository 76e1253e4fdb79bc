"""Time limits that do not count the time in which the host had no CPU for the work.

A limit in seconds is for a program that hangs. On a host with more to do than it has CPUs a healthy one takes
many times longer: it is ready to run, and waits. The kernel counts that wait, in /proc/PID/schedstat. A limit
grows by the wait of this process, or of a resident that it waits for, up to a second limit.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from worker import residents

_LOOK_AGAIN_SECONDS = 0.25
_NANOSECONDS = 1e9


class _Waits:
    """The longest time since it was made that one of the processes was ready to run and did not."""

    def __init__(self) -> None:
        self._before = {pid: _waited(pid) for pid in self._pids()}

    def __call__(self) -> float:
        return max(_waited(pid) - self._before.get(pid, 0.0) for pid in self._pids())

    def _pids(self) -> list[str]:
        return ["self", *map(str, residents.pids())]


def _waited(pid: str) -> float:
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / _NANOSECONDS
    except (OSError, ValueError, IndexError):
        return 0.0  # it has ended, or this kernel does not count


@asynccontextmanager
async def within(
    seconds: float, seconds_max: float, waits: Callable[[], float] | None = None
) -> AsyncIterator[None]:
    """As asyncio.timeout: TimeoutError after `seconds` and what `waits` returns, `seconds_max` at most."""
    loop = asyncio.get_running_loop()
    waited, began = waits or _Waits(), loop.time()
    async with asyncio.timeout(seconds) as limit:
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            if not limit.expired():
                limit.reschedule(began + min(seconds + waited(), max(seconds, seconds_max)))
            timer = loop.call_later(_LOOK_AGAIN_SECONDS, look)

        look()
        try:
            yield
        finally:
            timer.cancel()
