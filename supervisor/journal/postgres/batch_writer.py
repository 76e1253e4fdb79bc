"""Writes batches to the server: each is one transaction, sent whole and applied exactly once.

Problem: a commit whose answer is lost may have been made or not. Written again it would be made twice; taken
for made, an accepted message would be lost.

Method: a batch has a number, and its first statement counts the row of the life from the number before
(host_life.py). All statements are sent as one pipeline, from BEGIN to COMMIT, without waiting for a result; a
write that does not find its row raises in the server, so that nothing behind it is carried out. Messages that
wait are one statement with the count of the row in it, and a transaction without BEGIN (message_rows.py).
When the connection is cut, the batch is in doubt: nothing else is written until it is not.

    in doubt ── the row has the number ──────► it was committed: an empty durable commit, then it is settled
        ├────── the row has the one before ──► it is sent again, by the same number
        ├────── the row has a lower one ─────► acknowledged batches are lost: this life ends and names them
        └────── no answer ───────────────────► still in doubt, JournalUnreachable

Sent again, it can meet itself: the server may still be carrying out the first copy. Both update the same row
from the same number, so one of them waits for the other and then does not find it.

The empty commit: a read shows that the primary has the batch, and proves nothing about a synchronous replica;
the connection may have been cut while the commit waited for it. Another commit waits for the replica as well,
and replicas apply in order. It has to write something, because PostgreSQL does not wait for a transaction
without a write. A warning during a commit means the same: the server gave up waiting for the replica.

Invariants: `number` counts the batches that were acknowledged or may be. Only the batch in doubt is ever sent
by the number `number + 1` until it is settled or refused. Records that were settled while their caller was
told of an error are remembered by identity until the caller repeats them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import psycopg

from supervisor.clock import boottime
from supervisor.core.records import AttemptOpened, Record
from supervisor.host.lease import Lease
from supervisor.journal import fused_insert
from supervisor.journal.errors import JournalEnded, JournalError, JournalUnreachable
from supervisor.journal.fused_insert import BEGUN, EVENTS_BEGUN, FIRST_BEGUN, NEXT_BEGUN, Begun, folded
from supervisor.journal.postgres import host_life, message_rows
from supervisor.journal.postgres.connecting import BROKEN, FENCED, LIFE, Connection, by_index, named
from supervisor.journal.postgres.dialect import translated
from supervisor.journal.postgres.host_life import Life
from supervisor.journal.postgres.message_rows import Messages, gathered
from supervisor.journal.postgres.own_statements import OF_HOSTS, own
from supervisor.journal.postgres.server_store import ServerStore
from supervisor.journal.prune import Store
from supervisor.journal.record_values import parameters
from supervisor.journal.statements import (
    EVENT,
    FIRST_TOLD,
    NEXT_TOLD,
    STATEMENTS,
    EachMessage,
    Statement,
    Sweep,
)

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FENCED = "WITH done AS ({} RETURNING 1) SELECT fence(count(*), {}, '{}', :fenced) FROM done"
_FENCE_OF_LIFE = f"fence({{}}, 1, '{LIFE}', 'its row')"
_COUNT_BATCH = (
    f"WITH counted AS ({host_life.COUNT_BATCH} RETURNING 1) "
    f"SELECT {_FENCE_OF_LIFE.format('count(*)')} FROM counted"
).encode()
BATCH_OF_MESSAGES = message_rows.batch_of(host_life.COUNT_BATCH, _FENCE_OF_LIFE)

# Mostly there is nothing to change: the session was here before.
_HOMES = b"""
    INSERT INTO homes (session, turn, host)
    SELECT session, turn, %s FROM unnest(%s::text[], %s::text[]) AS begun(session, turn)
    ON CONFLICT (session) DO UPDATE SET host = excluded.host, came_from = homes.host, turn = excluded.turn
        WHERE homes.host <> excluded.host"""

Sent = tuple[bytes, dict[str, Any] | Sequence[Any]]


class BatchWriter:
    """The one writing connection of a life. Used by one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        connect: Callable[[], Connection],
        life: Life,
        number: int = 0,
        renewed: Callable[[float], None] = lambda sent_at: None,
        home: str = "",
    ) -> None:
        """`connect` opens another connection when this one was cut; `number` is that of the last batch.

        `renewed` is told when a batch was sent that has renewed the lease. `home` is the name of a host whose
        files are local: a session that has an attempt here has files here.
        """
        self._home = home
        self._connect = connect
        self._renewed = renewed
        self._life = life
        self._number = number
        self._connection = self._watched(connection)
        self._doubt: Sequence[Record] | None = None
        self._settled: list[Record] = []
        self._was_warned = False
        self._sent_at = 0.0
        self.transactions = 0
        # The server carries its own log over.
        self.pages = 0

    def write(self, records: Sequence[Record]) -> None:
        """Write all records or, with a JournalError, none that a caller may count on."""
        self._settle()
        if not self._take_settled(records):
            self._write(records)

    def begin(self, records: Sequence[Record]) -> tuple[Connection, dict[str, Any]] | None:
        """Return where a batch is sent and with which parameters, if it is one statement: BATCH_OF_MESSAGES.

        The caller sends it (loop_commit.py). It is in doubt until it is called `taken`.
        """
        if self._doubt is not None or self._settled or self._connection.closed:
            return None
        messages = message_rows.together(records)
        if messages is None:
            return None
        self._was_warned = False
        self._sent_at = boottime()
        self._doubt = records
        return self._connection, messages.values() | self._counted()

    def taken(self) -> bool:
        """The batch that was begun is in the database; False when it is in doubt because of a warning."""
        if self._was_warned:
            return False
        self._committed(self._connection)
        self._renewed(self._sent_at)
        return True

    def run(self, chore: Callable[[Store], bool]) -> bool:
        """Run a chore in a transaction of its own, which has no number: it may be repeated or lost."""
        self._settle()
        connection = self._open()
        try:
            with connection.transaction():
                if connection.execute(host_life.AFFIRM, self._life.key).rowcount != 1:
                    host_life.batch_of(connection, self._life, self._number)
                return chore(ServerStore(connection))
        except psycopg.Error as error:
            raise named(error) from error

    def checkpoint(self) -> None:
        """The server does that."""

    def close(self) -> None:
        """End the life, if the server can be told: a batch in doubt stays as the server has it."""
        if not self._connection.closed:
            with suppress(psycopg.Error):
                host_life.end(self._connection, self._life)
        self._connection.close()

    def extend(self, seconds: float, lease: Lease) -> None:
        """Extend the lease once, if the server can be told."""
        sent_at = boottime()
        with suppress(psycopg.Error, JournalError):
            key = self._life.key | {"seconds": seconds}
            if self._open().execute(host_life.EXTEND, key).rowcount == 1:
                lease.renewed(sent_at + seconds)

    def leave(self) -> int:
        """Close the connection and return the number of the last batch: the life goes on elsewhere."""
        self._connection.close()
        return self._number

    def _write(self, records: Sequence[Record]) -> None:
        """Send a batch by the next number. When its fate is not known, it is in doubt afterwards."""
        connection = self._open()
        self._doubt = records
        try:
            self._send(connection, records)
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            self._failed(connection, error)
        else:
            self._committed(connection)

    def _failed(self, connection: Connection, error: Exception) -> None:
        """Raise what the error means. A batch that was refused is over, any other is in doubt."""
        if not _is_refusal(connection, error):
            connection.close()
            raise _unreachable(error) from error
        self._doubt = None
        if _is_of_life(error):
            self._explain_life(connection)
        raise named(error) from error

    def _explain_life(self, connection: Connection) -> None:
        """The row of the life did not have the number before: raise why."""
        try:
            found = host_life.batch_of(connection, self._life, self._number)
        except psycopg.Error as error:
            raise named(error) from error
        fault = f"life {self._life.epoch} has batch {found}, not {self._number}: two processes write as one"
        raise JournalEnded(fault, "start the service again: what is in the database stands")

    def _committed(self, connection: Connection) -> None:
        """The batch is in the database. It counts as durable when no warning came with it."""
        if self._was_warned:
            self._affirm(connection)
        self._number += 1
        self.transactions += 1
        self._doubt = None

    def _affirm(self, connection: Connection) -> None:
        """Make an empty durable commit; while it fails, the batch before it stays in doubt."""
        try:
            while True:
                self._was_warned = False
                if connection.execute(host_life.AFFIRM, self._life.key).rowcount != 1:
                    host_life.batch_of(connection, self._life, self._number)
                if not self._was_warned:
                    return
        except psycopg.Error as error:
            raise _unreachable(error) from error

    def _settle(self) -> None:
        """Find out what became of the batch in doubt, and bring it about if it did not happen."""
        while self._doubt is not None:
            records, connection = self._doubt, self._open()
            try:
                found = host_life.batch_of(connection, self._life, self._number)
            except psycopg.Error as error:
                raise _unreachable(error) from error
            if found == self._number + 1:
                self._affirm(connection)
                self._committed(connection)
                self._settled.extend(records)
            else:
                self._send_again(connection, records)

    def _send_again(self, connection: Connection, records: Sequence[Record]) -> None:
        try:
            self._send(connection, records)
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            if not _is_refusal(connection, error):
                connection.close()
                raise _unreachable(error) from error
            if _is_of_life(error):
                return  # the first copy was committed meanwhile: the next look finds it
            # Refused: it did not happen, and its caller is told when it repeats it.
            self._doubt = None
        else:
            self._committed(connection)
            self._settled.extend(records)

    def _take_settled(self, records: Sequence[Record]) -> bool:
        """Return whether all these records were settled; then they are forgotten."""
        wanted = {id(record) for record in records}
        found = [record for record in self._settled if id(record) in wanted]
        if len(found) < len(records) or not records:
            return False
        self._settled = [record for record in self._settled if id(record) not in wanted]
        return True

    def _send(self, connection: Connection, records: Sequence[Record]) -> None:
        """Send the batch whole, then wait for all its results."""
        self._was_warned = False
        self._sent_at = boottime()
        written = list(gathered(folded(records)))
        if len(written) == 1 and isinstance(written[0], Messages):
            connection.execute(BATCH_OF_MESSAGES, written[0].values() | self._counted())
        else:
            self._send_pipeline(connection, written, _begun_in(records) if self._home else {})
        self._renewed(self._sent_at)

    def _send_pipeline(
        self,
        connection: Connection,
        written: Iterable[Record | Begun | Messages],
        begun: dict[str, str],
    ) -> None:
        run = connection.execute
        with connection.pipeline():
            run(b"BEGIN")
            run(_COUNT_BATCH, self._counted())
            for sql, values in _batch(written, self._life.epoch):
                run(sql, values)
            if begun:
                run(_HOMES, (self._home, list(begun), list(begun.values())))
            commit = run(b"COMMIT")
        if commit.statusmessage != "COMMIT":
            raise psycopg.ProgrammingError("the server answered a commit with a rollback")

    def _counted(self) -> dict[str, Any]:
        return self._life.key | {"batch": self._number + 1}

    def _open(self) -> Connection:
        if self._connection.closed:
            self._connection = self._watched(self._connect())
        return self._connection

    def _watched(self, connection: Connection) -> Connection:
        connection.add_notice_handler(self._noticed)
        return by_index(connection)

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        self._was_warned = self._was_warned or notice.severity_nonlocalized == "WARNING"


