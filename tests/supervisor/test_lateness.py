"""What keeps turns from moving, for a person who asks: late work, outages, and the lag of the loop."""

import asyncio
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from supervisor.clock import time_of_day
from supervisor.core import events
from supervisor.core.policy import DEFAULT_AGENT, Policy
from supervisor.core.state import (
    Attempt,
    Model,
    ModelState,
    Outage,
    Place,
    Proof,
    Session,
    State,
    Strain,
    Turn,
    Who,
    Worker,
    WorkerState,
)
from supervisor.decider import Trouble
from supervisor.telemetry import lag as lag_module
from supervisor.telemetry import outage_rows
from supervisor.telemetry.health import Health
from supervisor.telemetry.lag import Lag
from supervisor.telemetry.lateness import Lateness
from tests.no_containment import uncontained
from tests.supervisor.fixed_clock import NOW, FixedClock
from tests.waiting import soon

PROOF = Proof(3, True, 5.0, "pidns")
WHO = Who(1, 0, 1)


def late(state: State, engine: Any = None, lag: float = 0.0, services: Any = ()) -> list[tuple[Any, ...]]:
    health = engine or SimpleNamespace(trouble=None, committing_since=None, waiting_since=None)
    worst = SimpleNamespace(worst=lambda: (NOW - 1, lag))
    lateness = Lateness(state=state, clock=FixedClock(), engine=health, lag=worst, services=lambda: services)
    return [(row["what"], row["seconds"], row["detail"]) for row in lateness.rows()]


def test_nothing_is_late_where_nothing_waits() -> None:
    state = State(Policy(), model=Model(since=NOW - 60.0))
    state.queued["s"] = Place(0, NOW - 60.0)
    on_time = SimpleNamespace(trouble=None, committing_since=NOW - 1.0, waiting_since=None)
    assert late(state, on_time, 0.5, [{"service": "stt", "down_seconds": None}]) == []


def test_what_is_late_is_told_with_its_time_the_oldest_first() -> None:
    state = State(Policy())
    state.queued["first"], state.queued["second"] = Place(0, NOW - 61.0), Place(1, NOW - 1.0)
    state.model = Model(since=NOW - 62.0)
    state.strains["memory"] = Strain("memory is short", "", NOW - 90.0)
    state.workers = {0: Worker(0, state=WorkerState.DYING, session="held", stuck_since=NOW - 30, words="D")}
    state.stuck = {0: None}
    services = [{"service": "stt", "down_seconds": 20.0, "state": "failed", "detail": "no weights"}]
    engine = SimpleNamespace(trouble=None, committing_since=NOW - 2.0, waiting_since=None)
    assert late(state, engine, 0.6, services) == [
        ("memory", 90.0, "memory is short"),
        ("model", 62.0, "it is not ready"),
        ("queue", 61.0, "session first waits for a seat, and 1 behind it"),
        ("worker 0", 30.0, "session held is held: its processes are not proved gone: D"),
        ("service stt", 20.0, "failed: no weights"),
        ("journal", 2.0, "a commit has not come back"),
        ("loop", 1.6, "it stood still for 0.6 s"),
    ]


def test_a_trouble_of_the_journal_and_a_failed_model_are_named_by_their_own_words() -> None:
    state = State(Policy(), model=Model(ModelState.FAILED, "no key", "", NOW - 5.0))
    engine = SimpleNamespace(
        trouble=Trouble("the disk is full", "", NOW - 3.0), committing_since=NOW - 9.0, waiting_since=None
    )
    assert late(state, engine) == [("model", 5.0, "no key"), ("journal", 3.0, "the disk is full")]


def test_what_waits_for_a_commit_is_no_stuck_engine() -> None:
    engine = SimpleNamespace(trouble=None, committing_since=NOW - 2.0, waiting_since=NOW - 3.0)
    assert late(State(Policy()), engine) == [("journal", 2.0, "a commit has not come back")]
    engine.committing_since = None
    assert late(State(Policy()), engine) == [("engine", 3.0, "it decides nothing, and events wait")]


def test_during_an_outage_the_queue_waits_for_it_and_is_not_late_itself() -> None:
    state = State(Policy(), model=Model(ModelState.READY))
    state.queued["first"] = Place(0, NOW - 100.0)
    state.outages["http://x"] = Outage(NOW - 70.0, "refused", "", NOW, NOW)
    assert late(state) == [("model", 70.0, "unreachable: refused")]


