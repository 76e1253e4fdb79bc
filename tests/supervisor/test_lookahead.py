"""What a batch needs of a journal on a server is asked before it, and of no event that came later."""

import pytest

from supervisor.clients.interrupts import _Asked, _Late
from supervisor.core import events
from supervisor.core.policy import Policy
from supervisor.core.records import MessageAccepted
from supervisor.core.state import BusyMode, Session
from supervisor.decider import Decider
from supervisor.enrichment import Lookup
from supervisor.event_queue import EventQueue, Happened
from supervisor.lookahead import Wanted, wanted
from tests.memory_journal import MemoryJournal
from tests.no_containment import uncontained
from tests.world import World

INTERRUPT = events.InterruptAsked("s", "someone")
HAPPENED: dict[str, Happened] = {
    "text": events.TextArrived("s", "m", "m", "hello", BusyMode.QUEUE),
    "clip": events.VoiceArrived("s", "m", "m", "clip", BusyMode.QUEUE),
    "beginning": events.BeginAsked("s", "k", "", 0, ("{}",)),
    "interrupt": INTERRUPT,
    "late interrupt": _Late(_Asked(INTERRUPT, "", 0), lambda asked: None),
    "drop": events.DropAsked("s", None, "someone"),
    "resume": events.ResumeAsked("s"),
    "cursor": events.EventsSeen("s", "bridge", 1),
    "nothing of a session": events.DrainAsked(),
}


class NotingJournal(MemoryJournal):
    """A journal in memory that notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = Wanted()

    def wake(self, session: str) -> Session | None:
        self.asked.sessions.add(session)
        return super().wake(session)

    def known(self, message: str) -> events.Known | None:
        self.asked.messages.add(message)
        return super().known(message)

    def cursors(self, session: str) -> dict[str, int]:
        self.asked.cursors.add(session)
        return super().cursors(session)

    def begun_by(self, session: str) -> str | None:
        self.asked.begun.add(session)
        return super().begun_by(session)


@pytest.mark.parametrize("happened", HAPPENED.values(), ids=HAPPENED)
def test_what_enrichment_asks_was_asked_before(happened: Happened) -> None:
    """The session is at rest: it is in the journal and not in memory."""
    journal = NotingJournal()
    world = World(Policy(busy_seats=1, spares=0), journal)
    world.worker_ready()
    world.says("s", "hello")
    world.finishes("s/1")
    assert "s" not in world.state.sessions
    before = wanted([happened], world.state)
    journal.asked = Wanted()
    Lookup(world.state, journal).prepared(happened() if callable(happened) else happened)
    assert before == journal.asked
    assert bool(before) == (not isinstance(happened, events.DrainAsked)), "or it would not be asked at all"


def test_the_messages_of_a_batch_are_not_remembered_after_it() -> None:
    """The journal has them: a million messages would fill the memory."""
    journal = NotingJournal()
    world = World(Policy(busy_seats=1, spares=0), journal)
    world.says("s", "hello")
    records = [record for step in world.steps for record in step.decision.records]
    [accepted] = [record for record in records if isinstance(record, MessageAccepted)]
    again = events.TextArrived("s", accepted.message, "m", "hello", BusyMode.QUEUE)
    lookup = Lookup(world.state, journal)
    lookup.decided([accepted])
    journal.asked = Wanted()
    assert _known(lookup.prepared(again)) is not None
    assert not journal.asked.messages, "the journal does not have it yet"
    lookup.settled([])
    assert _known(lookup.prepared(again)) is not None
    assert journal.asked.messages == {accepted.message}


def _known(event: events.Event) -> events.Known | None:
    assert isinstance(event, events.TextArrived)
    return event.known


class _Outputs:
    """Notes how often all that has gathered was in the batch."""

    def __init__(self) -> None:
        self.taken: list[bool] = []

    def all_taken(self) -> None:
        self.taken.append(True)

    def committed(self, seconds: float, count: int) -> None: ...


def test_what_happens_while_the_server_is_asked_belongs_to_the_next_batch() -> None:
    journal, outputs = MemoryJournal(), _Outputs()
    queue = EventQueue(lambda: 0.0)
    decider = Decider(
        journal.load(Policy()),
        queue,
        now=lambda: 0.0,
        journal=journal,
        outputs=outputs,
        contain=uncontained(),
    )
    texts = [events.TextArrived(name, name, "k", "hello", BusyMode.QUEUE) for name in ("s", "t")]
    queue.post(texts[0])
    assert decider.wanted().messages == {"s"}
    queue.post(texts[1])
    assert {record.session for record in decider.take()} == {"s"}
    assert not outputs.taken, "what is not in the batch is not acknowledged"
    decider.written()
    decider.performed()
    assert decider.wanted().messages == {"t"}
    assert {record.session for record in decider.take()} == {"t"}
    assert outputs.taken == [True]
