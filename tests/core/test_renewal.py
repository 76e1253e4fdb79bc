"""Other settings while turns run: the policy at once, workers one by one, and no turn is touched."""

from dataclasses import replace

from supervisor.core.effects import KillWorker, StartWorker
from supervisor.core.events import PolicyChanged, RenewalAsked
from supervisor.core.policy import Policy
from supervisor.core.state import WorkerState
from tests.world import World, agent_of


def world_with(seats: int) -> World:
    world = World(Policy(busy_seats=seats, spares=0))
    world.worker_ready()
    return world


def killed(world: World, since: int) -> list[tuple[int, str]]:
    """Seats of which the process was killed from that step on, and why."""
    effects = [effect for step in world.steps[since:] for effect in step.decision.effects]
    return [(effect.seat, str(effect.why)) for effect in effects if isinstance(effect, KillWorker)]


def replaced(world: World, seat: int) -> None:
    """What the host does with a seat whose worker it was told to kill."""
    world.dies(seat, "renewed")
    world.starts(seat)
    world.ready(seat)


def test_idle_workers_give_way_one_at_a_time() -> None:
    world = world_with(3)
    known = len(world.steps)
    world.tell(RenewalAsked())
    assert killed(world, known) == [(0, "renewed")]
    world.beats(1, "pulse")
    assert len(killed(world, known)) == 1
    replaced(world, 0)
    assert killed(world, known) == [(0, "renewed"), (1, "renewed")]
    replaced(world, 1)
    replaced(world, 2)
    assert killed(world, known) == [(0, "renewed"), (1, "renewed"), (2, "renewed")]
    assert not world.state.outdated
    assert {worker.incarnation for worker in world.state.workers.values()} == {4, 5, 6}


def test_only_workers_of_the_agents_whose_sandbox_has_changed_give_way() -> None:
    world = World(Policy(agent_of("p:poet"), busy_seats=2, spares=0))
    world.worker_ready()
    world.says("p", "one")
    world.dies(0, "makes room")
    world.worker_ready()
    world.finishes("p/1")
    world.ready(0)
    known = len(world.steps)
    world.tell(RenewalAsked(frozenset({"somebody else"})))
    assert killed(world, known) == []
    world.tell(RenewalAsked(frozenset({"poet"})))
    replaced(world, 0)
    assert killed(world, known) == [(0, "renewed")]


def test_a_busy_worker_gives_way_after_its_turn_even_if_another_waits() -> None:
    world = world_with(1)
    world.says("s", "one", "queue")
    known = len(world.steps)
    world.tell(RenewalAsked())
    world.says("t", "two", "queue")
    world.speaks("s/1", "words")
    assert killed(world, known) == []
    world.finishes("s/1")
    world.ready(0)
    assert killed(world, known) == [(0, "renewed")]
    replaced(world, 0)
    assert world.state.sessions["t"].turn is not None
    assert world.state.workers[0].session == "t"


def test_settings_under_which_no_worker_lives_cost_one_seat() -> None:
    world = world_with(3)
    known = len(world.steps)
    world.tell(RenewalAsked())
    world.dies(0, "renewed")
    world.dies(0, "there is not enough memory to start")
    assert world.state.workers[0].state is WorkerState.RESTING
    assert killed(world, known) == [(0, "renewed")]
    world.says("s", "one", "queue")
    assert world.state.workers[1].state is WorkerState.BUSY


def test_a_seat_that_is_empty_anyway_is_not_outdated() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.dies(0, "cannot import")
    world.tell(RenewalAsked())
    assert not world.state.outdated


def test_a_new_policy_holds_from_the_next_decision_on() -> None:
    world = world_with(1)
    known = len(world.steps)
    world.tell(PolicyChanged(replace(world.state.policy, busy_seats=2, turns_per_worker_max=1)))
    started = [effect for effect in world.steps[known].decision.effects if isinstance(effect, StartWorker)]
    assert [effect.seat for effect in started] == [1]
    world.says("s", "one", "queue")
    world.finishes("s/1")
    world.ready(0)
    assert killed(world, known) == [(0, "recycled")]
