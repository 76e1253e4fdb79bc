"""What a batch needs of a journal on a server is asked before it, and of no event that came later."""

from dataclasses import replace

import pytest

from supervisor.clients.interrupts import _Asked, _Late
from supervisor.core import events
from supervisor.core.policy import Policy
from supervisor.core.records import CursorMoved, MessageAccepted, Record, SessionBegun
from supervisor.core.state import BusyMode, Session
from supervisor.decider import Decider
from supervisor.enrichment import Lookup
from supervisor.event_queue import EventQueue, Happened
from supervisor.lookahead import NewSessions, Wanted, wanted
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
    before = wanted([happened], world.state, NewSessions())
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


_ACCEPTED = MessageAccepted(
    session="s", at=1.0, seq=1, message="s-1", key="k1", kind="text", text="", busy="queue"
)


def _said(number: int, session: str = "s") -> events.TextArrived:
    return events.TextArrived(session, f"{session}-{number}", f"k{number}", "hello", BusyMode.QUEUE)


class _Decided:
    """A decider, batch by batch, beside a journal on a server; no worker is there."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal = journal
        self.queue = EventQueue(lambda: 0.0)
        self.decider = Decider(
            journal.load(Policy()),
            self.queue,
            now=lambda: 0.0,
            journal=journal,
            outputs=_Outputs(),
            contain=uncontained(),
        )

    def batch(self, *happened: events.Event) -> tuple[Wanted, list[Record]]:
        for event in happened:
            self.queue.post(event)
        asked = self.decider.wanted()
        records = self.decider.take()
        self.journal.commit_now(records)
        self.decider.written()
        self.decider.performed()
        return asked, records


def test_the_next_message_of_a_session_that_began_here_costs_no_question() -> None:
    decided = _Decided(MemoryJournal())
    first, _ = decided.batch(_said(1))
    assert (first.sessions, first.messages) == ({"s"}, {"s-1"})
    second, records = decided.batch(_said(2))
    assert not second
    assert [type(record) for record in records] == [MessageAccepted]


def test_a_key_that_a_new_session_has_is_asked_for_and_makes_no_second_message() -> None:
    decided = _Decided(MemoryJournal())
    decided.batch(_said(1))
    decided.batch(_said(2))
    for number in (1, 2):
        asked, records = decided.batch(_said(number))
        assert asked.messages == {f"s-{number}"}
        assert not records


def test_a_key_twice_in_one_batch_of_a_new_session_is_one_message() -> None:
    decided = _Decided(MemoryJournal())
    decided.batch(_said(1))
    asked, records = decided.batch(_said(2), _said(2))
    assert not asked
    assert [record.seq for record in records] == [3]


def test_messages_of_a_session_of_an_earlier_life_are_asked_for() -> None:
    journal = MemoryJournal()
    _Decided(journal).batch(_said(1))
    decided = _Decided(journal)
    assert "s" in decided.decider.state.sessions
    assert decided.batch(_said(2))[0].messages == {"s-2"}
    assert decided.batch(_said(3))[0].messages == {"s-3"}


def test_a_session_that_has_left_memory_is_new_no_more() -> None:
    decided = _Decided(MemoryJournal())
    decided.batch(_said(1))
    asked, _ = decided.batch(events.InterruptAsked("s", "someone"))
    decided.batch(events.ResumeAsked("s"))
    assert "s" not in decided.decider.state.sessions
    asked, _ = decided.batch(_said(2))
    assert (asked.sessions, asked.messages) == ({"s"}, {"s-2"})
    assert decided.batch(_said(3))[0].messages == {"s-3"}, "another host may have had it meanwhile"


def test_a_session_that_comes_back_unnoticed_is_new_no_more() -> None:
    """It was in memory, left without a record of its own, and is loaded again."""
    new, state = NewSessions(), World(Policy(busy_seats=1, spares=0)).state
    state.sessions["s"] = Session("s", seq=1)
    new.take([_ACCEPTED], state)
    assert new.lacks("s", "s-2")
    del state.sessions["s"]
    taken = wanted([events.SessionsTaken(("s",)), _said(2)], state, new)
    assert (taken.sessions, taken.messages) == ({"s"}, {"s-2"})
    state.sessions["s"] = Session("s", seq=5)
    assert wanted([_said(2)], state, new).messages == {"s-2"}


def test_so_many_messages_are_remembered_of_a_session_and_no_more() -> None:
    new, state = NewSessions(), World(Policy(busy_seats=1, spares=0)).state
    state.sessions["s"] = Session("s", seq=1)
    for seq in range(1, 1002):
        assert (seq == 1) or new.lacks("s", f"s-{seq}")
        new.take([replace(_ACCEPTED, seq=seq, message=f"s-{seq}")], state)
    assert not new.lacks("s", "s-1002"), "its messages are asked for from now on"


def test_a_session_at_rest_takes_no_memory() -> None:
    new, state = NewSessions(), World(Policy(busy_seats=1, spares=0)).state
    state.sessions["s"] = Session("s", seq=1)
    new.take([replace(_ACCEPTED, seq=1)], state)
    assert new.lacks("s", "s-2")
    del state.sessions["s"]
    new.take([replace(_ACCEPTED, seq=2)], state)
    assert not new.lacks("s", "s-2")


def test_nothing_of_a_batch_is_kept_after_it() -> None:
    """The journal has it, and may have got more from another host since."""
    journal = NotingJournal()
    lookup = Lookup(World(Policy(busy_seats=1, spares=0), journal).state, journal)
    state = lookup._state
    state.sessions["s"] = Session("s", seq=1)
    begun = SessionBegun(session="s", at=1.0, seq=1, key="k", origin="", through=0, turns=())
    moved = CursorMoved(session="s", at=1.0, cursor="bridge", before=0, seen=3)
    seen, asked = events.EventsSeen("s", "bridge", 4), events.BeginAsked("s", "k", "", 0, ("{}",))
    lookup.decided([begun, moved])
    assert replace(seen, stands_at=3, cursors=1) == lookup.prepared(seen)
    assert replace(asked, known="k") == lookup.prepared(asked)
    lookup.settled([])
    assert "s" not in state.sessions, "it is at rest"
    state.sessions["s"] = Session("s", seq=1)
    journal.asked = Wanted()
    assert replace(seen, stands_at=0, cursors=0) == lookup.prepared(seen)
    assert replace(asked, known=None) == lookup.prepared(asked)
    assert journal.asked == Wanted(cursors={"s"}, begun={"s"})


def test_a_session_that_was_looked_up_for_an_earlier_batch_is_not_put_to_rest_by_a_later_one() -> None:
    """A batch costs what it is about, and not what all batches before it were."""
    journal = MemoryJournal()
    state = World(Policy(busy_seats=1, spares=0), journal).state
    lookup = Lookup(state, journal)
    lookup.prepared(events.ResumeAsked("s"))
    lookup.settled([])
    state.sessions["s"] = Session("s", seq=1)
    lookup.settled([])
    assert "s" in state.sessions


def test_of_sessions_that_are_taken_over_those_in_memory_are_left_as_they_are() -> None:
    """Their turns run here: they are not those of a host that is gone."""
    journal = MemoryJournal()
    world = World(Policy(busy_seats=1, spares=0), journal)
    for session in ("running", "resting"):
        world.worker_ready()
        world.says(session, "hello")
    world.interrupts("resting", drop=True)
    assert set(world.state.sessions) == {"running"}
    taken = Lookup(world.state, journal).prepared(events.SessionsTaken(("running", "resting", "unknown")))
    assert taken == events.SessionsTaken(("resting",))
