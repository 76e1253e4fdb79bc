"""How tests wait: for a condition, with a deadline, never for a time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

# Generous: reached only when something is broken.
DEADLINE_SECONDS = 30.0
_PAUSE_SECONDS = 0.005

_Found = TypeVar("_Found")


def until(condition: Callable[[], _Found], deadline_seconds: float = DEADLINE_SECONDS) -> _Found:
    """The first true value of the condition."""
    deadline = time.monotonic() + deadline_seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {deadline_seconds:g} s")
        time.sleep(_PAUSE_SECONDS)
    return found


async def soon(condition: Callable[[], _Found], deadline_seconds: float = DEADLINE_SECONDS) -> _Found:
    """The same while the event loop turns."""
    deadline = time.monotonic() + deadline_seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {deadline_seconds:g} s")
        await asyncio.sleep(_PAUSE_SECONDS)
    return found
