"""Time in which the host could not act is held against nobody; few steers are offered at a time."""

from supervisor.core.decide import decide
from supervisor.core.effects import Decision, KillWorker, SteerTurn
from supervisor.core.events import Steered, StoodStill, TextArrived, Ticked
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode
from supervisor.core.turns import OFFERED_CHARACTERS_MAX
from tests.journal.lives import Life
from tests.memory_journal import MemoryJournal
from tests.world import World


def running_life() -> Life:
    life = Life(MemoryJournal(), now=1000.0)
    life.ready(0)
    life.say("m_1", "go")
    return life


def test_nobody_is_killed_for_the_time_the_host_stood_still() -> None:
    life = running_life()
    decision = decide(life.state, StoodStill(10_000.0), 11_000.0)
    assert not any(isinstance(effect, KillWorker) for effect in decision.effects)
    decision = decide(running_life().state, Ticked(), 11_000.0)
    assert any(isinstance(effect, KillWorker) for effect in decision.effects)


def test_deadlines_still_come_after_a_standstill() -> None:
    life = running_life()
    decide(life.state, StoodStill(10_000.0), 11_000.0)
    decision = decide(life.state, Ticked(), 20_000.0)
    assert any(isinstance(effect, KillWorker) for effect in decision.effects)


def test_the_wait_for_a_model_does_not_count_a_standstill() -> None:
    world = World(Policy(busy_seats=2, spares=0, outage_seconds_max=100.0))
    world.worker_ready()
    world.says("s", "hello")
    world.cannot_ask("s/1", asked=60)
    world.ready(0)
    world.says("t", "hello")
    world.stands_still(500.0)
    assert set(world.state.resting) | set(world.state.queued) == {"s", "t"}
    world.passes(59.0)
    assert not world.state.busy
    world.passes(2.0)
    assert world.state.busy
    world.passes(40.0)
    assert world.witness.ended.keys() == {"s/1"}  # the other one is the probe


def test_a_wait_that_began_before_a_standstill_is_as_long_as_any() -> None:
    """Also for a turn that has not begun, when others that waited longer are looked for."""
    world = World(Policy(busy_seats=2, spares=0, outage_seconds_max=6.0))
    world.worker_ready()
    world.says("s", "hello")
    world.cannot_ask("s/1")
    world.ready(0)
    world.says("t", "hello")
    world.passes(1.4)
    world.notes("t/1")
    world.cannot_ask("s/1", asked=60)
    world.ready(0)
    hello = TextArrived("u", "m3", "key-m3", "hello", BusyMode.QUEUE)
    world.tell_while_the_disk_is_full(hello, 3.0, meanwhile=[])
    world.passes(4.5)
    assert not world.witness.ended
    world.passes(0.2)
    assert world.witness.ended.keys() == {"s/1"}
    world.passes(2.0)
    assert world.witness.ended.keys() == {"s/1", "u/1"}


def test_a_turn_refused_after_a_standstill_has_not_waited_for_that_time() -> None:
    world = World(Policy(busy_seats=1, spares=0, outage_seconds_max=100.0))
    world.worker_ready()
    world.says("s", "hello")
    world.cannot_ask("s/1")
    world.ready(0)
    world.stands_still(500.0)
    world.passes(2.0)
    world.cannot_ask("s/1")
    assert not world.witness.ended


def offers(decision: Decision) -> list[str]:
    return [effect.message for effect in decision.effects if isinstance(effect, SteerTurn)]


def test_long_steers_are_offered_one_at_a_time_and_none_overtakes_them() -> None:
    life = running_life()
    half = "x" * (OFFERED_CHARACTERS_MAX // 2)
    texts = {"first": half, "second": half + "x", "short": "and", "third": half}
    assert [offers(life.say(name, text, BusyMode.STEER)) for name, text in texts.items()] == [
        ["first"], [], [], [],
    ]  # fmt: skip
    who = life.who(life.busy_seat())
    assert offers(life.tell(Steered(who, "s/1", 1, "first"))) == ["second", "short"]
    assert offers(life.tell(Steered(who, "s/1", 1, "second"))) == ["third"]


def test_a_message_longer_than_all_that_is_offered_is_offered_alone() -> None:
    life = running_life()
    assert offers(life.say("long", "x" * (OFFERED_CHARACTERS_MAX + 1), BusyMode.STEER)) == ["long"]
    assert offers(life.say("short", "and", BusyMode.STEER)) == []


def test_steers_are_offered_few_at_a_time_and_in_order() -> None:
    life = running_life()
    offered: list[str] = []
    for number in range(100):
        decision = life.say(f"s_{number}", "and", BusyMode.STEER)
        offered += [effect.message for effect in decision.effects if isinstance(effect, SteerTurn)]
    assert offered == [f"s_{number}" for number in range(32)]
    seat = life.busy_seat()
    for number in range(50):
        decision = life.tell(Steered(life.who(seat), "s/1", 1, f"s_{number}"))
        assert [effect.message for effect in decision.effects if isinstance(effect, SteerTurn)] == [
            f"s_{number + 32}"
        ]