def _is_refusal(connection: Connection, error: Exception) -> bool:
    """Return whether the batch is known not to have been committed; the connection can be used again then."""
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not error.sqlstate:
        return False
    if isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(BROKEN):
        return False
    with suppress(psycopg.Error):
        connection.rollback()
    return not connection.closed


def _is_of_life(error: Exception) -> bool:
    """Return whether the row of the life did not have the number before."""
    is_fence = isinstance(error, psycopg.Error) and error.sqlstate == FENCED
    return is_fence and isinstance(error, psycopg.Error) and error.diag.message_primary == LIFE


def _unreachable(error: Exception) -> JournalError:
    fault = named(error)
    if isinstance(fault, JournalUnreachable):
        return fault
    return JournalUnreachable(fault.fault, fault.hint)


def _batch(written: Iterable[Record | Begun | Messages], life: int) -> Iterator[Sent]:
    """Yield the statements of a batch with their values."""
    for record in written:
        if isinstance(record, Begun):
            yield from _begun(record, life)
        elif isinstance(record, Messages):
            yield message_rows.WRITTEN, record.values()
        else:
            yield from _one(record, life)


def _one(record: Record, life: int) -> Iterator[Sent]:
    values = parameters(record)
    values["fenced"] = values.get("turn") or values.get("message") or record.session
    values["life"] = life
    if "messages" in values:
        values["message_ids"] = list(values["messages"])
    if "turns" in values:
        values["turn_bodies"] = list(values["turns"])
    if record.seq:
        for told in FIRST_TOLD if record.seq == 1 else NEXT_TOLD:
            yield _sql(told), values
        body = _ENCODE(record.fields())
        yield translated(EVENT), (record.session, record.seq, record.at, record.type, body)
    for statement in (*STATEMENTS[type(record)], *OF_HOSTS.get(type(record), ())):
        yield _sql(statement), values


