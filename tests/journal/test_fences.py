"""A write that finds another state than it was decided on is refused, and with it everything beside it."""

from dataclasses import replace

import pytest

from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    AttemptStopped,
    AttemptStreamed,
    CursorMoved,
    MessageDropped,
    Record,
    SessionHeld,
    SessionReleased,
    ToolCallFinished,
    ToolCallStarted,
    TurnDone,
    TurnFailed,
    TurnInterrupted,
    TurnJoined,
    TurnOpened,
    TurnSteered,
)
from supervisor.core.state import Proof, TurnState, Verdict, Who
from supervisor.journal.errors import JournalFenced
from supervisor.journal.snapshot import durable
from tests.journal.conftest import Shelf
from tests.journal.lives import accepted

WHO = Who(1, 0, 1)
PROOF = Proof(1, True, 1.0, "pidns")
OPENED = TurnOpened(session="s", at=2.0, seq=2, turn="s/1", number=1, messages=("m_s_1",))
ATTEMPT = AttemptOpened(session="s", at=3.0, seq=3, turn="s/1", attempt=1, who=WHO, pid=7)
STOPPED = AttemptStopped(
    session="s", at=4.0, turn="s/1", attempt=1, verdict=Verdict(TurnState.INTERRUPTED, by="me")
)
INTERRUPTED = TurnInterrupted(
    session="s", at=5.0, seq=4, turn="s/1", attempt=1, by="me", partial="", killed=PROOF
)
DONE = TurnDone(session="s", at=5.0, seq=4, turn="s/1", attempt=1, text="", input_tokens=0, output_tokens=0)
FAILED = TurnFailed(session="s", at=5.0, seq=4, turn="s/1", attempt=1, error="e", hint="h")
REASON = Reason(EndReason.EXITED, "r")
LOST = AttemptLost(session="s", at=5.0, seq=4, turn="s/1", attempt=1, reason=REASON, losses=1)
SPOKE = AttemptStreamed(session="s", at=4.0, turn="s/1", attempt=1, offset=0, text="abc")
TOOL = ToolCallStarted(
    session="s",
    at=5.0,
    seq=4,
    turn="s/1",
    attempt=1,
    call="c",
    name="n",
    summary="",
    arguments="",
    repeat="pure",
    offset=0,
)
TOOL_END = ToolCallFinished(
    session="s", at=5.0, seq=4, turn="s/1", attempt=1, call="c", name="n", ok=True, ms=1, result=""
)
STEERED = TurnSteered(session="s", at=5.0, seq=4, turn="s/1", attempt=1, message="m_s_2")
JOINED = TurnJoined(session="s", at=4.0, seq=4, turn="s/1", messages=("m_s_3",))
WAITING = (accepted(1),)
QUEUED = (*WAITING, OPENED)
RUNNING = (*QUEUED, ATTEMPT)
DYING = (*RUNNING, STOPPED)
OVER = (*RUNNING, DONE)
SECOND = AttemptOpened(session="s", at=6.0, seq=5, turn="s/1", attempt=2, who=WHO, pid=8)
# The first attempt is lost, the second runs: whatever still comes in the name of the first is an echo.
AGAIN = (*RUNNING, SPOKE, LOST, SECOND)
# A session with as many events as the running one, for records that name the wrong of the two.
OTHER = tuple(accepted(number, session="t") for number in (1, 2, 3))


def renumbered(record: Record, seq: int) -> Record:
    return replace(record, seq=seq)


