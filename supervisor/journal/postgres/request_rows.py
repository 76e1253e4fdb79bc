"""The rows of requests between hosts (supervisor/hosts/requests.py), by the connection of the notices.

A request is a row and a notice, and so is its answer. The notice contains what fits, and then it goes first,
because a person waits for it; the row is read only if the notice is lost. What does not fit is read from the
row, which is written first then. So the row of an answer may be written before that of its request.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ipc.errors import WireError
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres.loop_connection import Row, Value
from supervisor.journal.postgres.notices import PAYLOAD_BYTES_MAX, Notices

# Kinds of notices, and their entries.
ASK = "ask"  # when, by the server's clock; id, asking life, request or null
ANSWER = "answer"  # id, answer or null

# For what a notice has beside the request.
_ROOM_BYTES = 200
# The client was refused long before.
_OLD_SECONDS = 60

_ASK = b"""
    INSERT INTO requests (id, from_life, to_life, body) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING"""
_ANSWER = b"""
    INSERT INTO requests (id, from_life, to_life, body, answer) VALUES ($1, $2, $3, '', $4)
    ON CONFLICT (id) DO UPDATE SET answer = excluded.answer"""
_OWNER = b"SELECT life FROM owners JOIN lives ON epoch = life WHERE session = $1 AND NOT gone"
_BODY = b"SELECT body FROM requests WHERE id = $1"
_LISTED = "ANY(ARRAY(SELECT json_array_elements_text($1::json)))"
_FORGET = f"""
    DELETE FROM requests
    WHERE id = {_LISTED} OR asked_at < clock_timestamp() - make_interval(secs => $2)""".encode()
_UNANSWERED = b"""
    SELECT id, from_life, body, extract(epoch FROM asked_at)::double precision
    FROM requests WHERE to_life = $1 AND answer IS NULL"""
_STANDS = f"""
    SELECT requests.id, requests.answer, coalesce(lives.gone, true)
    FROM requests LEFT JOIN lives ON lives.epoch = requests.to_life WHERE requests.id = {_LISTED}""".encode()


@dataclass(frozen=True, slots=True)
class Unanswered:
    id: str
    from_life: int
    body: str
    asked_at: float


@dataclass(frozen=True, slots=True)
class Stand:
    """What became of a request; `is_gone` says that the life that was asked cannot answer any more."""

    answer: str | None
    is_gone: bool


class RequestRows:
    """By the connection of the notices: what is asked comes back in the loop."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    def ask(self, id: str, life: int, body: str, failed: Failed) -> None:
        own = self._notices.life

        def tell(body: bytes | None) -> None:
            now = self._notices.server_now
            self._notices.tell(life, [ASK, now, id, own, None if body is None else msgspec.Raw(body)])

        # The clock of the server is known after the first connect.
        told = _fitting(body) if self._notices.server_now is not None else None
        self._write(_ASK, (id, own, life, body), told, tell, failed)

    def answer(self, id: str, life: int, answer: str, failed: Failed) -> None:
        def tell(answer: bytes | None) -> None:
            self._notices.tell(life, [ANSWER, id, None if answer is None else msgspec.Raw(answer)])

        self._write(_ANSWER, (id, life, self._notices.life, answer), _fitting(answer), tell, failed)

    def _write(
        self,
        sql: bytes,
        values: Sequence[Value],
        told: bytes | None,
        tell: Callable[[bytes | None], None],
        failed: Failed,
    ) -> None:
        """Write a row; `told` is its content as far as it fits a notice."""
        if told is None:
            self._notices.run(sql, values, lambda rows: tell(None), failed)
        else:
            tell(told)
            self._notices.run(sql, values, _ignored, failed)

    def owner(self, session: str, then: Callable[[int], None], failed: Failed) -> None:
        """Look up the life that has a session, 0 for none."""

        def found(rows: list[Row]) -> None:
            then(int(rows[0][0]) if rows else 0)

        self._notices.run(_OWNER, (session,), found, failed)

    def body(self, id: str, then: Callable[[str], None]) -> None:
        """Look up a request that did not fit its notice; one that is not there any more is over."""

        def found(rows: list[Row]) -> None:
            if rows:
                then(rows[0][0])

        self._notices.run(_BODY, (id,), found, _not_looked_up)

    def forget(self, ids: Collection[str]) -> None:
        """Delete requests that are answered or given up, and any old one whose host has died."""
        self._notices.run(_FORGET, (_json(ids), _OLD_SECONDS), _ignored, _not_looked_up)

    def unanswered(self, then: Callable[[Sequence[Unanswered]], None]) -> None:
        """Look up what this life was asked and has not answered."""

        def found(rows: list[Row]) -> None:
            then([Unanswered(id, int(life), body, float(at)) for id, life, body, at in rows])

        self._notices.run(_UNANSWERED, (self._notices.life,), found, _not_looked_up)

    def stands(
        self, ids: Collection[str], then: Callable[[Mapping[str, Stand]], None], failed: Failed
    ) -> None:
        """Look up what became of these requests."""

        def found(rows: list[Row]) -> None:
            then({id: Stand(answer, is_gone == "t") for id, answer, is_gone in rows})

        self._notices.run(_STANDS, (_json(ids),), found, failed)


def _json(ids: Collection[str]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def _ignored(rows: list[Row]) -> None:
    """It has no result."""


def _not_looked_up(error: JournalError | WireError) -> None:
    """The next connect looks it up."""


def _fitting(body: str) -> bytes | None:
    """Return it if a notice takes it."""
    encoded = body.encode()
    return encoded if len(encoded) <= PAYLOAD_BYTES_MAX - _ROOM_BYTES else None
