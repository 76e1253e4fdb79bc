"""A Setup waits while a turn has just begun, and neither for ever nor while a turn needs the worker."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from supervisor.clock import monotonic
from supervisor.core.state import Who
from supervisor.workers import setup_timing
from supervisor.workers.setup_timing import SetupTiming
from tests.waiting import soon

WHO = Who(1, 0, 7)
LONG = 3600.0


class Scene:
    """Remembers who was sent a Setup; the last turn began so many seconds ago."""

    def __init__(self, ago: float) -> None:
        self.sent: list[tuple[Who, str]] = []
        self.queued: set[str] = set()
        began = monotonic() - ago
        self.timing = SetupTiming(
            lambda who, agent: self.sent.append((who, agent)), self.queued.__contains__, lambda: began
        )


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())


def test_a_setup_is_sent_at_once_when_no_turn_has_just_begun() -> None:
    async def scene() -> None:
        stage = Scene(LONG)
        stage.timing.asked(WHO, "mine")
        assert stage.sent == [(WHO, "mine")]

    play(scene)


def test_it_waits_behind_a_turn_that_has_just_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_timing, "PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(setup_timing, "WAIT_SECONDS_MAX", LONG)

    async def scene() -> None:
        stage = Scene(0.0)
        stage.timing.asked(WHO, "mine")
        assert stage.sent == []
        await soon(lambda: stage.sent)
        assert stage.sent == [(WHO, "mine")]

    play(scene)


def test_it_does_not_wait_once_a_turn_of_the_agent_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_timing, "PAUSE_SECONDS", LONG)
    monkeypatch.setattr(setup_timing, "WAIT_SECONDS_MAX", LONG)

    async def scene() -> None:
        stage = Scene(0.0)
        stage.queued.add("other")
        stage.timing.asked(WHO, "mine")
        assert stage.sent == []
        stage.queued.add("mine")
        await soon(lambda: stage.sent)
        stage.timing.asked(WHO, "other")
        assert stage.sent == [(WHO, "mine"), (WHO, "other")]

    play(scene)


def test_turns_that_begin_all_the_time_do_not_hold_it_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_timing, "PAUSE_SECONDS", LONG)
    monkeypatch.setattr(setup_timing, "WAIT_SECONDS_MAX", 0.2)

    async def scene() -> None:
        stage = Scene(0.0)
        stage.timing.asked(WHO, "mine")
        assert stage.sent == []
        await soon(lambda: stage.sent)

    play(scene)
