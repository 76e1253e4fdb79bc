"""What is kept across a restart in place, and what is not."""

from dataclasses import replace

from supervisor.core.decide import decide
from supervisor.core.effects import KillWorker, StartWorker, SteerTurn
from supervisor.core.events import Recovered, WorkerKept
from supervisor.core.kept_turns import keepable
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Who
from supervisor.core.turns import OFFERED_CHARACTERS_MAX
from tests.world import World


def at_work() -> tuple[World, Who]:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    world.says("s", "one")
    [kept] = keepable(world.state)
    return world, Who(world.state.epoch, kept.seat, kept.incarnation)


def test_a_worker_that_has_another_turn_than_it_was_given_is_killed_and_the_turn_tried_again() -> None:
    world, who = at_work()
    decision = world.tell(WorkerKept(who, "", 0))
    assert [type(effect) for effect in decision.effects] == [KillWorker]
    world.dies(who.seat)
    world.worker_ready()
    session = world.state.sessions["s"]
    assert session.turn is not None
    assert session.turn.attempts == 2


def test_a_worker_that_has_its_turn_is_left_alone() -> None:
    world, who = at_work()
    assert world.tell(WorkerKept(who, "s/1", 1)).effects == ()


def test_a_kept_turn_is_watched_like_any_other() -> None:
    world, who = at_work()
    world.restart_in_place()
    world.passes(world.policy.silence_seconds + 1)
    killed = [each for step in world.steps for each in step.decision.effects if isinstance(each, KillWorker)]
    assert [each.incarnation for each in killed] == [who.incarnation]


def test_no_number_of_an_incarnation_is_given_twice() -> None:
    world, who = at_work()
    world.restart_in_place()
    world.finishes("s/1")
    world.ready(who.seat)
    world.dies(who.seat)
    [started] = [each for each in world.steps[-1].decision.effects if isinstance(each, StartWorker)]
    assert started.incarnation > who.incarnation


def test_a_kept_worker_whose_turn_is_not_open_any_more_is_ended() -> None:
    world, _ = at_work()
    [kept] = keepable(world.state)
    stranger = replace(kept, seat=7, incarnation=77)
    decision = decide(world.journal.load(world.policy), Recovered((kept, stranger), 77), world.now)
    assert KillWorker(7, 77, Reason(EndReason.TURN_OVER)) in decision.effects


def test_a_kept_worker_is_still_its_agents() -> None:
    world = World(Policy(busy_seats=1, spares=0, agent_of=lambda session: "coder"))
    world.worker_ready()
    world.says("s", "one")
    world.dies(0)  # the first process was for the agent that sessions have by default
    world.worker_ready()
    [before] = world.state.workers.values()
    world.restart_in_place()
    [after] = world.state.workers.values()
    assert (after.session, after.agent, after.level) == ("s", "coder", before.level)


def test_what_waits_behind_offered_messages_is_not_overtaken_after_a_restart() -> None:
    world, _ = at_work()
    # The second does not fit beside the first; the short one would.
    length = OFFERED_CHARACTERS_MAX * 3 // 5
    for text in ("x" * length, "y" * length):
        world.says("s", text, busy="steer")
    world.restart_in_place()
    world.says("s", "short", busy="steer")
    effects = [each for step in world.steps for each in step.decision.effects]
    assert [each.text[0] for each in effects if isinstance(each, SteerTurn)] == ["x"]
