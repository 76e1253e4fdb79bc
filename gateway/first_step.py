"""Runs a coroutine to its first wait, where it is called: most writes to a client wait for nothing.

A task that is woken to write one event costs as much as the event. `start` runs the coroutine right here, and
returns None when that was all of it. A coroutine that has to wait, or that fails as the server's do, becomes
a `Rest`: a task that awaits it goes on behind that first wait, or gets the exception.
"""

from collections.abc import Awaitable, Generator
from typing import Any


class Rest:
    """What is left of a coroutine. It has to be awaited, by one task."""

    __slots__ = ("_error", "_steps", "_waits_for")

    def __init__(
        self, steps: Generator[Any, Any, None], waits_for: Any, error: OSError | RuntimeError | None
    ) -> None:
        self._steps = steps
        self._waits_for = waits_for
        self._error = error

    def __await__(self) -> Generator[Any, Any, None]:
        if self._error is not None:
            raise self._error
        # The task waits for what the coroutine waits for, then runs it on.
        yield self._waits_for
        yield from self._steps


def start(awaitable: Awaitable[None]) -> Rest | None:
    steps = awaitable.__await__()
    try:
        waits_for = next(steps)
    except StopIteration:
        return None
    except (OSError, RuntimeError) as error:
        return Rest(steps, None, error)
    return Rest(steps, waits_for, None)
