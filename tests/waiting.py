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

    def __init__(self, deadline_seconds: float) -> None:
        self._deadline_seconds = deadline_seconds
        self._began = time.monotonic()

    def pause_seconds(self) -> float:
        """Until the next look; AssertionError when there is none."""
        waited = time.monotonic() - self._began
        if waited > self._deadline_seconds:
            raise AssertionError(f"did not come true within {self._deadline_seconds:g} s")
        return min(max(waited * _PAUSE_SHARE, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX)


def until(condition: Callable[[], _Found], deadline_seconds: float = DEADLINE_SECONDS) -> _Found:
    """The first true value of the condition."""
    wait = _Wait(deadline_seconds)
    while not (found := condition()):
        time.sleep(wait.pause_seconds())
    return found


async def soon(condition: Callable[[], _Found], deadline_seconds: float = DEADLINE_SECONDS) -> _Found:
    """The same while the event loop turns."""
    wait = _Wait(deadline_seconds)
    while not (found := condition()):
        pause_seconds = wait.pause_seconds()
        await asyncio.sleep(pause_seconds)
    return found


async def nothing_follows() -> None:
    """Let the loop turn: no task is left, and no timer of zero seconds begins another."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
