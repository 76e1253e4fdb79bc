"""A connection that the event loop drives: one statement at a time, and notifications as they arrive.

Problem: a request between hosts passes the database twice while a person waits. If a thread has the
connection, each of the four steps waits for the interpreter's lock, which the loop gives up when it rests.

Method: libpq sends and reads what its socket takes and has, and never waits. The loop watches the socket. A
statement is prepared by its first use and keeps its plan. Parameters and results travel as text.

    resting ── run ──► preparing ──► under way ── its result is whole ──► resting
       each of them ── the connection fails ──► cut

A connection without `heard` is lent: while it rests, its socket is not watched and a thread may use it.

Connecting waits for the network, so a thread has done that before (read_threads.py). An exception of `done`
or `failed` goes to the loop's handler; the connection serves on.

Once a socket has an error, uvloop tells of it a last time, and one `consume_input` may stop before it. So
each call reads until nothing is left.
"""

import asyncio
import select
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

from supervisor.journal.postgres.connecting import BROKEN, Connection
from supervisor.journal.postgres.dialect import escaped, unescaped

Value = str | int | None
# Texts, None for NULL.
Row = tuple[Any, ...]
Done = Callable[[list[Row]], None]
Failed = Callable[[psycopg.Error], None]

_BIGINT = psycopg.adapters.types["int8"].oid
_SUCCESSES = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class LoopConnection:
    """`rested` is called when a statement is over; `heard` gets payloads of other connections."""

    def __init__(
        self,
        connection: Connection,
        *,
        rested: Callable[[], None],
        heard: Callable[[list[bytes]], None] | None,
        cut: Failed,
    ) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._rested = rested
        self._heard = heard
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._names: dict[bytes, bytes] = {}
        self._statement: tuple[bytes, Sequence[Value], Done, Failed] | None = None
        self._is_preparing = False
        self._result: pq.abc.PGresult | None = None
        self._is_writing = False
        self._arrivals = select.poll()
        self._arrivals.register(self._socket, select.POLLIN)
        if heard is not None:
            self._loop.add_reader(self._socket, self._readable)

    @property
    def is_resting(self) -> bool:
        return self._statement is None and not self._connection.closed

    def run(self, sql: bytes, values: Sequence[Value], done: Done, failed: Failed) -> None:
        """Send a statement with parameters $1, $2, …; only while the connection rests."""
        self._statement = (sql, values, done, failed)
        if self._heard is None:
            self._loop.add_reader(self._socket, self._readable)
        self._guarded(self._send)

    def wait(self, seconds: float) -> bool:
        """Serve the socket once without the loop; False when nothing came in time."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._is_writing else 0))
        events = [event for _, event in poll.poll(seconds * 1000)]
        if events == [select.POLLOUT]:
            self._guarded(self._flush)
        elif events:
            self._readable()
        return bool(events)

    def close(self) -> None:
        if self._connection.closed and self._socket < 0:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        self._socket = -1
        self._connection.close()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except psycopg.Error as error:
            self._end(error)

    def _end(self, error: psycopg.Error) -> None:
        self.close()
        self._cut(error)

    def _send(self) -> None:
        assert self._statement is not None
        sql, values, _, _ = self._statement
        self._is_preparing = sql not in self._names
        if self._is_preparing:
            self._names[sql] = b"s%d" % len(self._names)
            self._pg.send_prepare(self._names[sql], sql, [_type(value) for value in values])
        else:
            self._pg.send_query_prepared(self._names[sql], [_sent(value) for value in values])
        self._flush()

    def _flush(self) -> None:
        is_left = self._pg.flush() == 1
        if is_left is self._is_writing:
            return
        self._is_writing = is_left
        if is_left:
            self._loop.add_writer(self._socket, self._guarded, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _readable(self) -> None:
        if self._socket < 0 or (self._heard is None and self._statement is None):
            return
        is_read = False
        try:
            self._guarded(self._read)
            is_read = True
        finally:
            if not is_read:  # the socket does not tell again of what was taken from it
                self._loop.call_soon(self._readable)

    def _read(self) -> None:
        self._pg.consume_input()
        while self._arrivals.poll(0):
            self._pg.consume_input()
        if self._is_writing:
            self._flush()
        # A notification behind a result is seen when that has been taken.
        while self._take_notifications() or self._take_result():
            pass

    def _take_notifications(self) -> bool:
        told: list[bytes] = []
        while (notification := self._pg.notifies()) is not None:
            if notification.be_pid != self._pg.backend_pid:
                told.append(notification.extra)
        if told and self._heard is not None:
            self._heard(told)
        return bool(told)

    def _take_result(self) -> bool:
        """Return whether one was there, or a statement was over."""
        if self._statement is None or self._pg.is_busy():
            return False
        result = self._pg.get_result()
        if result is not None:
            self._result = result
        else:
            self._complete()
        return True

    def _complete(self) -> None:
        assert self._statement is not None
        (sql, _, done, failed), result = self._statement, self._result
        assert result is not None, "a statement that is over has a result"
        self._result = None
        if result.status not in _SUCCESSES:
            error = error_from_result(result)
            if (error.sqlstate or BROKEN[0]).startswith(BROKEN):
                raise error
            if self._is_preparing:
                del self._names[sql]
            self._over(lambda: failed(error))
        elif self._is_preparing:
            self._send()
        else:
            self._over(lambda: done(_rows(result)))

    def _over(self, tell: Callable[[], None]) -> None:
        self._statement = None
        if self._heard is None:
            self._loop.remove_reader(self._socket)
        try:
            tell()
        finally:
            self._rested()


def _type(value: Value) -> int:
    """Numbers are bigint, as by every connection; the server finds the others."""
    return _BIGINT if isinstance(value, int) else 0


def _sent(value: Value) -> bytes | None:
    return None if value is None else escaped(str(value)).encode()


def _taken(value: bytes | None) -> str | None:
    return None if value is None else unescaped(value.decode())


def _rows(result: "pq.abc.PGresult") -> list[Row]:
    columns = range(result.nfields)
    return [tuple(_taken(result.get_value(row, each)) for each in columns) for row in range(result.ntuples)]
