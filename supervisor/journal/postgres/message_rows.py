"""Messages that wait, of many sessions in one statement.

Problem: under load a batch is mostly messages that wait, each of another session. Written one by one, each is
three statements, and handing a statement over costs more than its row does.

Method: `gathered` replaces neighbours in a batch by one `Messages`, whose statement takes all of them as one
list of JSON. All other records pass through unchanged and in order. A message that is alone is written so
too: one statement instead of three.

Invariants: rows and events are the same as after single writes, in the same order, and so are the fences: if
one of the sessions is not at `seq - 1`, the whole is refused. A session is in it once: a statement updates a
row once. The first message of a session is never gathered, because it makes the session.

Mostly a batch is nothing else. Then the row of its life is counted by the same statement (`batch_of`), which
is a transaction by itself: one answer of the server instead of four. The fences are the same, because the
server looks at a row again that another transaction has changed meanwhile.

Not chosen: columns as arrays. The driver quotes each of their elements in Python, which doubled the time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from supervisor.core.records import MessageAccepted, Record
from supervisor.journal.postgres.dialect import escaped

_Other = TypeVar("_Other")
_ENCODER = msgspec.json.Encoder()

# Rows of messages are numbered in the order in which they are inserted.
_WRITE = f"""
    told AS (
        SELECT * FROM ROWS FROM (json_to_recordset(%(rows)s::json) AS (
            id text, session text, key text, kind text, text text, busy text, clip text, seq bigint,
            at double precision, sent_by text, agent text, instructions text, body text)) WITH ORDINALITY
    ), advanced AS (
        UPDATE sessions SET seq = told.seq, last_at = told.at FROM {{}}
        WHERE sessions.name = told.session AND sessions.seq = told.seq - 1 RETURNING 1
    ), events AS (
        INSERT INTO events (session, seq, at, type, body)
        SELECT session, seq, at, '{MessageAccepted.type}', body FROM told
    ), kept AS (
        INSERT INTO messages
            (id, session, key, kind, text, busy, clip, state, seq, at, sent_by, agent, instructions)
        SELECT id, session, key, kind, text, busy, clip,
            CASE clip WHEN '' THEN 'waiting' ELSE 'transcribing' END, seq, at, sent_by, agent, instructions
        FROM told ORDER BY ordinality
    )"""
_ALL_ADVANCED = "fence(count(*), %(number)s, 'session.advanced', %(name)s)"
WRITTEN = f"WITH {_WRITE.format('told')} SELECT {_ALL_ADVANCED} FROM advanced".encode()


def batch_of(count_batch: str, fence: str) -> bytes:
    """Return the statement that is a whole batch; `fence` is that of the row that `count_batch` counts.

    That row comes first, as in any batch: a copy that meets itself waits there and is told so.
    """
    return f"""
        WITH counted AS ({count_batch} RETURNING 1), {_WRITE.format("counted, told")}
        SELECT {fence.format("(SELECT count(*) FROM counted)")}, {_ALL_ADVANCED} FROM advanced""".encode()


@dataclass(frozen=True, slots=True)
class Messages:
    """Accepted messages, each the next event of a session of its own."""

    accepted: Sequence[MessageAccepted]

    def values(self) -> dict[str, Any]:
        """Return the parameters of the statement: the rows, their number, and what a fault calls them."""
        number = len(self.accepted)
        name = self.accepted[0].message if number == 1 else f"one of {number} sessions"
        return {"rows": _text(list(map(_row, self.accepted))), "number": number, "name": name}


def gathered(records: Iterable[_Other]) -> Iterator[_Other | Messages]:
    """Yield the same records in the same order, with neighbours that can be written together as one."""
    found: dict[str, Any] = {}
    for record in records:
        fits = isinstance(record, MessageAccepted) and record.seq > 1
        session = record.session if isinstance(record, MessageAccepted) else ""
        if not fits or session in found:
            yield from _together(found)
            found = {}
        if fits:
            found[session] = record
        else:
            yield record
    yield from _together(found)


def together(records: Sequence[Record]) -> Messages | None:
    """Return all these records as one, if that can be."""
    if not all(isinstance(record, MessageAccepted) and record.seq > 1 for record in records):
        return None
    found = list(gathered(records))
    return found[0] if len(found) == 1 and isinstance(found[0], Messages) else None


def _together(found: dict[str, Any]) -> Iterator[Any]:
    if found:
        yield Messages(tuple(found.values()))


def _text(json: Any) -> str:
    return _ENCODER.encode(json).decode()


def _row(accepted: MessageAccepted) -> dict[str, Any]:
    """Escape what others wrote (dialect.py): the driver sees only the JSON, which has no U+0000 any more."""
    return {
        "id": accepted.message,
        "session": escaped(accepted.session),
        "key": escaped(accepted.key),
        "kind": accepted.kind,
        "text": escaped(accepted.text),
        "busy": accepted.busy,
        "clip": escaped(accepted.clip),
        "seq": accepted.seq,
        "at": accepted.at,
        "sent_by": escaped(accepted.by),
        "agent": escaped(accepted.agent),
        "instructions": escaped(accepted.instructions),
        "body": _text(accepted.fields()),
    }
