"""One look of the thread that keeps a lease, on a real server; the test decides what happens meanwhile."""

import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import psycopg
import pytest

from supervisor.clock import boottime
from supervisor.host.lease import Lease
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres import host_life, lease_keeper, owner_rows
from supervisor.journal.postgres.connecting import Connection, connect
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.lease_keeper import LeaseKeeper, Look, Standing
from tests.hosts.test_notices import prepared
from tests.postgres_cluster import Cluster
from tests.waiting import until

# Needs no renewal in a test but the first of each connection.
LONG_SECONDS = 3600.0
END_OTHER = "pg_terminate_backend"


class Line:
    """A connection that calls `before` with each statement before it is sent."""

    def __init__(self, connection: Connection, before: Callable[[str], None]) -> None:
        self._connection = connection
        self._before = before

    def execute(self, sql: Any, *values: Any) -> Any:
        self._before(sql.decode() if isinstance(sql, bytes) else sql)
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Keeping:
    """A host whose keeper looks when the test says so, by one connection until that is cut."""

    def __init__(self, url: str, name: str = "alpha", has_local_files: bool = False) -> None:
        self._url = url
        self._middle: tuple[str, Callable[[], None]] | None = None
        self.host = Host(name, name, LONG_SECONDS, (), has_local_files)
        self.lease = Lease(LONG_SECONDS)
        with connect(url, "test") as connection:
            self.life = host_life.begin(connection, self.host)
        self.lines: list[Line] = []
        self.looks: list[Look] = []
        self.ended: list[JournalError] = []
        self.may_have: Callable[[str], bool] = lambda session: True
        self.keeper = LeaseKeeper(self._connect, self.life, self.host, self.lease)
        self.stop()
        self.keeper.open(self.looks.append, self.ended.append, lambda session: self.may_have(session))

    def _connect(self) -> Connection:
        self.lines.append(Line(connect(self._url, self.life.connection_name), self._before))
        return cast(Connection, self.lines[-1])

    def _before(self, sql: str) -> None:
        if self._middle is not None and self._middle[0] in sql:
            (_, act), self._middle = self._middle, None
            act()

    def meanwhile(self, sql: str, act: Callable[[], None]) -> None:
        """Do it once, before the next statement that contains this."""
        self._middle = (sql, act)

    def look(self) -> Look:
        """As the thread does again and again."""
        self.keeper._try()
        assert self._middle is None, "it came to that statement"
        return self.looks[-1]

    def stop(self) -> None:
        self.keeper.close()
        until(lambda: not self.keeper._thread.is_alive())

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Past the keeper."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def owns(self, session: str, life: int, claim: int = 0, taken: bool = True) -> None:
        self.sql("INSERT INTO owners VALUES (%s, %s, %s, %s)", session, life, claim, taken)

    def owners(self) -> dict[str, tuple[int, bool]]:
        return {row[0]: (row[1], row[2]) for row in self.sql("SELECT session, life, taken FROM owners")}

    def other(self, name: str = "beta", gone: bool = False, lease: float = 0.0) -> int:
        """Another life, whose lease is over by the server's clock."""
        sql = """INSERT INTO lives (host, name, secret, lease, until, gone, gone_at)
                 VALUES (%s, %s, 'x', %s, clock_timestamp(), %s, clock_timestamp()) RETURNING epoch"""
        return int(self.sql(sql, name, name, lease, gone)[0][0])

    def close(self) -> None:
        for line in self.lines:
            line.close()
        os.close(self.lease.descriptor)


@pytest.fixture
def url(cluster: Cluster, schema: str) -> str:
    return prepared(cluster.url(schema))


@pytest.fixture
def keeping(url: str) -> Iterator[Keeping]:
    keeping = Keeping(url)
    yield keeping
    keeping.close()


def test_the_lease_counts_from_before_its_renewal_was_sent(keeping: Keeping) -> None:
    """A slow server must not let the workers of this host run after its life is over."""
    sent_at: list[float] = []
    keeping.meanwhile(host_life.RENEW, lambda: sent_at.append(boottime()))
    keeping.look()
    assert keeping.lease._deadline[0] <= int((sent_at[0] + LONG_SECONDS * 2 / 3) * 1e9)


