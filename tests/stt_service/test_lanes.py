"""Who gets to the model when: short clips are never behind long ones, order holds, what is stuck is ended."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from stt_service import lanes
from stt_service.lanes import Lane, Lanes
from tests.house_rules import ROOT
from tests.waiting import DEADLINE_SECONDS, soon

LONG, SHORT = 60.0, 3.0


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


class Clips:
    """Clips that hold their lane until they are let go."""

    def __init__(self) -> None:
        self.lanes = Lanes()
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._gates: dict[str, threading.Event] = {}

    def come(self, name: str, seconds: float) -> None:
        self._gates[name] = threading.Event()
        self.tasks[name] = asyncio.ensure_future(self._hold(name, seconds))

    async def let_go(self, name: str) -> None:
        self._gates[name].set()
        await self.tasks[name]

    async def _hold(self, name: str, seconds: float) -> None:
        async with self.lanes.lane(seconds) as lane:
            self.begun.append(name)
            await lane.run(self._gates[name].wait)


def test_a_short_clip_overtakes_the_long_ones_that_wait() -> None:
    async def story() -> None:
        clips = Clips()
        for name in ("long 1", "long 2"):
            clips.come(name, LONG)
        clips.come("short 1", SHORT)
        clips.come("short 2", SHORT)
        await soon(lambda: clips.begun == ["long 1", "short 1"])
        await clips.let_go("short 1")
        await soon(lambda: clips.begun == ["long 1", "short 1", "short 2"])
        await clips.let_go("long 1")
        await soon(lambda: clips.begun[3:] == ["long 2"])
        await clips.let_go("short 2")
        await clips.let_go("long 2")
        assert clips.lanes.idle

    run(story())


def test_short_clips_use_both_lanes_while_no_long_one_does() -> None:
    async def story() -> None:
        clips = Clips()
        for number in range(3):
            clips.come(f"short {number}", SHORT)
        await soon(lambda: len(clips.begun) == 2)
        clips.come("long", LONG)
        await clips.let_go("short 0")
        await soon(lambda: clips.begun == ["short 0", "short 1", "short 2"])
        await clips.let_go("short 1")
        await clips.let_go("short 2")
        await soon(lambda: clips.begun[3:] == ["long"])
        await clips.let_go("long")

    run(story())


def test_a_clip_that_is_forgotten_while_it_waits_holds_up_nobody() -> None:
    async def story() -> None:
        clips = Clips()
        for name in ("first", "forgotten", "last"):
            clips.come(name, LONG)
        await soon(lambda: clips.begun == ["first"])
        clips.tasks["forgotten"].cancel()
        await clips.let_go("first")
        await soon(lambda: clips.begun == ["first", "last"])
        await clips.let_go("last")
        assert clips.lanes.idle

    run(story())


def test_c4_a_model_that_never_returns_ends_the_process_after_its_deadline() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.stt_service.stuck_lane"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert ended.returncode == 70
    assert ended.stderr == "stt_service: the model did not return after its deadline\n"


def test_a_call_that_returns_after_its_caller_has_left_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []
    monkeypatch.setattr(lanes, "_end_stuck", lambda: ended.append(True))

    async def story() -> None:
        lane, gate = Lane("test", stuck_seconds=0.2), threading.Event()
        calling = asyncio.ensure_future(lane.run(gate.wait))
        await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling])
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, later.set)
        gate.set()
        assert await lane.run(lambda: "free again") == "free again"
        await later.wait()
        assert not ended

    run(story())


def test_a_clip_of_one_whole_window_is_short() -> None:
    async def story() -> None:
        clips = Clips()
        clips.come("long", lanes.SHORT_SECONDS + 0.01)
        clips.come("short", lanes.SHORT_SECONDS)
        await soon(lambda: clips.begun == ["long", "short"])
        for name in clips.begun:
            await clips.let_go(name)

    run(story())


def test_a_clip_that_is_forgotten_as_its_lane_becomes_free_leaves_it_to_the_next() -> None:
    async def story() -> None:
        clips = Clips()
        async with clips.lanes.lane(LONG):
            clips.come("forgotten", LONG)
            await asyncio.sleep(0)
        # The lane is its own, and it has not run since.
        clips.tasks["forgotten"].cancel()
        await asyncio.wait([clips.tasks["forgotten"]])
        assert clips.begun == []
        assert clips.lanes.idle

    run(story())
