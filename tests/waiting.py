"""How tests wait: for a condition, with a deadline, never for a time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

# Generous: reached only when something is broken.
DEADLINE_SECONDS = 30.0
# Between two looks passes a tenth of the time waited so far: a look may cost a process or a round trip.
_PAUSE_SHARE = 0.1
_PAUSE_SECONDS_MIN = 0.002
_PAUSE_SECONDS_MAX = 0.1

_Found = TypeVar("_Found")


class _Wait:
    """The looks of one wait."""

    def __init__(self, deadline_seconds: float, pause_seconds_min: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._pause_seconds_min = pause_seconds_min
        self._began = time.monotonic()

    def pause_seconds(self) -> float:
        """Until the next look; AssertionError when there is none."""
        waited = time.monotonic() - self._began
        if waited > self._deadline_seconds:
            raise AssertionError(f"did not come true within {self._deadline_seconds:g} s")
        return min(max(waited * _PAUSE_SHARE, self._pause_seconds_min), _PAUSE_SECONDS_MAX)


def until(
    condition: Callable[[], _Found],
    deadline_seconds: float = DEADLINE_SECONDS,
    pause_seconds_min: float = _PAUSE_SECONDS_MIN,
) -> _Found:
    """The first true value of the condition. A look that is dear is worth a longer pause before the next."""
    wait = _Wait(deadline_seconds, pause_seconds_min)
    while not (found := condition()):
        time.sleep(wait.pause_seconds())
    return found


async def soon(condition: Callable[[], _Found], deadline_seconds: float = DEADLINE_SECONDS) -> _Found:
    """The same while the event loop turns."""
    wait = _Wait(deadline_seconds, _PAUSE_SECONDS_MIN)
    while not (found := condition()):
        pause_seconds = wait.pause_seconds()
        await asyncio.sleep(pause_seconds)
    return found


async def nothing_follows() -> None:
    """Let the loop turn: no task is left, and no timer of zero seconds begins another."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