def test_a_renewal_takes_nothing_back_from_a_lease_that_was_extended(keeping: Keeping) -> None:
    """The workers that a restart in place keeps may run until the end of the extended one."""
    lasts = "SELECT until FROM lives"
    keeping.look()
    keeping.lines[-1].execute(host_life.EXTEND, keeping.life.key | {"seconds": 60.0})
    before = keeping.sql(lasts)
    keeping.keeper.standing = Standing("open", 1, 1)
    keeping.look()
    assert keeping.sql("SELECT seats FROM lives") == [(1,)]
    assert keeping.sql(lasts) == before


def test_what_other_hosts_are_to_know_is_told_by_the_next_look(keeping: Keeping) -> None:
    told = "SELECT state, seats, free FROM lives"
    keeping.look()
    for standing in (Standing("open", 3, 2), Standing("draining", 3, 2)):
        keeping.keeper.standing = standing
        keeping.look()
        assert keeping.sql(told) == [(standing.state, standing.seats, standing.free)]
    changed = Standing("open", 3, 1)
    keeping.keeper.standing = Standing("draining", 3, 0)
    keeping.meanwhile(host_life.RENEW, lambda: setattr(keeping.keeper, "standing", changed))
    for told_first in (("draining", 3, 0), ("open", 3, 1)):
        keeping.look()
        assert keeping.sql(told) == [told_first]


def test_what_was_asked_for_before_a_look_is_all_written_marks_first(keeping: Keeping) -> None:
    own = keeping.life.epoch
    for claim, session in enumerate(("a", "b", "c", "d", "e"), 1):
        keeping.owns(session, own, claim, taken=session in "ab")
    keeper = keeping.keeper
    keeper.release([("a", 1)])
    keeper.release([("b", 2), ("c", 3)])
    keeper.mark_taken(["c", "d"])
    keeper.mark_taken(["e"])
    keeper.unmark(["d"])
    keeping.look()
    assert keeping.owners() == {"d": (own, False), "e": (own, True)}


def test_a_release_ends_no_later_claim_and_nothing_of_another_life(keeping: Keeping) -> None:
    own, other = keeping.life.epoch, keeping.other(lease=LONG_SECONDS)
    keeping.owns("claimed again", own, 2)
    keeping.owns("given to it since", own, 1, taken=False)
    keeping.owns("given away", other, 1, taken=False)
    before = keeping.owners()
    keeping.keeper.release([(session, 1) for session in before])
    keeping.keeper.mark_taken(["given away"])
    keeping.look()
    assert keeping.owners() == before


def test_a_look_has_the_stamp_with_which_it_began(keeping: Keeping) -> None:
    keeping.keeper.stamp = 4
    keeping.meanwhile(owner_rows._GIVEN, lambda: setattr(keeping.keeper, "stamp", 5))
    assert keeping.look().began == 4
    assert keeping.look().began == 5


def test_what_an_operator_asks_for_is_reported_once_and_what_is_asked_meanwhile_next(
    keeping: Keeping,
) -> None:
    def asks(state: str) -> None:
        keeping.sql("UPDATE lives SET asked = %s", state)

    keeping.look()
    asks("draining")
    keeping.meanwhile(host_life.CARRIED_OUT, lambda: asks("open"))
    reported = []
    for free in (1, 1, 2, 2, 3):
        keeping.keeper.standing = Standing("open", 4, free)  # when that changes, it renews and is told
        reported.append(keeping.look().asked)
    assert reported == ["draining", "", "open", "", ""]


def test_sessions_of_a_dead_host_go_to_one_that_is_open_and_only_else_to_one_that_drains(
    keeping: Keeping,
) -> None:
    own, gone, other = keeping.life.epoch, keeping.other("gone", gone=True), keeping.other(lease=LONG_SECONDS)
    keeping.owns("s", gone)
    keeping.keeper.standing = Standing("draining")
    keeping.look()
    assert keeping.owners() == {"s": (gone, True)}
    keeping.sql("UPDATE lives SET state = 'draining' WHERE epoch = %s", other)
    assert keeping.look().given == ("s",)
    assert keeping.owners() == {"s": (own, False)}


