"""A frame counts only if every one of its fences holds: each alone is enough to make it an echo."""

from collections.abc import Callable

import pytest

from supervisor.core import turns
from supervisor.core.decide import decide
from supervisor.core.effects import Decision
from supervisor.core.events import (
    Finished,
    TextStreamed,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
    WorkerUnreachable,
)
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Proof, State, TurnState, Verdict, Who, WorkerState
from tests.world import World


@pytest.fixture
def world() -> World:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    return world


def _is_running(state: State, who: Who, turn: str, attempt: int) -> bool:
    return turns.running(state, who, turn, attempt) is not None


@pytest.mark.parametrize(
    ("who", "turn", "attempt"),
    [
        (Who(2, 0, 1), "s/1", 1),
        (Who(1, 1, 1), "s/1", 1),
        (Who(1, 0, 2), "s/1", 1),
        (Who(1, 0, 1), "s/2", 1),
        (Who(1, 0, 1), "t/1", 1),
        (Who(1, 0, 1), "s/1", 2),
    ],
)
def test_a_frame_with_one_wrong_number_is_an_echo(world: World, who: Who, turn: str, attempt: int) -> None:
    world.says("s", "hello")
    assert _is_running(world.state, Who(1, 0, 1), "s/1", 1)
    assert not _is_running(world.state, who, turn, attempt)


def _stop(state: State) -> None:
    turn = state.sessions["s"].turn
    assert turn is not None
    assert turn.attempt is not None
    turn.attempt.verdict = Verdict(TurnState.INTERRUPTED)


def _give_away(state: State) -> None:
    turn = state.sessions["s"].turn
    assert turn is not None
    assert turn.attempt is not None
    turn.attempt.who = Who(1, 7, 7)


def _dying(state: State) -> None:
    state.workers[0].state = WorkerState.DYING


def _resting(state: State) -> None:
    state.workers[0].state = WorkerState.RESTING


@pytest.mark.parametrize("change", [_stop, _give_away, _dying, _resting])
def test_a_frame_of_an_attempt_that_counts_no_more_is_an_echo(
    world: World, change: Callable[[State], None]
) -> None:
    world.says("s", "hello")
    change(world.state)
    assert not _is_running(world.state, Who(1, 0, 1), "s/1", 1)


def test_a_worker_that_repeats_itself_does_not_touch_its_next_turn(world: World) -> None:
    world.says("s", "one")
    world.says("t", "two")
    world.finishes("s/1")
    world.ready(0)
    who = world.process(0).who
    world.tell(TextStreamed(who, "s/1", 1, "late"))
    world.tell(Finished(who, "s/1", 1, "again", 1, 1))
    assert world.witness.open_turns == {"t": "t/1"}


def test_a_worker_that_repeats_itself_does_not_touch_its_next_attempt(world: World) -> None:
    world.says("s", "one")
    world.fails("s/1", again=True)
    world.ready(0)
    world.tell(Finished(world.process(0).who, "s/1", 1, "late", 1, 1))
    assert world.witness.open_turns == {"s": "s/1"}


def test_a_dead_process_does_not_speak_for_the_next_one_in_its_seat(world: World) -> None:
    dead = world.process(0).who
    world.says("s", "one")
    world.dies(0)
    world.tell(WorkerReady(dead))
    world.tell(WorkerDied(0, dead.incarnation, Proof(1, True, 1.0, "late"), Reason(EndReason.KILLED)))
    world.tell(WorkerStarted(0, dead.incarnation, 4711))
    assert [worker.state for worker in world.state.workers.values()] == [WorkerState.STARTING]
    assert world.state.workers[0].pid == 0


def test_an_empty_seat_has_no_process(world: World) -> None:
    dead = world.process(0).who
    world.dies(0)
    world.tell(WorkerStarted(0, dead.incarnation, 4711))
    assert world.state.workers[0].state is WorkerState.RESTING
    assert world.state.workers[0].pid == 0


def test_a_frame_of_another_epoch_reaches_no_worker_of_this_one(world: World) -> None:
    """Seat and incarnation begin anew with each life of the supervisor, so they may well be the same."""
    before = repr(world.state)
    decided = decide(world.state, WorkerUnreachable(Who(2, 0, 1), Reason(EndReason.NOT_CONNECTED)), world.now)
    assert decided == Decision((), (), None)
    assert repr(world.state) == before
    assert decide(
        world.state, WorkerUnreachable(Who(1, 0, 1), Reason(EndReason.NOT_CONNECTED)), world.now
    ).effects


def test_a_worker_at_work_that_calls_itself_ready_gets_no_second_turn(world: World) -> None:
    world.says("s", "one")
    world.says("s", "two")
    world.ready(0)
    assert world.state.workers[0].state is WorkerState.BUSY
    assert world.state.workers[0].turn == "s/1"


def test_a_worker_is_not_ready_because_the_one_before_it_was() -> None:
    """The one before was ready before its start was reported, and died before that report."""
    world = World(Policy(busy_seats=1, spares=0))
    world.ready(0)
    dead = world.process(0).who
    world.dies(0)
    world.passes(1.0)
    assert world.process(0).who.incarnation > dead.incarnation
    world.starts(0)
    assert [worker.state for worker in world.state.workers.values()] == [WorkerState.STARTING]
    world.ready(0)
    assert [worker.state for worker in world.state.workers.values()] == [WorkerState.IDLE]
