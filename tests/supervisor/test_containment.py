"""An exception costs what was being served: it is counted and logged, and its words are not shown."""

import asyncio
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from ipc.errors import PlaceError
from supervisor.containment import _LOGGED_PER_MINUTE, Containment, Fault, trace_of
from tests.waiting import soon

INTERNAL = Fault("an internal error (KeyError)", "`hermesctl logs` shows where; please report it")


class Desk:
    """Keeps the lines of the log and the counts; its clock is set by the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.counts: Counter[str] = Counter()
        self.failed: list[Fault] = []
        self.contain = Containment(self, lambda: self.now, lambda place: self.counts.update([place]))

    def write(self, verb: str, **fields: Any) -> None:
        self.lines.append((verb, fields))

    def fail(self) -> None:
        raise KeyError("the words of a person")


def test_the_log_has_some_of_each_minute_and_the_counter_all() -> None:
    desk = Desk()
    for minute in range(3):
        desk.now = 60.0 * minute + 30
        for _ in range(2 * _LOGGED_PER_MINUTE):
            desk.contain.caught("request", KeyError("x"))
        assert len(desk.lines) == (minute + 1) * _LOGGED_PER_MINUTE
        assert desk.counts["request"] == (minute + 1) * 2 * _LOGGED_PER_MINUTE


def test_what_is_served_goes_on_and_what_fails_is_told_without_its_words() -> None:
    desk = Desk()
    failures: list[tuple[Fault, int]] = []

    def divide(number: int) -> int:
        return 1 // number

    def failed(fault: Fault, number: int) -> None:
        failures.append((fault, number))

    served = desk.contain.around("worker", divide, failed)
    assert served(1) == 1
    assert not desk.lines
    assert served(0) is None
    assert failures == [(Fault("an internal error (ZeroDivisionError)", INTERNAL.hint), 0)]
    [(verb, fields)] = desk.lines
    assert (verb, fields["place"], fields["error"]) == ("contained", "worker", "ZeroDivisionError")
    assert fields["trace"].startswith("test_containment.py:")
    assert desk.counts == {"worker": 1}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PlaceError("the folder is gone", "make it"), Fault("the folder is gone", "make it")),
        (PlaceError("the folder is gone", ""), Fault("an internal error (PlaceError)", INTERNAL.hint)),
        (KeyError("the words of a person"), INTERNAL),
        (None, Fault("an internal error (unknown)", INTERNAL.hint)),
    ],
)
def test_our_own_errors_are_shown_and_others_by_their_kind(error: Exception | None, told: Fault) -> None:
    desk = Desk()
    assert desk.contain.caught("loop", error) == told
    assert "the words of a person" not in repr(desk.lines)


def run(act: Coroutine[Any, Any, None]) -> None:
    """No callback raises meanwhile."""

    async def watched() -> None:
        broken: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
        await act
        assert not broken

    asyncio.run(watched())


def test_a_task_that_fails_is_told_when_it_ends_and_one_that_is_cancelled_is_not() -> None:
    async def act() -> None:
        desk = Desk()

        async def failing() -> None:
            desk.fail()

        async def endless() -> None:
            await asyncio.Event().wait()

        async def done() -> None: ...

        for work in (failing(), endless(), done()):
            task = desk.contain.task("request", work, desk.failed.append)
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await asyncio.sleep(0)
        assert desk.failed == [INTERNAL]
        assert desk.counts == {"request": 1}

    run(act())


def test_the_outcome_of_a_thread_comes_back_to_the_loop() -> None:
    async def act() -> None:
        desk = Desk()
        outcomes: list[int] = []
        desk.contain.thread("request", lambda: 7, outcomes.append, desk.failed.append)
        await soon(lambda: outcomes)
        assert (outcomes, desk.failed) == ([7], [])
        desk.contain.thread("schedule", desk.fail, lambda outcome: None, desk.failed.append)
        await soon(lambda: len(desk.failed) == 1)
        desk.contain.thread("clip", lambda: 7, lambda outcome: desk.fail(), desk.failed.append)
        await soon(lambda: len(desk.failed) == 2)
        assert desk.failed == [INTERNAL, INTERNAL]
        assert desk.counts == {"schedule": 1, "clip": 1}

    run(act())


def test_an_outcome_that_comes_after_the_end_of_the_loop_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)
    desk, is_over = Desk(), threading.Event()

    async def act() -> None:
        desk.contain.thread("schedule", is_over.wait, lambda outcome: None, desk.failed.append)

    run(act())
    [thread] = [each for each in threading.enumerate() if each.name == "schedule"]
    is_over.set()
    thread.join()
    assert not broken
    assert not desk.failed


def test_vital_work_ends_the_process_by_its_own_error() -> None:
    async def act() -> None:
        desk = Desk()
        fatal: list[BaseException] = []

        async def failing() -> None:
            desk.fail()

        async def done() -> None: ...

        await desk.contain.vital(done, fatal.append)
        assert not fatal
        await desk.contain.vital(failing, fatal.append)
        assert [type(error) for error in fatal] == [KeyError]
        assert [verb for verb, _ in desk.lines] == ["engine.failed"]
        assert not desk.counts

    run(act())


def test_a_trace_names_the_innermost_call_first_and_is_bounded() -> None:
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            raise KeyError

    try:
        deeper(40)
    except KeyError as error:
        calls = trace_of(error).split(" < ")
    assert len(calls) == 12
    assert all(call.endswith(" deeper") for call in calls)
    assert trace_of(None) == ""
