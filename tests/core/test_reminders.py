"""A reminder that no longer applies is ignored when it comes, and leaves none behind."""

import heapq
from dataclasses import replace

import pytest

from supervisor.core.decide import decide, next_deadline
from supervisor.core.effects import StartWorker
from supervisor.core.events import TextStreamed, Ticked
from supervisor.core.obsolete_timers import KEPT_MIN
from supervisor.core.policy import Policy
from supervisor.core.state import Outage, WorkerState
from supervisor.core.timers import (
    Due,
    LifeDue,
    OutageDue,
    ReadyDue,
    RestDue,
    RetryDue,
    SilenceDue,
    SparesDue,
    TurnDue,
)
from tests.world import World


def _reminders(world: World, kind: type[Due]) -> int:
    return sum(isinstance(due, kind) for _, _, due in world.state.deadlines)


def test_reminders_of_ended_attempts_are_gone_when_their_time_has_come() -> None:
    world = World(Policy(busy_seats=1, spares=0, silence_seconds=10.0, attempts_max=9))
    world.worker_ready()
    for number in range(1, 4):
        world.says("s", "hello")
        world.fails(f"s/{number}", again=True)
        world.ready(0)
        world.finishes(f"s/{number}")
        world.ready(0)
    world.says("s", "hello")
    world.fails("s/4", again=True)
    world.ready(0)
    world.passes(9.0)
    world.speaks("s/4", "still here")
    world.passes(9.0)
    assert _reminders(world, SilenceDue) == 1


def test_a_turn_has_one_deadline_whatever_its_attempts() -> None:
    world = World(Policy(busy_seats=1, spares=0, attempts_max=9))
    world.worker_ready()
    world.says("s", "hello")
    for _ in range(3):
        world.fails("s/1", again=True)
        world.ready(0)
        world.passes(3.0)
    assert _reminders(world, TurnDue) == 1


@pytest.mark.parametrize("state", [WorkerState.RESTING, WorkerState.FAILED, WorkerState.DYING])
def test_looking_for_life_where_there_is_none_forgives_nothing(state: WorkerState) -> None:
    world = World(Policy(busy_seats=1, spares=0))
    worker = world.state.workers[0]
    worker.state, worker.starts_failed, worker.pulse_at = state, 2, world.now
    world.state.deadlines = [(world.now, 0, LifeDue(0, worker.incarnation))]
    decide(world.state, Ticked(), world.now)
    assert worker.starts_failed == 2
    assert next_deadline(world.state) is None


def test_a_rest_of_an_earlier_process_does_not_start_another_one() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    incarnation = world.state.workers[0].incarnation
    world.state.deadlines = [(world.now, 0, RestDue(0, incarnation - 1))]
    assert decide(world.state, Ticked(), world.now).effects == ()
    assert world.state.workers[0].incarnation == incarnation


# 0.3 is no sum of powers of two: added to a time and taken away again, it comes out a little smaller.
@pytest.mark.parametrize("policy", [Policy(pulse_seconds=0.3), Policy(silence_seconds=0.3)])
def test_a_reminder_is_due_at_the_moment_it_asked_for(policy: Policy) -> None:
    """Rounding may not make it ask for the same moment again, for ever."""
    world = World(replace(policy, busy_seats=1, spares=0))
    assert (world.now + 0.3) - world.now < 0.3
    world.worker_ready()
    world.says("s", "hello")
    world.falls_silent(0)
    world.passes(0.3)
    assert world.process(0).is_killed


def test_what_is_due_has_its_effect_also_when_a_word_of_an_answer_brings_the_time() -> None:
    """Words alone move no seat, so nothing is placed for them."""
    world = World(Policy(busy_seats=1, spares=1))
    world.worker_ready()
    world.says("s", "hello")
    busy, spare = world.process(world.state.seat_of["s"]).who, 1 - world.state.seat_of["s"]
    world.dies(spare)
    assert world.state.workers[spare].state is WorkerState.RESTING
    spoke = TextStreamed(busy, "s/1", 1, "words")
    assert not decide(world.state, spoke, world.now).effects
    later = decide(world.state, spoke, world.now + world.policy.rest_seconds_max)
    assert [effect.seat for effect in later.effects if isinstance(effect, StartWorker)] == [spare]


