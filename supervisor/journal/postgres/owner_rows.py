"""The rows that say which life has a session: who may change them, and when.

A session that is not at rest belongs to one life, and only its process decides anything about it. The row is
written before the first decision, so of two hosts that are asked for the same session at the same moment one
learns that the other has it, and neither loses its life over a fence.

| statement | by | changes a row | to |
| --- | --- | --- | --- |
| claim | a life that was asked for the session | that is absent, or of a life that is gone | its own |
| release | its life, when the session is at rest and no request waits | of this very claim | absent |
| adopt | any life that may have the session | of a life that is gone | its own, not taken |
| give | its life, in the batch that forgets the session | of its own | the other's, not taken |
| taken | its life, when it has loaded and settled the session | of its own | taken |

Each names the life that it expects in its condition. The server checks that again when the row was changed
meanwhile, so of two that want the same row one finds it changed, and does nothing.

Claims, releases and `taken` are not waited for on disk. A claim that a crash of the server undoes is of a
session that has not changed yet, since a batch that is durable makes everything before it durable. Another
host may claim it then; if the batch that waits for the server is about this session, its fences refuse it and
that life ends. A release that is undone leaves a session at rest with a life, which forwards and answers as
before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.host_life import Host

_CLAIM = "SELECT owner, is_taken FROM claim_session(%s, %s, %s, %s, %s)"
_RELEASE = """
    DELETE FROM owners USING unnest(%s::text[], %s::bigint[]) AS released(session, claim)
    WHERE owners.session = released.session AND owners.claim = released.claim AND life = %s AND taken"""
_TAKEN = "UPDATE owners SET taken = true WHERE session = ANY(%s::text[]) AND life = %s"
_GIVEN = "SELECT session, claim FROM owners WHERE life = %s AND NOT taken LIMIT 1000"
_OWNED = "SELECT session, claim FROM owners WHERE life = %s AND taken"
# Not at rest, and no life that is there has it.
_LEFT = """
    SELECT open.session, homes.host AS home FROM (
        SELECT session FROM turns WHERE state IN ('queued', 'running', 'asking')
        UNION SELECT session FROM messages WHERE state IN ('transcribing', 'waiting')
        UNION SELECT name FROM sessions WHERE held > 0) AS open
    LEFT JOIN owners ON owners.session = open.session
    LEFT JOIN homes ON homes.session = open.session
    WHERE NOT EXISTS (SELECT 1 FROM lives WHERE epoch = owners.life AND NOT gone)"""
_ORPHANS = """
    SELECT owners.session, homes.host AS home FROM lives
    JOIN owners ON owners.life = lives.epoch
    LEFT JOIN homes ON homes.session = owners.session
    WHERE lives.gone AND NOT lives.cleared LIMIT 1000"""
_ADOPT = """
    INSERT INTO owners (session, life, claim, taken)
    SELECT session, %s, 0, %s FROM unnest(%s::text[]) AS adopted(session)
    ON CONFLICT (session) DO UPDATE SET life = excluded.life, claim = 0, taken = excluded.taken
        WHERE NOT EXISTS (SELECT 1 FROM lives WHERE epoch = owners.life AND NOT gone)
    RETURNING session"""
# A statement of a life that is just gone may still be under way.
_CLEAR = """
    UPDATE lives SET cleared = true
    WHERE gone AND NOT cleared AND gone_at < clock_timestamp() - interval '1 min'
        AND NOT EXISTS (SELECT 1 FROM owners WHERE owners.life = lives.epoch)"""
_NAMES = "SELECT name FROM lives WHERE NOT gone"

MayHave = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Claimed:
    """The life that has a session, 0 for none; whether it has loaded it."""

    life: int
    is_taken: bool


def claim(connection: Connection, host: Host, life: int, session: str, number: int, is_fit: bool) -> Claimed:
    """Claim a session for this life, unless another one has it or this host may not have it."""
    here = host.name if host.has_local_files else None
    row = connection.execute(_CLAIM, (session, life, number, is_fit, here)).fetchone()
    assert row is not None  # the function returns one row
    return Claimed(int(row["owner"]), bool(row["is_taken"]))


def release(connection: Connection, life: int, claims: Iterable[tuple[str, int]]) -> None:
    listed = list(claims)
    names, numbers = [name for name, _ in listed], [number for _, number in listed]
    connection.execute(_RELEASE, (names, numbers, life))


def mark_taken(connection: Connection, life: int, sessions: Sequence[str]) -> None:
    connection.execute(_TAKEN, (list(sessions), life))


def given(connection: Connection, life: int) -> list[str]:
    """Return the sessions that were given to this life, and are not loaded yet."""
    return [row["session"] for row in connection.execute(_GIVEN, (life,))]


def owned(connection: Connection, life: int) -> dict[str, int]:
    """Return the claims of this life by session."""
    return {row["session"]: int(row["claim"]) for row in connection.execute(_OWNED, (life,))}


def adopt_left(connection: Connection, host: Host, life: int, may_have: MayHave) -> None:
    """Make every open session without a living owner one of this life, which is about to load them."""
    _adopt(connection, _LEFT, host, life, may_have, is_loaded=True)


def adopt_orphans(connection: Connection, host: Host, life: int, may_have: MayHave) -> int:
    """Make sessions of lives that are gone sessions of this life; return how many, a bounded number."""
    return _adopt(connection, _ORPHANS, host, life, may_have, is_loaded=False)


def _adopt(
    connection: Connection, sql: str, host: Host, life: int, may_have: MayHave, is_loaded: bool
) -> int:
    found = connection.execute(sql.encode()).fetchall()
    if not found:
        return 0
    living = {row["name"] for row in connection.execute(_NAMES)} if host.has_local_files else set()
    names = [
        row["session"]
        for row in found
        if may_have(row["session"]) and (row["home"] == host.name or row["home"] not in living)
    ]
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit = on")
        return connection.execute(_ADOPT, (life, is_loaded, names)).rowcount


def clear(connection: Connection) -> None:
    """Let lives that are gone and have no session any more be passed over from now on."""
    connection.execute(_CLEAR)
