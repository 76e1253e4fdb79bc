"""The rows of requests between hosts (supervisor/hosts/requests.py), by the connection of the notices.

A request and its notice are one statement, and so are an answer and its notice. A notice contains the request
or the answer itself where it fits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.notices import PAYLOAD_BYTES_MAX, Notices

# Kinds of notices, and their entries.
ASK = "ask"  # when, by the server's clock; id, asking life, request or null
ANSWER = "answer"  # id, answer or null

# For what a notice has beside the request.
_ROOM_BYTES = 200
# The client was refused long before.
_OLD_SECONDS = 60

_ASK = """
    WITH asked AS (
        INSERT INTO requests (id, from_life, to_life, body) VALUES (%(id)s, %(own)s, %(life)s, %(body)s)
        ON CONFLICT (id) DO NOTHING)
    SELECT pg_notify(
        %(channel)s, concat('[["ask",', extract(epoch FROM clock_timestamp()), ',', %(rest)s::text, ']]'))"""
_ANSWER = """
    WITH answered AS (UPDATE requests SET answer = %(answer)s WHERE id = %(id)s)
    SELECT pg_notify(%(channel)s, %(notice)s)"""
_OWNER = """
    SELECT life FROM owners JOIN lives ON epoch = life WHERE session = %s AND NOT gone"""
_BODY = "SELECT body FROM requests WHERE id = %s"
_FORGET = """
    DELETE FROM requests
    WHERE id = ANY(%s::text[]) OR asked_at < clock_timestamp() - make_interval(secs => %s)"""
_UNANSWERED = """
    SELECT id, from_life, body, extract(epoch FROM asked_at)::double precision AS asked_at
    FROM requests WHERE to_life = %s AND answer IS NULL"""
_STANDS = """
    SELECT requests.id, requests.answer, coalesce(lives.gone, true) AS gone
    FROM requests LEFT JOIN lives ON lives.epoch = requests.to_life WHERE requests.id = ANY(%s::text[])"""


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
    """Each method runs in the thread of the notices (`Notices.run`)."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    def ask(self, connection: Connection, id: str, life: int, body: str) -> None:
        rest = msgspec.json.encode([id, self._notices.life, msgspec.Raw(_within(body))]).decode()[1:-1]
        own, channel = self._notices.life, self._notices.channel(life)
        values = {"id": id, "own": own, "life": life, "body": body, "channel": channel, "rest": rest}
        connection.execute(_ASK, values)

    def answer(self, connection: Connection, id: str, life: int, answer: str) -> None:
        notice = msgspec.json.encode([[ANSWER, id, msgspec.Raw(_within(answer))]]).decode()
        channel = self._notices.channel(life)
        connection.execute(_ANSWER, {"id": id, "answer": answer, "channel": channel, "notice": notice})

    def owner(self, connection: Connection, session: str) -> int:
        """Return the life that has a session, 0 for none."""
        row = connection.execute(_OWNER, (session,)).fetchone()
        return 0 if row is None else int(row["life"])

    def body(self, connection: Connection, id: str) -> str | None:
        row = connection.execute(_BODY, (id,)).fetchone()
        return None if row is None else str(row["body"])

    def forget(self, connection: Connection, ids: Collection[str]) -> None:
        """Delete requests that are answered or given up, and any old one whose host has died."""
        connection.execute(_FORGET, (list(ids), _OLD_SECONDS))

    def unanswered(self, connection: Connection) -> Sequence[Unanswered]:
        """Return what this life was asked and has not answered."""
        return [Unanswered(*row) for row in connection.execute(_UNANSWERED, (self._notices.life,))]

    def stands(self, connection: Connection, ids: Collection[str]) -> Mapping[str, Stand]:
        rows = connection.execute(_STANDS, (list(ids),))
        return {row["id"]: Stand(row["answer"], bool(row["gone"])) for row in rows}


def _within(body: str) -> bytes:
    """Return it if it fits a notice, else null: then it is read from its row."""
    encoded = body.encode()
    return encoded if len(encoded) <= PAYLOAD_BYTES_MAX - _ROOM_BYTES else b"null"
