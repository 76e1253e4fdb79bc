"""Two lanes to the model. One takes short clips only, so a command does not wait for a long recording."""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# One window of the model; longer clips are transcribed in several parts.
SHORT_SECONDS = 30.0
# A call to the model takes seconds at most. A call that outlives its caller by this long is stuck, and only
# the end of the process frees its lane.
_STUCK_SECONDS = 20.0
_EXIT_STUCK = 70

_Result = TypeVar("_Result")


class Lane:
    """One thread that calls the model."""

    def __init__(self, name: str, stuck_seconds: float = _STUCK_SECONDS) -> None:
        self._stuck_seconds = stuck_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Returns the result of the work.

        When the caller is cancelled the work goes on, and must end soon.
        """
        loop = asyncio.get_running_loop()
        future = self._thread.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.done():
                watch = loop.call_later(self._stuck_seconds, _end_stuck)
                future.add_done_callback(lambda _: loop.call_soon_threadsafe(watch.cancel))
            raise


class Lanes:
    """Short clips take the first free lane; long ones wait for the lane that takes both."""

    def __init__(self) -> None:
        self._short, self._any = Lane("short"), Lane("any")
        self._free = [self._short, self._any]
        self._waiting: deque[tuple[float, asyncio.Future[Lane]]] = deque()

    @property
    def idle(self) -> bool:
        return len(self._free) == 2

    @asynccontextmanager
    async def lane(self, seconds: float) -> "AsyncIterator[Lane]":
        """Yields a lane for a clip of that length, in order of arrival among the clips that may use it."""
        place: asyncio.Future[Lane] = asyncio.get_running_loop().create_future()
        self._waiting.append((seconds, place))
        self._assign_lanes()
        try:
            yield await place
        finally:
            if place.done() and not place.cancelled():
                self._free.append(place.result())
            self._assign_lanes()

    def _assign_lanes(self) -> None:
        kept: deque[tuple[float, asyncio.Future[Lane]]] = deque()
        for seconds, place in self._waiting:
            if place.done():
                continue
            lane = self._lane_for(seconds)
            if lane is None:
                kept.append((seconds, place))
            else:
                self._free.remove(lane)
                place.set_result(lane)
        self._waiting = kept

    def _lane_for(self, seconds: float) -> Lane | None:
        allowed = (self._short, self._any) if seconds <= SHORT_SECONDS else (self._any,)
        return next((lane for lane in allowed if lane in self._free), None)


def _end_stuck() -> None:
    print("stt_service: the model did not return after its deadline", file=sys.stderr, flush=True)
    os._exit(_EXIT_STUCK)
