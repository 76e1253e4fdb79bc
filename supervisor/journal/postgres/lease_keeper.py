"""Keeps the lease of this life, by a thread and a connection of its own, and takes over what others left.

Problem: a host dies without a word, and its sessions must go on elsewhere; but the sessions of one that is
only slow, stopped or cut off must not run twice. From outside the two look the same. So a life lasts as long
as it is renewed (host_life.py), its own processes end before it does (supervisor/host/lease.py), and the
others wait for its end by the database's clock.

One look, every half second:

1. renew the own life, every 2 s of a lease of 15 s, and when other hosts are to know something else of it;
2. end lives whose `until` has passed, if this connection is older than their lease. After the database
   itself was away every life is over by its clock, and every connection is new: so every host gets the time
   to renew;
3. make sessions of lives that are gone sessions of this one, as far as this host may have them;
4. report which sessions were given to this life, by step 3 or by another host, and which hosts there are.

What the loop asks for meanwhile, releases and marks, is written with the next look.

Renewals are not waited for on disk (`synchronous_commit = off`): a renewal that a crash of the server undoes
is made again before another host acts, by the rule of step 2. What others rely on, the end of a life and the
new owner of a session, is durable before it is acted upon.

The thread never waits for a lock longer than half a second, so that it renews in time.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from supervisor.clock import boottime, monotonic
from supervisor.host import threads
from supervisor.host.lease import Lease
from supervisor.journal.errors import JournalEnded, JournalError, JournalUnwritable
from supervisor.journal.postgres import host_life, owner_rows
from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.host_life import Host, Life
from supervisor.journal.postgres.owner_rows import MayHave

_LOOK_SECONDS_MAX = 0.5
# Parts of a lease.
_LOOK, _RENEW = 1 / 8, 2 / 15

_QUICK = "SELECT set_config('synchronous_commit', 'off', false), set_config('lock_timeout', '500ms', false)"
_HOSTS = """
    SELECT epoch, name, labels, state, seats, free, lease, until < clock_timestamp() AS is_over
    FROM lives WHERE NOT gone AND epoch <> %s ORDER BY epoch"""
_LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True, slots=True)
class OtherHost:
    """Another life that is not gone. `free` is the number of turns that it could begin now."""

    life: int
    name: str
    labels: frozenset[str]
    state: str
    seats: int
    free: int


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found."""

    hosts: tuple[OtherHost, ...]
    given: tuple[str, ...]
    # Draining or open, if an operator has asked for it at another host.
    asked: str = ""
    # The `stamp` with which it began.
    began: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What other hosts are told of this one."""

    state: str = "open"
    seats: int = 0
    free: int = 0


class LeaseKeeper:
    """`standing` may be replaced at any time; the next renewal tells it."""

    def __init__(self, connect: Callable[[], Connection], life: Life, host: Host, lease: Lease) -> None:
        self._connect = connect
        self._life = life
        self._host = host
        self._lease = lease
        self.standing = Standing()
        self._told: Standing | None = None
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._renew_at = 0.0
        self._asked = ""
        # Set by the loop; a look that began with a lower one may have found what is not true any more.
        self.stamp = 0
        self._released: list[tuple[str, int]] = []
        self._marked: list[str] = []
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._is_closing = False
        self._looked: Callable[[Look], None] = lambda look: None
        self._ended: Callable[[JournalError], None] = lambda error: None
        self._may_have: MayHave | None = None
        self._thread = threads.start(self._run, "lease")

    def open(
        self, looked: Callable[[Look], None], ended: Callable[[JournalError], None], may_have: MayHave
    ) -> None:
        """From now on sessions are taken over. All three are called in the keeper's thread."""
        self._looked, self._ended, self._may_have = looked, ended, may_have
        self.nudge()

    def release(self, claims: list[tuple[str, int]]) -> None:
        with self._lock:
            self._released += claims

    def mark_taken(self, sessions: list[str]) -> None:
        with self._lock:
            self._marked += sessions

    def unmark(self, sessions: list[str]) -> None:
        """These sessions have left: a mark that is not written yet would be about their next stay."""
        with self._lock:
            self._marked = [each for each in self._marked if each not in sessions]

    def nudge(self) -> None:
        """Look now: something has changed."""
        self._woken.set()

    def close(self) -> None:
        """Renew no more. What was not released stays with the life."""
        self._is_closing = True
        self._woken.set()
        self._thread.join(_LOOK_SECONDS_MAX)

    def _run(self) -> None:
        interval = min(_LOOK_SECONDS_MAX, self._lease.seconds * _LOOK)
        try:
            while not self._is_closing:
                self._try()
                self._woken.wait(interval)
                self._woken.clear()
        except JournalEnded as error:
            self._ended(error)
        except BaseException as error:
            broken = JournalError(
                f"the thread that keeps the lease ended by an internal error ({type(error).__name__})",
                "`hermesctl logs` shows where; start the service again, and please report it",
            )
            broken.__cause__ = error
            self._ended(broken)
            # Without a trace on standard error, which could quote a person: the supervisor logs where it was.
            raise SystemExit from error
        finally:
            if self._connection is not None:
                self._connection.close()

    def _try(self) -> None:
        try:
            self._look(self._open())
        except psycopg.Error as error:
            # A lock that is held is looked for again; anything else needs another connection.
            if error.sqlstate != _LOCK_NOT_AVAILABLE and self._connection is not None:
                self._connection.close()
        except JournalUnwritable:
            pass  # the server is away: the next look tries again

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
            self._connection.execute(_QUICK)
            self._connected_at = monotonic()
            self._renew_at = 0.0
        return self._connection

    def _look(self, connection: Connection) -> None:
        began = self.stamp
        # A host that begins to drain is to get no further sessions, and one that is full, too.
        if monotonic() >= self._renew_at or self.standing != self._told:
            self._renew(connection)
        self._write(connection)
        if self._may_have is None:
            return
        hosts = self._expire(connection)
        may_adopt = self.standing.state == "open" or not any(each.state == "open" for each in hosts)
        if may_adopt:
            owner_rows.adopt_orphans(connection, self._host, self._life.epoch, self._may_have)
        owner_rows.clear(connection)
        asked, self._asked = self._asked, ""
        if asked:
            connection.execute(host_life.CARRIED_OUT, self._life.key | {"asked": asked})
        given = owner_rows.given(connection, self._life.epoch)
        self._looked(Look(tuple(hosts), tuple(given), asked, began))

    def _renew(self, connection: Connection) -> None:
        standing = self.standing
        told = {"state": standing.state, "seats": standing.seats, "free": standing.free}
        sent_at = boottime()
        row = connection.execute(host_life.RENEW, self._life.key | told).fetchone()
        if row is None:
            raise host_life.ended(self._life)
        self._told, self._asked = standing, row["asked"]
        self._lease.renewed(sent_at)
        self._renew_at = monotonic() + self._lease.seconds * _RENEW

    def _write(self, connection: Connection) -> None:
        """Write what the loop asked for. What fails with its connection is not repeated.

        A release that is lost leaves the session here, and a mark is asked for again by the next look.
        """
        with self._lock:
            released, self._released = self._released, []
            marked, self._marked = self._marked, []
        if marked:
            owner_rows.mark_taken(connection, self._life.epoch, marked)
        if released:
            owner_rows.release(connection, self._life.epoch, released)

    def _expire(self, connection: Connection) -> list[OtherHost]:
        """End the lives that are over; return the others."""
        found = connection.execute(_HOSTS, (self._life.epoch,)).fetchall()
        living = []
        for row in found:
            age = monotonic() - self._connected_at
            if row["is_over"] and age > row["lease"] and host_life.expire(connection, int(row["epoch"])):
                continue
            labels = frozenset(json.loads(row["labels"]))
            counts = (int(row["seats"]), int(row["free"]))
            living.append(OtherHost(int(row["epoch"]), row["name"], labels, row["state"], *counts))
        return living
