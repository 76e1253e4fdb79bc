"""Notices between hosts: LISTEN and NOTIFY by one thread with one connection.

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
server takes. Work by the same connection (`run`) comes behind the notices that were given before it.

The age of a notice: an entry of kind `ask` contains the time of the server's clock at which it was made. Its
receiver may have been stopped meanwhile. `server_now` is that clock as this process knows it, which counts
time in which the machine slept.
"""

import asyncio
import select
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import msgspec
import psycopg

from supervisor.clock import boottime
from supervisor.host import threads
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres.connecting import Connection, named

# The server takes payloads of less than 8,000 bytes.
PAYLOAD_BYTES_MAX = 7_900
# A server that is away is tried again after this.
_AGAIN_SECONDS = 0.5
# The clocks of two machines differ by less than this after that time, and a connection is found dead.
_PROBE_SECONDS = 20.0
# Beyond this the oldest are dropped: they are worth nothing after a long absence of the database.
_WAITING_MAX = 5_000

_OWN_CHANNELS = "SELECT 'lives'::regclass::oid::bigint AS number"
_NO_FLUSH = "SELECT set_config('synchronous_commit', 'off', false)"
_LIVING = "SELECT epoch, name FROM lives WHERE NOT gone AND epoch <> %s"
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::double precision AS now"
_NOTIFY = """
    SELECT pg_notify(channel, payload)
    FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS told (channel, payload, place) ORDER BY place"""

_Found = TypeVar("_Found")
Notice = list[Any]


@dataclass(slots=True)
class _Work:
    """Something to be done by the connection; it is done again when the connection was cut meanwhile."""

    do: Callable[[Connection], Any]
    then: Callable[[Any], None]
    failed: Callable[[JournalError], None]
    was_cut: bool = False


