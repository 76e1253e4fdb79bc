"""Time in which the host could not act is held against nobody; few steers are offered at a time."""

from supervisor.core.decide import decide
from supervisor.core.effects import KillWorker, SteerTurn
from supervisor.core.events import Steered, StoodStill, Ticked
from supervisor.core.model import BusyMode
from supervisor.journal.memory import MemoryJournal
from tests.journal.lives import Life


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
