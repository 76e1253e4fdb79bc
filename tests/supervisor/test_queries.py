"""Rows and sentences that no healthy service shows."""

from pathlib import Path
from typing import Any, cast

import pytest

from ipc.messages import Show, Table
from supervisor.clients.queries import Views, in_short
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, Message, Session, State, Turn, Worker, WorkerState
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