def test_of_two_hosts_that_find_the_same_orphan_the_first_has_it_durably(keeping: Keeping) -> None:
    gone, other = keeping.other("gone", gone=True), keeping.other(lease=LONG_SECONDS)
    for session in ("s", "t"):
        keeping.owns(session, gone)
    flushes: list[Any] = []

    def is_first() -> None:
        keeping.sql("UPDATE owners SET life = %s WHERE session = 's'", other)
        flushes.append(keeping.lines[-1].execute("SHOW synchronous_commit").fetchone()[0])

    keeping.meanwhile("INSERT INTO owners", is_first)
    assert keeping.look().given == ("t",)
    assert keeping.owners()["s"] == (other, True)
    assert flushes == ["on"]


def test_a_session_stays_with_its_files_while_their_host_is_there(url: str) -> None:
    keeping = Keeping(url, has_local_files=True)
    gone, other = keeping.other("gone", gone=True), keeping.other(lease=LONG_SECONDS)
    for session, home in (("mine", "alpha"), ("of beta", "beta"), ("lost", "gone"), ("without files", "")):
        keeping.owns(session, gone)
        if home:
            keeping.sql("INSERT INTO homes (session, host, turn) VALUES (%s, %s, 't')", session, home)
    assert set(keeping.look().given) == {"mine", "lost", "without files"}
    keeping.sql("UPDATE lives SET gone = true WHERE epoch = %s", other)
    assert "of beta" in keeping.look().given
    keeping.close()


def test_a_dead_host_is_passed_over_only_when_nothing_is_left_of_it(keeping: Keeping) -> None:
    lives = [keeping.other(name, gone=True) for name in ("just now", "has a session", "long ago")]
    keeping.sql("UPDATE lives SET gone_at = gone_at - interval '2 min' WHERE name <> 'just now' AND gone")
    keeping.owns("s", lives[1])
    keeping.may_have = lambda session: False
    keeping.look()
    assert keeping.sql("SELECT name FROM lives WHERE cleared") == [("long ago",)]
    keeping.may_have = lambda session: True
    assert keeping.look().given == ("s",)


def test_a_host_that_renews_its_lease_at_the_last_moment_goes_on(keeping: Keeping, url: str) -> None:
    """Also its connections: they have renewed it."""
    other = keeping.other()
    mark = keeping.sql(
        "SELECT 'hermes ' || epoch || ' ' || left(md5(secret), 8) FROM lives WHERE name = 'beta'"
    )

    def renews() -> None:
        keeping.sql("UPDATE lives SET until = until + interval '1 hour' WHERE epoch = %s", other)

    with connect(url, mark[0][0]) as of_other:
        keeping.meanwhile(END_OTHER, renews)
        assert [each.life for each in keeping.look().hosts] == [other]
        assert of_other.execute("SELECT 1 AS answer").fetchone() is not None, "it was not cut"
        keeping.sql("UPDATE lives SET until = clock_timestamp() WHERE epoch = %s", other)
        keeping.meanwhile("UPDATE lives SET gone = true", renews)
        assert [each.life for each in keeping.look().hosts] == [other]
    assert keeping.sql("SELECT gone FROM lives WHERE epoch = %s", other) == [(False,)]


def test_a_connection_takes_over_only_when_it_is_older_than_the_lease(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new one begins again: the server may have been away for all hosts."""
    now = 1000.0
    monkeypatch.setattr(lease_keeper, "monotonic", lambda: now)
    other = keeping.other(lease=10.0)
    for seconds, is_cut in ((0.0, False), (9.0, True), (9.0, False)):
        now += seconds
        if is_cut:
            keeping.lines[-1].close()
        assert [each.life for each in keeping.look().hosts] == [other]
    now += 2.0
    assert keeping.look().hosts == ()
    assert keeping.sql("SELECT gone FROM lives WHERE epoch = %s", other) == [(True,)]


def test_a_lock_that_is_held_costs_one_look_and_not_the_connection(keeping: Keeping) -> None:
    """With a new one the wait for the leases of others would begin again."""

    def fails(error: type[psycopg.Error]) -> Callable[[], None]:
        def act() -> None:
            raise error

        return act

    keeping.look()
    connections = len(keeping.lines)
    for error, others in ((psycopg.errors.LockNotAvailable, 0), (psycopg.errors.ProtocolViolation, 1)):
        keeping.meanwhile(owner_rows._GIVEN, fails(error))
        keeping.look()
        keeping.look()
        assert len(keeping.lines) == connections + others
    assert not keeping.ended
