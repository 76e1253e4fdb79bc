"""Notices between hosts: LISTEN and NOTIFY by one connection, which the event loop drives.

Hosts do not connect to each other. What one has to tell another is a notice: a JSON list whose first entry
says its kind. It goes through the database to the channel of one life, or to the channel that all lives
listen to. Channels belong to a database and journals to a schema in it, so their names contain the number of
the table `lives`.

NOTIFY takes a lock of the whole server until its transaction has ended. In a durable commit it would hold it
while the disk is waited for, and commits of all hosts would follow each other. So this connection writes
nothing durable: `synchronous_commit` is off, and the tables that it writes are not logged.

Problem: a notice is lost when the receiver is not connected, and when the sender dies or is cut off.

- What was being sent when a connection was cut is sent again by the next one. So a notice may come twice, and
  every kind has to bear that.
- `connected` is called after each connect: what was told meanwhile is lost, and has to be looked up in
  the tables.
- So a notice says that there is something to look at, or is worth nothing later.

Notices that gather while the connection is busy share a NOTIFY, in their order, up to the size that the
server takes; before them stands which life has told them (`from`, which versions before ignore). Statements
by the same connection (`run`) come behind the notices that were given before them.

The age of a notice: an entry of kind `ask` contains the time of the server's clock at which it was made. Its
receiver may have been stopped meanwhile. `server_now` is that clock as this process knows it, which counts
time in which the machine slept.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import psycopg

from ipc.errors import WireError
from supervisor.clock import boottime, monotonic
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres.connecting import Connection, by_index, named
from supervisor.journal.postgres.loop_connection import Done, LoopConnection, Row, Value
from supervisor.journal.postgres.read_threads import ReadThreads

# The server takes payloads of less than 8,000 bytes.
PAYLOAD_BYTES_MAX = 7_900
# A server that is away is tried again after this; a last notice waits as long for its answer.
_AGAIN_SECONDS = 0.5
# The clocks of two machines differ by less than this after that time, and a connection is found dead.
_PROBE_SECONDS = 20.0
# Beyond this the oldest are dropped: they are worth nothing after a long absence of the database.
_WAITING_MAX = 5_000

_OWN_CHANNELS = "SELECT 'lives'::regclass::oid::bigint AS number"
_NO_FLUSH = "SELECT set_config('synchronous_commit', 'off', false)"
_LIVING = b"SELECT epoch, name FROM lives WHERE NOT gone AND epoch <> $1"
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::double precision AS now"
_NOTIFY = b"SELECT pg_notify($1, $2)"
_FROM = "from"

Notice = list[Any]


@dataclass(frozen=True, slots=True)
class _Connected:
    """What a thread has found out by a new connection."""

    connection: Connection
    channels: str
    clock_offset: float


@dataclass(slots=True)
class _Work:
    """A statement; it is carried out again when the connection was cut meanwhile, once."""

    sql: bytes
    values: Sequence[Value]
    then: Done
    failed: Failed
    was_cut: bool = False


class Notices:
    """Nothing is sent and nothing arrives before `open`. All of it is in the thread of the loop."""

    def __init__(self, connect: Callable[[], Connection], asking: ReadThreads, life: int) -> None:
        """`asking` has the thread that connects."""
        self.life = life
        self._connect = connect
        self._asking = asking
        self._telling: deque[tuple[int | None, bytes]] = deque(maxlen=_WAITING_MAX)
        self._sending: deque[tuple[int | None, str]] = deque()
        self._working: deque[_Work] = deque()
        self._under_way: _Work | None = None
        self._line: LoopConnection | None = None
        # Written by the thread that connects, before it looks whether this is closing.
        self._new: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._channels = ""
        self._clock_offset: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._received: Callable[[int | None, list[Notice]], None]
        self._connected: Callable[[], None]

    def open(
        self, received: Callable[[int | None, list[Notice]], None], connected: Callable[[], None]
    ) -> None:
        """`received` gets what another life has told, and its number, if its version says so."""
        self._loop = asyncio.get_running_loop()
        self._received = received
        self._connected = connected
        self._connect_again()

    def tell(self, life: int | None, notice: Notice) -> None:
        """Send a notice to one life, or to all others."""
        self._telling.append((life, msgspec.json.encode(notice)))
        self._go_on()

    def run(self, sql: bytes, values: Sequence[Value], then: Done, failed: Failed) -> None:
        """Carry out a statement with parameters $1, $2, …, by the same connection."""
        self._working.append(_Work(sql, values, then, failed))
        self._go_on()

    def channel(self, life: int | None) -> str:
        """Known after the first connect."""
        return self._channels if life is None else f"{self._channels}_{life}"

    def living(self, then: Callable[[Mapping[int, str]], None], failed: Failed) -> None:
        """Look up the other lives that are not gone, with the names of their hosts."""

        def found(rows: list[Row]) -> None:
            then({int(epoch): name for epoch, name in rows})

        self.run(_LIVING, (self.life,), found, failed)

    @property
    def server_now(self) -> float | None:
        """The server's clock; None before the first connect."""
        return None if self._clock_offset is None else boottime() + self._clock_offset

    def close(self) -> None:
        """What was told and is not sent yet is sent, if the server answers."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        # No caller waits any more.
        self._working.clear()
        until = monotonic() + _AGAIN_SECONDS
        while self._line is not None and (self._telling or self._sending or not self._line.is_resting):
            if not self._line.wait(max(0.0, until - monotonic())):
                break
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._new is not None:
            self._new.close()

    # --- the connection ---------------------------------------------------------------------------------

    def _connect_again(self) -> None:
        self._asking.ask(self._open_connection, self._opened, self._not_opened)

    def _open_connection(self) -> _Connected:
        """In a thread."""
        connection = self._new = by_index(self._connect())
        if self._is_closing:
            connection.close()
        try:
            found = connection.execute(_OWN_CHANNELS).fetchone()
            assert found is not None
            channels = _channels(found["number"])
            connection.execute(_NO_FLUSH)
            for channel in (channels, f"{channels}_{self.life}"):
                connection.execute(f"LISTEN {channel}".encode())
            before = boottime()
            clock = connection.execute(_CLOCK).fetchone()
            assert clock is not None
        except psycopg.Error as error:
            connection.close()
            raise named(error) from error
        return _Connected(connection, channels, clock["now"] - before)

    def _opened(self, found: _Connected) -> None:
        if self._is_closing:
            return
        self._new = None
        self._channels, self._clock_offset = found.channels, found.clock_offset
        self._line = LoopConnection(
            found.connection, rested=self._go_on, heard=self._heard, cut=self._was_cut
        )
        self._probe_later()
        self._connected()
        self._go_on()

    def _not_opened(self, error: JournalError | WireError) -> None:
        """The server is away: nothing waits for it."""
        refused, self._working = self._working, deque()
        if not self._is_closing:
            assert self._loop is not None
            self._timer = self._loop.call_later(_AGAIN_SECONDS, self._connect_again)
        for work in refused:
            work.failed(error)

    def _was_cut(self, error: psycopg.Error) -> None:
        """What was under way is done again by the next connection; a statement once only."""
        self._line = None
        if self._timer is not None:
            self._timer.cancel()
        work, self._under_way = self._under_way, None
        if not self._is_closing:
            self._connect_again()
        if work is not None and work.was_cut:
            work.failed(named(error))
        elif work is not None:
            work.was_cut = True
            self._working.appendleft(work)

    def _probe_later(self) -> None:
        assert self._loop is not None
        self._timer = self._loop.call_later(_PROBE_SECONDS, self._probe)

    def _probe(self) -> None:
        """Look at the clock of the server, unless the connection is busy."""
        before = boottime()

        def looked(rows: list[Row]) -> None:
            self._clock_offset = float(rows[0][0]) - before

        if self._line is not None and self._line.is_resting:
            self.run(_CLOCK.encode(), (), looked, lambda error: None)
        self._probe_later()

    # --- in and out -------------------------------------------------------------------------------------

    def _heard(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            sender, notices = _notices(payload)
            if notices:
                self._received(sender, notices)

    def _go_on(self) -> None:
        """Send what waits: first notices, then the next statement."""
        if self._line is None or not self._line.is_resting:
            return
        if self._telling and not self._sending:
            self._sending.extend(_packed(self._telling, self.life))
            self._telling.clear()
        if self._sending:
            life, payload = self._sending[0]
            self._line.run(_NOTIFY, (self.channel(life), payload), self._sent, self._not_sent)
        elif self._working:
            work = self._under_way = self._working.popleft()
            self._line.run(work.sql, work.values, self._done, self._failed)

    def _sent(self, rows: list[Row]) -> None:
        self._sending.popleft()

    def _not_sent(self, error: psycopg.Error) -> None:
        """The server refuses it, and would again: it is lost, as any notice may be."""
        self._sending.popleft()

    def _done(self, rows: list[Row]) -> None:
        work, self._under_way = self._under_way, None
        assert work is not None
        work.then(rows)

    def _failed(self, error: psycopg.Error) -> None:
        work, self._under_way = self._under_way, None
        assert work is not None
        work.failed(named(error))


def _channels(number: int) -> str:
    return f"hermes_{number}"


def _packed(told: Iterable[tuple[int | None, bytes]], sender: int) -> Iterator[tuple[int | None, str]]:
    """Put the notices of each channel together, in order, into payloads that the server takes."""
    gathered: dict[int | None, list[bytes]] = {}
    sizes: dict[int | None, int] = {}
    for life, notice in told:
        if sizes.get(life, 0) + len(notice) + 1 > PAYLOAD_BYTES_MAX and life in gathered:
            yield life, _payload(gathered.pop(life), sender)
            sizes[life] = 0
        if len(notice) + 2 <= PAYLOAD_BYTES_MAX:
            gathered.setdefault(life, []).append(notice)
            sizes[life] = sizes.get(life, 2) + len(notice) + 1
    for life, notices in gathered.items():
        yield life, _payload(notices, sender)


def _payload(notices: list[bytes], sender: int) -> str:
    """The server takes a little more than PAYLOAD_BYTES_MAX: who has told them fits, too."""
    return (b"[" + b",".join((msgspec.json.encode([_FROM, sender]), *notices)) + b"]").decode()


def _notices(payload: bytes) -> tuple[int | None, list[Notice]]:
    """Of a program of another version, or of none of ours, there may be others: they are ignored."""
    try:
        notices = msgspec.json.decode(payload, type=list[Notice])
    except msgspec.MsgspecError:
        return None, []
    match notices:
        case [[kind, int(sender)], *others] if kind == _FROM:
            return sender, others
    return None, notices
