"""Rows and sentences that no healthy service shows."""

from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ipc.messages import Show, Table
from ipc.paging import place
from supervisor.clients.queries import Views, in_short
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core.policy import Policy
from supervisor.core.state import Attempt, BusyMode, Message, Session, State, Turn, Who, Worker, WorkerState
from supervisor.journal.asking import InPlace
from tests.journal.conftest import open_in


def _state() -> State:
    return State(Policy(), epoch=1)


def test_the_service_in_one_sentence() -> None:
    state = _state()
    for number in range(3):
        session = state.sessions[f"s{number}"] = Session(f"s{number}")
        session.turn = Turn(f"s{number}/1", f"s{number}", (), 0.0) if number else None
    state.sessions["s0"].waiting.append(Message("m", "x", BusyMode.QUEUE, 1.0))
    assert in_short(state) == (
        "3 sessions live, 0 turns running, 2 queued or asking, 1 messages waiting; 0 workers idle"
    )


def test_a_worker_that_cannot_be_ended_is_shown_with_its_age(tmp_path: Path) -> None:
    state, clock, journal = _state(), Clock(), open_in(tmp_path)
    stuck = Worker(0, 1, WorkerState.DYING, session="s")
    stuck.stuck_since, stuck.words = clock.now() - 100.0, "it waits in the kernel"
    state.workers[0] = stuck
    views = Views(
        state=state,
        clock=clock,
        live=Live(Settings()),
        journal=journal,
        usages=dict,
        services=tuple,
        agents=tuple,
        other_hosts=tuple,
        gauges=cast(Any, None),
        host=cast(Any, None),
    )
    shown: list[Table] = []
    views.show(Show("workers"), shown.append, lambda error: pytest.fail(error.fault))
    ((row,),) = (table.rows for table in shown)
    assert row["words"] == "ended, and not proved gone after 100 s: it waits in the kernel"
    assert (row["process"], row["loop"], row["progress"]) == (None, None, None)
    assert (row["pid"], row["memory_bytes"], row["cpu_percent"], row["processes"]) == (None,) * 4
    journal.close()


class _Asked:
    """Views over a state, without a journal behind them."""

    def __init__(self, state: State, services: list[dict[str, Any]] | None = None) -> None:
        journal = cast(Any, SimpleNamespace(asking=InPlace()))
        for name in ("wake_all", "running", "tables", "read", "hosts"):
            setattr(journal, name, None)
        self.views = Views(
            state=state,
            clock=Clock(),
            live=Live(Settings()),
            journal=journal,
            usages=dict,
            services=lambda: services or [],
            agents=tuple,
            other_hosts=tuple,
            gauges=cast(Any, None),
            host=cast(Any, None),
        )


def _running() -> State:
    state = _state()
    turn = Turn("s/2", "s", (), 0.0, attempts=1, attempt=Attempt(1, Who(1, 0, 7), 0.0))
    state.sessions["s"] = Session("s", turn=turn)
    state.workers[3] = Worker(3, 7, WorkerState.BUSY, session="s", turn="s/2", pid=99)
    state.seat_of["s"] = 3
    return state


def test_only_the_turn_that_runs_is_shown_with_the_worker_of_its_session() -> None:
    rows = [{"id": turn, "session": "s", "state": "running"} for turn in ("s/2", "s/1")]
    shown = _Asked(_running()).views._turns([(row, "") for row in rows])
    found = [(row["turn"], row["worker"], row["pid"]) for row, _ in shown if row is not None]
    assert found == [("s/2", 3, 99), ("s/1", None, None)]


def test_what_waits_for_the_end_of_a_worker_is_said_and_an_ended_turn_waits_for_nothing() -> None:
    state = _running()
    state.stuck[3] = None
    state.workers[3].words = "it is in the kernel"
    views = _Asked(state).views
    rows = [
        {"id": "s/2", "session": "s", "state": "running"},
        {"id": "m1", "session": "s", "state": "waiting"},
        {"id": "m0", "session": "s", "state": "taken", "turn": "s/2"},
        {"id": "s/1", "session": "s", "state": "done"},
        {"id": "t/1", "session": "t", "state": "done"},
    ]
    told = "it waits for the end of worker 3, it is in the kernel"
    assert [views._waits(row) for row in rows] == [told, told, told, "", ""]


@pytest.mark.parametrize("state", ["ready", "starting"])
def test_the_address_of_the_gateway_is_that_of_a_ready_one(state: str) -> None:
    row = {"service": "gateway", "state": state, "address": "http://127.0.0.1:8421"}
    shown = _Asked(_state(), [row]).views._gateway()
    assert shown is not None
    assert (shown["state"], bool(shown["console"])) == (state, state == "ready")


def test_a_page_of_waiting_messages_begins_behind_the_last_one() -> None:
    state, pages = _state(), list[Table]()
    waiting = (Message(f"m{seq}", "x", BusyMode.QUEUE, 1.0, seq=seq) for seq in (4, 5, 9))
    state.sessions["s"] = Session("s", waiting=deque(waiting))
    for after in ("", place(4), place(9)):
        _Asked(state).views.queue("s", after, pages.append, lambda error: pytest.fail(error.fault))
    found = [[row["message"] for row in page.rows] for page in pages]
    assert found == [["m4", "m5", "m9"], ["m5", "m9"], []]