MOVED = CursorMoved(session="s", at=3.0, cursor="bridge", seen=2, before=0)
REFUSED: dict[str, tuple[tuple[Record, ...], Record]] = {
    "a gap in the feed": (WAITING, accepted(3)),
    "a number twice in the feed": (WAITING, accepted(2, seq=1)),
    "a feed that begins in the middle": ((), accepted(2)),
    "a message twice": (WAITING, renumbered(accepted(1), 2)),
    "a drop of a message that is taken": (
        QUEUED,
        MessageDropped(session="s", at=3.0, seq=3, message="m_s_1", by="b"),
    ),
    "a drop of a message nobody sent": (
        WAITING,
        MessageDropped(session="s", at=3.0, seq=2, message="m_?", by="b"),
    ),
    "a release of what is not held": (WAITING, SessionReleased(session="s", at=2.0, seq=2)),
    "a second hold": (
        (*WAITING, SessionHeld(session="s", at=2.0, seq=2, waiting=1)),
        SessionHeld(session="s", at=3.0, seq=3, waiting=1),
    ),
    "a turn in a held session": (
        (*WAITING, SessionHeld(session="s", at=2.0, seq=2, waiting=1)),
        renumbered(OPENED, 3),
    ),
    "a second turn beside an open one": (
        (*QUEUED, accepted(3)),
        TurnOpened(session="s", at=4.0, seq=4, turn="s/2", number=2, messages=("m_s_3",)),
    ),
    "a turn for a message that is taken": (
        OVER,
        TurnOpened(session="s", at=6.0, seq=5, turn="s/2", number=2, messages=("m_s_1",)),
    ),
    "a turn number left out": (
        WAITING,
        TurnOpened(session="s", at=2.0, seq=2, turn="s/2", number=2, messages=("m_s_1",)),
    ),
    "a second attempt beside an open one": (
        RUNNING,
        AttemptOpened(session="s", at=4.0, seq=4, turn="s/1", attempt=2, who=WHO, pid=7),
    ),
    "words of an attempt that never began": (QUEUED, SPOKE),
    "words of a stopped attempt": (DYING, SPOKE),
    "words of an ended turn": (OVER, SPOKE),
    "words after a gap": (
        (*RUNNING, SPOKE),
        AttemptStreamed(session="s", at=5.0, turn="s/1", attempt=1, offset=4, text="x"),
    ),
    "words twice": ((*RUNNING, SPOKE), SPOKE),
    "a second stop": (DYING, STOPPED),
    "a loss of a stopped attempt": (DYING, LOST),
    "an answer of a stopped attempt": (DYING, DONE),
    "a failure where an interrupt was decided": (DYING, FAILED),
    "an interrupt of an attempt nobody stopped": (RUNNING, INTERRUPTED),
    "an end of a turn that never began to run": (QUEUED, renumbered(DONE, 3)),
    "a second end": (OVER, renumbered(FAILED, 5)),
    "an interrupt after the end": (OVER, renumbered(INTERRUPTED, 5)),
    "a tool of a stopped attempt": (DYING, TOOL),
    "an end of a tool that never began": (RUNNING, TOOL_END),
    "an end of a tool of a stopped attempt": (
        (*RUNNING, TOOL, STOPPED),
        renumbered(TOOL_END, 5),
    ),
    "a message that joins a turn that has begun": (
        (*RUNNING, accepted(4)),
        replace(JOINED, seq=5, messages=("m_s_4",)),
    ),
    "a message that joins a turn between two attempts": (
        (*RUNNING, LOST, accepted(5)),
        replace(JOINED, seq=6, messages=("m_s_5",)),
    ),
    "a message that joins and does not wait": (QUEUED, renumbered(JOINED, 3)),
    "a message that joins twice": ((*QUEUED, accepted(3), JOINED), renumbered(JOINED, 5)),
    "a steer by a message that does not wait": (RUNNING, STEERED),
    "a steer by a message of another session": (
        (*RUNNING, accepted(1, session="t")),
        replace(STEERED, message="m_t_1"),
    ),
    "a steer of a stopped attempt": (
        (*RUNNING, accepted(4), STOPPED),
        TurnSteered(session="s", at=5.0, seq=5, turn="s/1", attempt=1, message="m_s_4"),
    ),
    "a failure of another attempt": (
        RUNNING,
        TurnFailed(session="s", at=5.0, seq=4, turn="s/1", attempt=2, error="e", hint="h"),
    ),
    "an attempt number left out": (
        QUEUED,
        AttemptOpened(session="s", at=3.0, seq=3, turn="s/1", attempt=2, who=WHO, pid=7),
    ),
    "an attempt number twice": ((*RUNNING, LOST), renumbered(ATTEMPT, 5)),
    "losses that become fewer": (AGAIN, replace(LOST, seq=6, attempt=2, losses=0)),
    "an end of a tool that has ended": ((*RUNNING, TOOL, renumbered(TOOL_END, 5)), renumbered(TOOL_END, 6)),
    "a steer by a dropped message": (
        (*RUNNING, accepted(4), MessageDropped(session="s", at=5.0, seq=5, message="m_s_4", by="b")),
        replace(STEERED, seq=6, message="m_s_4"),
    ),
    "an interrupt of a lost attempt's successor": (AGAIN, renumbered(INTERRUPTED, 6)),
    "a cursor that moves back": ((*RUNNING, MOVED), replace(MOVED, seen=1, before=2)),
    "a cursor that stays": ((*RUNNING, MOVED), replace(MOVED, before=2)),
    "a cursor that was elsewhere": ((*RUNNING, MOVED), replace(MOVED, seen=3, before=1)),
    "a cursor that is not new": ((*RUNNING, MOVED), replace(MOVED, seen=3)),
    "a cursor beyond the feed": (RUNNING, replace(MOVED, seen=4)),
    "a cursor in a session that nobody spoke to": (RUNNING, replace(MOVED, session="nowhere")),
    **{
        f"an echo of the first attempt: {type(echo).__name__}": (AGAIN, renumbered(echo, seq))
        for echo, seq in (
            (replace(SPOKE, offset=3), 0),
            (STOPPED, 0),
            (LOST, 6),
            (DONE, 6),
            (FAILED, 6),
            (TOOL, 6),
        )
    },
    "an echo of a steer": ((*AGAIN, accepted(6)), replace(STEERED, seq=7, message="m_s_6")),
    "an echo of a tool": (
        (*RUNNING, TOOL, renumbered(LOST, 5), renumbered(SECOND, 6)),
        renumbered(TOOL_END, 7),
    ),
    **{
        f"in the name of another session: {type(record).__name__}": (
            (*before, *OTHER),
            replace(record, session="t", seq=4 if record.seq else 0),
        )
        for before, record in (
            (WAITING, MessageDropped(session="s", at=3.0, seq=2, message="m_s_1", by="b")),
            (WAITING, OPENED),
            (QUEUED, ATTEMPT),
            (RUNNING, SPOKE),
            (RUNNING, LOST),
            (RUNNING, TOOL),
            ((*RUNNING, accepted(4)), replace(STEERED, message="m_s_4")),
            (RUNNING, DONE),
            (RUNNING, FAILED),
            (DYING, INTERRUPTED),
        )
    },
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_record_that_does_not_fit_is_refused_whole(shelf: Shelf, case: str) -> None:
    before, refused = REFUSED[case]
    journal = shelf.open()
    if before:
        journal.commit_now(before)
    known = durable(journal.load(Policy()))
    other = accepted(1, session="bystander")
    with pytest.raises(JournalFenced):
        journal.commit_now([other, refused])
    assert durable(journal.load(Policy())) == known
    assert journal.cursors("s") == ({"bridge": 2} if MOVED in before else {})
    assert journal.known(other.message) is None
    for session in ("s", "t"):
        told = sum(record.seq > 0 and record.session == session for record in before)
        assert len(journal.read.events_after(session, 0, 100)) == journal.read.session_seq(session) == told


def test_a_refusal_does_not_tell_what_was_said(shelf: Shelf) -> None:
    journal = shelf.open()
    journal.commit_now([accepted(1, text="the secret")])
    for record in (renumbered(accepted(1, text="the secret"), 2), accepted(2, text="the secret \ud800")):
        with pytest.raises(JournalFenced) as refusal:
            journal.commit_now([record])
        assert "secret" not in str(refusal.value)


def test_the_same_message_twice_is_one_also_when_it_begins_at_once(shelf: Shelf) -> None:
    """A message's id is made from its session and key, so this is the same key sent twice."""
    journal = shelf.open()
    first = accepted(1)
    journal.commit_now([first])
    assert (found := journal.known(first.message))
    assert found.seq == 1
    again = replace(accepted(2), message=first.message)
    opened = replace(OPENED, seq=3)
    with pytest.raises(JournalFenced):
        journal.commit_now([again, opened, replace(ATTEMPT, seq=4)])
    assert journal.read.session_seq("s") == 1
