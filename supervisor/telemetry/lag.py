"""Lag of the event loop: a timer measures its own delay, so a stall shows once it is over."""

import asyncio
from collections import deque
from collections.abc import Callable

from supervisor.clock import Clock

_PAUSE_SECONDS = 0.25
# A minute of measurements; older ones no longer describe the present.
_KEPT = 240


class Lag:
    """The delays of the last minute; `measured` is called with each."""

    def __init__(self, clock: Clock, measured: Callable[[float], None]) -> None:
        self._clock = clock
        self._measured = measured
        self._delays: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wait()

    def p99_seconds(self) -> float:
        ordered = sorted(seconds for _, seconds in self._delays)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0

    def worst(self) -> tuple[float, float]:
        """Return when the loop was latest in the last minute, and by how many seconds."""
        return max(self._delays, key=lambda delay: delay[1], default=(self._clock.now(), 0.0))

    def _wait(self) -> None:
        self._due_at = self._loop.time() + _PAUSE_SECONDS
        self._loop.call_at(self._due_at, self._measure)

    def _measure(self) -> None:
        seconds = max(0.0, self._loop.time() - self._due_at)
        self._delays.append((self._clock.now(), seconds))
        self._measured(seconds)
        self._wait()