def test_a_rest_that_was_ended_does_not_move_its_turn_again() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    world.says("s", "hello")
    world.cannot_ask("s/1")
    world.ready(0)
    world.drains()
    world.model_is("ready")
    place = world.state.queued["s"]
    world.passes(3.0)
    assert world.state.queued["s"] is place


def test_only_timers_without_a_subject_are_removed() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    world.says("s", "hello")
    world.fails("s/1", again=True)
    world.ready(0)
    world.state.outages["away"] = Outage(0.0, "error", "hint", 0.0, 0.0)
    worker, session = world.state.workers[0], world.state.sessions["s"]
    turn = session.turn
    assert turn is not None
    assert turn.attempt is not None
    turn.pauses, seat, incarnation = 1, worker.seat, worker.incarnation
    kept: list[Due] = [
        TurnDue("s", "s/1", 1),
        SilenceDue("s", "s/1", 2),
        RetryDue("s", "s/1", 2),
        ReadyDue(seat, incarnation, worker.turns),
        LifeDue(seat, incarnation),
        RestDue(seat, incarnation),
        OutageDue("away"),
        SparesDue(),
    ]
    obsolete: list[Due] = [
        TurnDue("s", "s/2", 1),
        TurnDue("s", "s/1", 0),
        TurnDue("other", "s/1", 1),
        SilenceDue("s", "s/2", 2),
        SilenceDue("s", "s/1", 1),
        RetryDue("s", "s/2", 2),
        RetryDue("s", "s/1", 1),
        ReadyDue(seat, incarnation, worker.turns - 1),
        ReadyDue(seat, incarnation - 1, worker.turns),
        ReadyDue(seat + 1, incarnation, worker.turns),
        LifeDue(seat, incarnation - 1),
        RestDue(seat, incarnation - 1),
        OutageDue("back"),
    ]
    # In descending order, so that the rest of the heap is none until it is made one again.
    later = [world.now + 1000.0 - number for number in range(len(obsolete) * KEPT_MIN)]
    dues = kept + obsolete * KEPT_MIN
    world.state.deadlines = [(at, number, dues[number]) for number, at in enumerate(later)]
    heapq.heapify(world.state.deadlines)
    decide(world.state, Ticked(), world.now)
    left = [heapq.heappop(world.state.deadlines) for _ in range(len(world.state.deadlines))]
    assert {due for _, _, due in left} == set(kept)
    assert left == sorted(left)


def test_timers_are_looked_through_once_for_as_many_new_ones() -> None:
    """Many that apply do not make every decision look at all of them."""
    world = World(Policy(busy_seats=1, spares=0))
    worker = world.state.workers[0]
    alive = LifeDue(worker.seat, worker.incarnation)
    world.state.deadlines = [(world.now + 1.0, number, alive) for number in range(3 * KEPT_MIN)]
    decide(world.state, Ticked(), world.now)
    gone = (world.now + 2.0, 10**6, LifeDue(worker.seat, worker.incarnation - 1))
    world.state.deadlines.append(gone)
    decide(world.state, Ticked(), world.now)
    assert gone in world.state.deadlines


def test_interrupts_and_deaths_leave_no_growing_number_of_timers() -> None:
    world = World(Policy(busy_seats=1, spares=0))
    world.worker_ready()
    for number in range(1, 151):
        world.says("s", "hello")
        if number % 3:
            world.interrupts("s")
        world.dies(0)
        world.worker_ready()
        if not number % 3:
            world.finishes(f"s/{number}")
            world.ready(0)
    assert world.state.deadlines_made > 8 * KEPT_MIN
    assert len(world.state.deadlines) <= 2 * KEPT_MIN