def test_many_workers_that_cannot_start_are_counted_after_the_first_twenty() -> None:
    state = State(Policy())
    for seat in range(23):
        state.workers[seat] = Worker(seat, state=WorkerState.FAILED, since=NOW - 100 + seat, words="no cell")
    found = late(state)
    assert len(found) == 21
    assert found[0] == ("worker 0", 100.0, "it cannot start: no cell")
    assert found[-1] == ("workers", 80.0, "3 more cannot start")


def test_a_stall_of_the_loop_is_measured() -> None:
    measured: list[float] = []

    async def act() -> None:
        lag = Lag(FixedClock(), measured.append)
        assert (lag.p99_seconds(), lag.worst()) == (0.0, (NOW, 0.0))
        lag.open()
        # The loop stands still past the next measurement, with nothing that could end it early.
        signal.sigtimedwait([], 0.4)
        await soon(lambda: len(measured) >= 2)
        assert measured[0] >= 0.1
        assert lag.worst() == (NOW, max(measured))
        assert lag.p99_seconds() == max(measured)
        assert all(seconds >= 0 for seconds in measured)

    asyncio.run(act())


def test_health_measures_from_its_opening_to_its_end() -> None:
    posted: list[object] = []
    measured: list[float] = []

    async def act() -> None:
        engine: Any = SimpleNamespace(
            state=State(Policy()), post=posted.append, trouble=None, committing_since=None, waiting_since=None
        )
        down = [{"service": "stt", "down_seconds": 2.0, "state": "failed", "detail": "gone"}]
        health = Health(engine, FixedClock(), lambda: down, measured.append, uncontained())
        assert health.lag_ms() == 0.0
        health.close()
        health.open()
        signal.sigtimedwait([], 0.4)
        await soon(lambda: posted and measured)
        assert isinstance(posted[0], events.HostRead)
        assert health.lag_ms() == round(max(measured) * 1000, 1) >= 100
        assert [row["what"] for row in health.late()] == ["service stt"]
        health.close()
        reading = health._gauges._reading
        assert reading is not None
        await soon(reading.done)

    asyncio.run(act())


def test_an_outage_says_since_when_how_many_wait_and_when_it_is_tried_next() -> None:
    state = State(Policy())
    (endpoint,) = state.policy.endpoints_of(DEFAULT_AGENT)
    for name in ("one", "two"):
        state.sessions[name] = Session(name, turn=Turn(f"{name}/1", name, (), 0.0))
    waiting, free = state.sessions["one"].turn, Turn("x/1", "x", (), 0.0, attempt=Attempt(1, WHO, 0.0))
    assert waiting is not None
    assert outage_rows.of_turn(state, waiting, NOW) == ""
    state.outages[endpoint] = Outage(NOW - 70.0, "refused", "start it", NOW + 3.0, NOW)
    state.outages["another"] = Outage(NOW - 5.0, "gone", "wait", NOW - 3.0, NOW)
    state.queued["one"] = Place(0, NOW)
    since = f"model unreachable since {time_of_day(NOW - 70.0)}: refused"
    first, second = outage_rows.sentences(state, NOW)
    assert first == f"{since}; 1 turn waits; next try in 3 s; start it"
    assert "; 0 turns wait; next try in 0 s; wait" in second
    state.resting["two"] = None
    assert "; 2 turns wait; " in next(outage_rows.sentences(state, NOW))
    assert outage_rows.waiting(state) == 2
    assert outage_rows.of_turn(state, waiting, NOW) == f"{since}; next try in 3 s"
    assert outage_rows.of_turn(state, free, NOW) == ""
    found = [(row["endpoint"], row["turns"], row["next_try_seconds"]) for row in outage_rows.rows(state, NOW)]
    assert found == [(endpoint, 2, 3.0), ("another", 0, 0.0)]


def test_of_many_workers_that_are_stuck_the_first_twenty_are_named() -> None:
    state = State(Policy())
    for seat in range(23):
        state.workers[seat] = Worker(seat, stuck_since=NOW - 100 + seat, words="D")
        state.stuck[seat] = None
    assert [what for what, *_ in late(state)] == [f"worker {seat}" for seat in range(20)]


def test_a_stall_is_forgotten_when_enough_was_measured_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_module, "_KEPT", 2)

    async def act() -> None:
        lag = Lag(FixedClock(), lambda seconds: None)
        lag.open()
        lag._due_at -= 100.0
        lag._measure()
        assert lag.worst()[1] > 90.0
        for _ in range(2):
            lag._measure()
        assert lag.worst()[1] < 90.0

    asyncio.run(act())


def test_the_lag_that_is_shown_is_the_one_that_only_a_hundredth_exceeds() -> None:
    lag = Lag(FixedClock(), lambda seconds: None)
    lag._delays.extend((NOW, number / 1000) for number in reversed(range(200)))
    assert lag.p99_seconds() == 0.198