class Notices:
    """Nothing is sent and nothing arrives before `open`. `tell` and `run` may be called by any thread."""

    def __init__(self, connect: Callable[[], Connection], life: int) -> None:
        self.life = life
        self._connect = connect
        self._lock = Lock()
        self._telling: deque[tuple[int | None, bytes]] = deque(maxlen=_WAITING_MAX)
        self._sending: deque[tuple[int | None, bytes]] = deque(maxlen=_WAITING_MAX)
        self._working: deque[_Work] = deque()
        self._awake: socket.socket
        self._wake: socket.socket | None = None
        self._is_closing = False
        self._channels = ""
        self._clock_offset: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._received: Callable[[list[Notice]], None]
        self._connected: Callable[[], None]

    def open(self, received: Callable[[list[Notice]], None], connected: Callable[[], None]) -> None:
        """Begin; both are called in the loop of the caller."""
        self._loop = asyncio.get_running_loop()
        self._received = received
        self._connected = connected
        self._awake, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        self._thread = threads.start(self._run, "hosts")

    def tell(self, life: int | None, notice: Notice) -> None:
        """Send a notice to one life, or to all others."""
        with self._lock:
            self._telling.append((life, msgspec.json.encode(notice)))
        self._nudge()

    def run(
        self,
        do: Callable[[Connection], _Found],
        then: Callable[[_Found], None],
        failed: Callable[[JournalError], None],
    ) -> None:
        """Call `do` with the connection, in its thread; the outcome comes to the loop."""
        with self._lock:
            self._working.append(_Work(do, then, failed))
        self._nudge()

    def channel(self, life: int | None) -> str:
        """Known after the first connect."""
        return self._channels if life is None else f"{self._channels}_{life}"

    def living(self, connection: Connection) -> Mapping[int, str]:
        """Return the other lives that are not gone, with the names of their hosts; called by `run`."""
        return {row["epoch"]: row["name"] for row in connection.execute(_LIVING, (self.life,))}

    @property
    def server_now(self) -> float | None:
        """The server's clock; None before the first connect."""
        return None if self._clock_offset is None else boottime() + self._clock_offset

    def close(self) -> None:
        """What was told and is not sent yet is sent, if the server answers."""
        if self._wake is None or self._is_closing:
            return
        self._is_closing = True
        self._nudge()
        self._thread.join(_AGAIN_SECONDS)
        if not self._thread.is_alive():
            self._wake.close()
            self._awake.close()

    # --- the thread -------------------------------------------------------------------------------------

    def _nudge(self) -> None:
        # Full: the thread has been woken and has not looked yet. Closed: no thread sends any more.
        if self._wake is not None:
            with suppress(OSError):
                self._wake.send(b"\0")

    def _run(self) -> None:
        try:
            self._keep_serving()
        except BaseException as error:
            self._deliver(self._broke, error)
            # Without a trace on standard error, which could quote a person: the loop's handler logs it.
            raise SystemExit from error

    def _broke(self, error: BaseException) -> None:
        """A defect ended the thread; what it was doing is lost, as with a cut connection."""
        self._thread = threads.start(self._run, "hosts")
        raise error

    def _keep_serving(self) -> None:
        while True:
            try:
                self._serve()
                return
            except JournalError as error:
                self._refuse(error)
                if self._is_closing:
                    return
                self._sleep(None, _AGAIN_SECONDS)
            except psycopg.Error:
                # The connection was cut: an error of a statement went to who asked for it.
                if self._is_closing:
                    return

    def _serve(self) -> None:
        """Serve by one connection, until it is cut or this is closed."""
        connection = self._connect()
        try:
            self._listen(connection)
            while not self._is_closing:
                self._turn(connection)
            self._send(connection)
        finally:
            connection.close()

    def _listen(self, connection: Connection) -> None:
        try:
            found = connection.execute(_OWN_CHANNELS).fetchone()
            assert found is not None
            self._channels = f"hermes_{found['number']}"
            connection.execute(_NO_FLUSH)
            for channel in (self.channel(None), self.channel(self.life)):
                connection.execute(f"LISTEN {channel}".encode())
            self._look_at_clock(connection)
        except psycopg.Error as error:
            raise named(error) from error
        self._deliver(self._connected)

    def _look_at_clock(self, connection: Connection) -> None:
        before = boottime()
        found = connection.execute(_CLOCK).fetchone()
        assert found is not None
        self._clock_offset = found["now"] - before

    def _turn(self, connection: Connection) -> None:
        """Send what waits, then pass on what has arrived; wait when there is neither."""
        self._send(connection)
        self._work(connection)
        notices = [
            notice
            for told in connection.notifies(timeout=0)
            if told.pid != connection.info.backend_pid
            for notice in _notices(told.payload)
        ]
        if notices:
            self._deliver(self._received, notices)
        elif not self._waits and not self._sleep(connection, _PROBE_SECONDS):
            self._look_at_clock(connection)

    @property
    def _waits(self) -> bool:
        return bool(self._telling or self._working) or self._is_closing

    def _sleep(self, connection: Connection | None, seconds: float) -> bool:
        """Wait until something arrives or is to be sent; False when the time has passed."""
        sources = [self._awake.fileno()]
        if connection is not None:
            sources.append(connection.fileno())
        ready, _, _ = select.select(sources, [], [], seconds)
        if sources[0] in ready:
            self._awake.recv(4096)
        return bool(ready)

    def _send(self, connection: Connection) -> None:
        """Send the notices that have gathered; they are forgotten when the server has taken them."""
        with self._lock:
            self._sending.extend(self._telling)
            self._telling.clear()
        if self._sending:
            packed = [(self.channel(life), payload) for life, payload in _packed(self._sending)]
            connection.execute(_NOTIFY, ([channel for channel, _ in packed], [each for _, each in packed]))
            self._sending.clear()

    def _work(self, connection: Connection) -> None:
        while self._working:
            with self._lock:
                work = self._working.popleft()
            try:
                found = work.do(connection)
            except psycopg.Error as error:
                if not connection.closed or work.was_cut:
                    self._deliver(work.failed, named(error))
                else:
                    work.was_cut = True
                    with self._lock:
                        self._working.appendleft(work)
                if connection.closed:
                    raise
            else:
                self._deliver(work.then, found)

    def _refuse(self, error: JournalError) -> None:
        """The server is away: nothing waits for it."""
        with self._lock:
            refused, self._working = list(self._working), deque()
        for work in refused:
            self._deliver(work.failed, error)

    def _deliver(self, call: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: no caller waits
            self._loop.call_soon_threadsafe(call, *arguments)


def _packed(told: Iterable[tuple[int | None, bytes]]) -> Iterator[tuple[int | None, str]]:
    """Put the notices of each channel together, in order, into payloads that the server takes."""
    gathered: dict[int | None, list[bytes]] = {}
    sizes: dict[int | None, int] = {}
    for life, notice in told:
        if sizes.get(life, 0) + len(notice) + 1 > PAYLOAD_BYTES_MAX and life in gathered:
            yield life, _payload(gathered.pop(life))
            sizes[life] = 0
        if len(notice) + 2 <= PAYLOAD_BYTES_MAX:
            gathered.setdefault(life, []).append(notice)
            sizes[life] = sizes.get(life, 2) + len(notice) + 1
    for life, notices in gathered.items():
        yield life, _payload(notices)


def _payload(notices: list[bytes]) -> str:
    return (b"[" + b",".join(notices) + b"]").decode()


def _notices(payload: str) -> list[Notice]:
    """Of a program of another version, or of none of ours, there may be others: they are ignored."""
    try:
        return msgspec.json.decode(payload, type=list[Notice])
    except msgspec.MsgspecError:
        return []
