"""One insert for the most frequent batch: a text message that opens its turn and is assigned at once.

Problem: such a message is three records (MessageAccepted, TurnOpened, AttemptOpened). Written one by one
they insert a message and a turn only to update both, and a person waits for that commit.

Method: `folded` recognises the three records in a batch and replaces them by one `Begun`, whose statements
insert every row in its final state. All other records pass through unchanged and in order.

Invariants: rows and events are the same as after the three single writes, and so are the fences. The
session must be at `seq - 1`, with `number - 1` turns and not held; a new session must not exist yet. A clip
is never folded, because its turn opens only after the transcript.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from supervisor.core.records import AttemptOpened, MessageAccepted, Record, TurnOpened
from supervisor.journal.statements import SESSION_COUNTED, Write

FIRST_BEGUN = (
    Write(
        "session.made",
        """INSERT INTO sessions (name, seq, turns, held, created_at, last_at)
           VALUES (:session, 3, 1, 0, :at, :opened_at)""",
    ),
    SESSION_COUNTED,
)
NEXT_BEGUN = (
    Write(
        "session.advanced",
        """UPDATE sessions SET seq = :seq + 2, turns = :number, last_at = :opened_at
           WHERE name = :session AND seq = :seq - 1 AND turns = :number - 1 AND held = 0""",
    ),
)
BEGUN = (
    Write(
        "message.taken",
        """INSERT INTO messages
               (id, session, key, kind, text, busy, state, turn, seq, at, sent_by, agent, instructions)
           VALUES (:message, :session, :key, :kind, :text, :busy, 'taken', :turn, :seq, :at,
               :by, :wanted_agent, :instructions)""",
    ),
    Write(
        "turn.running",
        """INSERT INTO turns (id, session, number, agent, state, messages, opened_at, content_at, attempts)
           VALUES (:turn, :session, :number, :agent, 'running', :messages_json, :opened_at, :at, 1)""",
    ),
    Write(
        "attempt.opened",
        """INSERT INTO attempts (turn, number, epoch, seat, incarnation, pid, level, state, opened_at)
           VALUES (:turn, 1, :epoch, :seat, :incarnation, :pid, :level, 'open', :begun_at)""",
    ),
)
EVENTS_BEGUN = """
    INSERT INTO events (session, seq, at, type, body)
    VALUES (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)"""


@dataclass(frozen=True, slots=True)
class Begun:
    """A new text message, its own turn, and the first attempt."""

    accepted: MessageAccepted
    opened: TurnOpened
    attempt: AttemptOpened

    @property
    def records(self) -> tuple[Record, Record, Record]:
        return self.accepted, self.opened, self.attempt


def folded(records: Sequence[Record]) -> Iterator[Record | Begun]:
    """Yield the same records in the same order, with each foldable triple as one `Begun`."""
    at = 0
    while at < len(records):
        begun = _begun(records, at) if isinstance(records[at], MessageAccepted) else None
        yield begun or records[at]
        at += 3 if begun else 1


def _begun(records: Sequence[Record], at: int) -> Begun | None:
    match records[at : at + 3]:
        case [MessageAccepted(clip="") as accepted, TurnOpened() as opened, AttemptOpened() as attempt]:
            fits = (
                opened.messages == (accepted.message,)
                and attempt.turn == opened.turn == f"{accepted.session}/{opened.number}"
                and attempt.attempt == 1
                and accepted.session == opened.session == attempt.session
                and accepted.seq + 2 == opened.seq + 1 == attempt.seq
                and (accepted.seq > 1 or opened.number == 1)
            )
            return Begun(accepted, opened, attempt) if fits else None
    return None


def parameters(begun: Begun) -> dict[str, Any]:
    """Return the parameters of the statements above."""
    accepted, opened, attempt = begun.accepted, begun.opened, begun.attempt
    return {
        "session": accepted.session,
        "seq": accepted.seq,
        "at": accepted.at,
        "message": accepted.message,
        "key": accepted.key,
        "kind": accepted.kind,
        "text": accepted.text,
        "busy": accepted.busy,
        "by": accepted.by,
        "wanted_agent": accepted.agent,
        "instructions": accepted.instructions,
        "turn": opened.turn,
        "number": opened.number,
        "agent": opened.agent,
        "messages_json": json.dumps(opened.messages),
        "opened_at": opened.at,
        "begun_at": attempt.at,
        "epoch": attempt.who.epoch,
        "seat": attempt.who.seat,
        "incarnation": attempt.who.incarnation,
        "pid": attempt.pid,
        "level": attempt.level,
    }
