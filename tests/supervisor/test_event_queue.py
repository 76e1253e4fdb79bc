"""The queue of events that are not decided yet: their order, what wakes the engine, and what is dropped."""

from supervisor.core.events import (
    DrainAsked,
    Event,
    HostRead,
    StopAsked,
    UndrainAsked,
    WorkerAlive,
    WorkerDied,
)
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Proof, Who
from supervisor.event_queue import EventQueue, GiveAnswer

ALIVE = WorkerAlive(Who(1, 0, 1), "loop")
DEATH = WorkerDied(0, 1, Proof(1, True, 1.0, "pidns"), Reason(EndReason.EXITED))


class Desk:
    """A queue, the times that it woke, and the deaths that it has shown."""

    def __init__(self) -> None:
        self.now = 100.0
        self.queue = EventQueue(lambda: self.now)
        self.woken: list[bool] = []
        self.deaths: list[WorkerDied] = []
        self.queue.open(lambda: self.woken.append(self.queue.is_urgent))
        self.queue.show_deaths(self.deaths.append)

    def taken(self, events_max: int = 100) -> list[Event]:
        return [event for event, _ in self.queue.take(events_max)]


def test_events_are_taken_once_in_their_order_and_with_their_answers() -> None:
    desk, answers = Desk(), list[str]()
    give: GiveAnswer = lambda answer: answers.append(str(answer))  # noqa: E731
    assert desk.queue.is_empty
    desk.queue.post(DrainAsked())
    desk.queue.post(lambda: UndrainAsked(), give)
    desk.queue.post(StopAsked())
    assert list(desk.queue.take(2)) == [(DrainAsked(), None), (UndrainAsked(), give)]
    assert not desk.queue.is_empty
    assert desk.taken() == [StopAsked()]
    assert desk.taken() == []
    assert desk.queue.is_empty


def test_an_event_wakes_the_engine_and_one_that_can_wait_does_not() -> None:
    desk = Desk()
    desk.queue.post(DrainAsked(), can_wait=True)
    assert (desk.woken, desk.queue.is_urgent, desk.queue.waiting_since) == ([], False, None)
    desk.queue.post(StopAsked())
    assert desk.woken == [True]
    assert desk.queue.waiting_since == 100.0
    desk.now = 101.0
    desk.queue.post(UndrainAsked())
    assert desk.queue.waiting_since == 100.0, "since the first of them"


def test_what_could_wait_is_not_counted_when_it_is_taken() -> None:
    desk = Desk()
    desk.queue.post(DrainAsked(), can_wait=True)
    desk.queue.post(StopAsked())
    assert desk.taken() == [DrainAsked(), StopAsked()]
    assert (desk.queue.is_urgent, desk.queue.waiting_since) == (False, None)
    desk.queue.post(UndrainAsked())
    assert desk.queue.is_urgent


def test_the_wait_begins_again_for_what_a_batch_leaves() -> None:
    desk = Desk()
    for event in (DrainAsked(), StopAsked()):
        desk.queue.post(event)
    desk.now = 105.0
    assert desk.taken(1) == [DrainAsked()]
    assert (desk.queue.is_urgent, desk.queue.waiting_since) == (True, 105.0)
    assert desk.taken(1) == [StopAsked()]
    assert (desk.queue.is_urgent, desk.queue.waiting_since) == (False, None)


def test_what_is_posted_during_a_batch_waits_for_the_next() -> None:
    desk = Desk()
    desk.queue.post(DrainAsked())
    found = []
    for event, _ in desk.queue.take(100):
        found.append(event)
        desk.queue.post(StopAsked())
    assert found == [DrainAsked()]
    assert desk.taken() == [StopAsked()]


def test_a_death_is_shown_as_soon_as_it_is_posted() -> None:
    desk = Desk()
    desk.queue.post(ALIVE)
    desk.queue.post(DEATH)
    assert desk.deaths == [DEATH]
    assert desk.taken() == [ALIVE, DEATH]


def test_signs_of_life_are_dropped_while_nothing_can_be_written() -> None:
    desk = Desk()
    desk.queue.is_in_trouble = True
    desk.queue.post(ALIVE)
    desk.queue.post(HostRead(0, 0.0))
    assert (desk.queue.is_empty, desk.woken) == (True, [])
    desk.queue.post(DEATH)
    assert desk.taken() == [DEATH]