def _begun(begun: Begun, life: int) -> Iterator[Sent]:
    values = fused_insert.parameters(begun)
    values |= {"fenced": begun.opened.turn, "life": life}
    for statement in (*(FIRST_BEGUN if begun.accepted.seq == 1 else NEXT_BEGUN), *BEGUN):
        yield _sql(statement), values
    told: list[Any] = []
    for record in begun.records:
        told += (record.session, record.seq, record.at, record.type, _ENCODE(record.fields()))
    yield translated(EVENTS_BEGUN), told


def _begun_in(records: Sequence[Record]) -> dict[str, str]:
    """Return the turns that have an attempt begun by these records, by session and in their order."""
    begun = {record.session: record.turn for record in records if isinstance(record, AttemptOpened)}
    return dict(sorted(begun.items()))


@cache
def _sql(statement: Statement) -> bytes:
    """Return the statement as the server gets it: it raises where the file's writer would compare a count."""
    wanted = own(statement)
    if isinstance(wanted, Sweep) or _always_finds(wanted.sql):
        return translated(wanted.sql)
    rows = "cardinality(:message_ids::text[])" if isinstance(wanted, EachMessage) else "1"
    return translated(_FENCED.format(wanted.sql, rows, wanted.name))


def _always_finds(sql: str) -> bool:
    """An INSERT of values makes its row or fails."""
    return sql.lstrip().startswith("INSERT") and " VALUES " in " ".join(sql.split())
