"""A question that is open for long holds nothing but its row: no worker, no seat, no timer."""

import pytest

from supervisor.core.policy import Policy
from supervisor.core.state import TurnState, WorkerState
from tests.world import World


@pytest.mark.parametrize("holds", [True, False])
def test_a_question_open_for_an_hour_holds_nothing(holds: bool) -> None:
    world = World(Policy(busy_seats=1, spares=0, hold_seconds=120.0))
    world.worker_ready()
    world.says("s", "paint the house")
    if holds:
        world.holds("s/1", "Which colour?")
        world.passes(121.0)
        world.dies(0)
        world.worker_ready()
    else:
        world.asks("s/1", "Which colour?")
        world.ready(0)
    world.passes(3600.0)
    turn = world.state.sessions["s"].turn
    assert turn is not None
    assert (turn.state, turn.attempt) == (TurnState.ASKING, None)
    assert not world.state.busy
    assert [worker.state for worker in world.state.workers.values()] == [WorkerState.IDLE]
    assert not [due for _, _, due in world.state.deadlines if getattr(due, "turn", None)]
