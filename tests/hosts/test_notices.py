"""Notices between lives through a real server: in order, once, across cuts, and only within one journal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from supervisor.journal.errors import JournalError, JournalUnreachable
from supervisor.journal.postgres import server_schema
from supervisor.journal.postgres.connecting import Connection, connect
from supervisor.journal.postgres.notices import PAYLOAD_BYTES_MAX, Notices
from tests.postgres_cluster import Cluster
from tests.waiting import soon


class Host:
    """One end: what it received, and how often it has connected."""

    def __init__(self, url: str, life: int) -> None:
        self._name = f"hermes test {life}"
        self._url = url
        self.notices = Notices(partial(connect, url, self._name), life)
        self.received: list[list[Any]] = []
        self.arrivals = 0
        self.connects = 0

    def open(self) -> None:
        def received(notices: list[list[Any]]) -> None:
            self.received += notices
            self.arrivals += 1

        def connected() -> None:
            self.connects += 1

        self.notices.open(received, connected)

    def cut(self) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                (self._name,),
            )


@pytest.fixture
def url(cluster: Cluster, schema: str) -> str:
    return prepared(cluster.url(schema))


def prepared(url: str) -> str:
    with connect(url, "test") as connection:
        server_schema.prepare(connection)
    return url


@asynccontextmanager
async def hosts(*ends: tuple[str, int]) -> AsyncIterator[list[Host]]:
    opened = [Host(*end) for end in ends]
    for host in opened:
        host.open()
    await soon(lambda: all(host.connects for host in opened))
    try:
        yield opened
    finally:
        for host in opened:
            await asyncio.to_thread(host.notices.close)


def nothing(connection: Connection) -> None:
    """Work without an effect."""


def never(outcome: object) -> None:
    pytest.fail(f"it came to this: {outcome}")


def run(act: Callable[[], Any]) -> None:
    asyncio.run(act())


def test_notices_arrive_in_order_and_share_what_the_server_takes(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            sent = [["text", number, "é" * 300] for number in range(500)]
            for notice in sent:
                one.notices.tell(None, notice)
            one.notices.tell(2, ["for two"])
            one.notices.tell(3, ["for another"])
            await soon(lambda: len(two.received) == 501)
            assert [each for each in two.received if each[0] == "text"] == sent
            assert ["for two"] in two.received
            assert two.arrivals < 100, "they came together"
            assert not one.received, "a host is not told its own"

    run(act)


def test_a_notice_of_the_largest_size_is_taken(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            largest = ["x" * (PAYLOAD_BYTES_MAX - len('[[""]]'))]
            for notice in (largest, ["behind it"]):
                one.notices.tell(None, notice)
            await soon(lambda: two.received == [largest, ["behind it"]])

    run(act)


def test_journals_in_one_database_do_not_hear_each_other(cluster: Cluster, url: str) -> None:
    other = prepared(cluster.url(cluster.new_schema()))

    async def act() -> None:
        async with hosts((url, 1), (url, 2), (other, 2)) as (one, two, stranger):
            for life in (None, 2):
                one.notices.tell(life, ["hello"])
            await soon(lambda: len(two.received) == 2)
            stranger.notices.tell(2, ["itself"])
            await soon(lambda: stranger.connects)
            assert not stranger.received

    run(act)


def test_a_cut_connection_is_opened_again_and_reported(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            two.cut()
            await soon(lambda: two.connects == 2)
            one.notices.tell(2, ["first"])
            await soon(lambda: two.received == [["first"]])
            one.cut()
            one.notices.tell(2, ["second"])
            await soon(lambda: ["second"] in two.received)

    run(act)


def test_what_is_told_while_the_server_is_away_is_told_when_it_is_back(cluster: Cluster, url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            cluster.stop("immediate")
            try:
                one.notices.tell(None, ["late"])
                refused: list[JournalError] = []
                one.notices.run(nothing, never, refused.append)
                await soon(lambda: refused)
                assert isinstance(refused[0], JournalUnreachable)
            finally:
                cluster.start()  # in this thread: the server ends with the thread that starts it
            await soon(lambda: two.connects == 2)
            # It is lost when the other end connects later: that is what `connected` is for.
            one.notices.tell(None, ["again"])
            await soon(lambda: ["again"] in two.received)

    run(act)


def test_work_that_was_cut_is_done_again_once(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            tries, done, failed = [], list[int](), list[JournalError]()

            def work(connection: Connection) -> int:
                tries.append(connection.info.backend_pid)
                if len(tries) == 1:
                    connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
                return len(tries)

            one.notices.run(work, done.append, failed.append)
            await soon(lambda: done or failed)
            assert (done, failed) == ([2], [])

            def refused(connection: Connection) -> None:
                connection.execute("SELECT 1 / 0")

            one.notices.run(refused, never, failed.append)
            await soon(lambda: failed)
            assert one.connects == 2, "an error of a statement costs no connection"

    run(act)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_costs_its_work_and_nothing_else(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            handled: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: handled.append(context))

            def broken(connection: Connection) -> None:
                raise KeyError

            one.notices.run(broken, never, never)
            await soon(lambda: handled)
            assert isinstance(handled[0]["exception"], KeyError)
            one.notices.tell(2, ["behind it"])
            await soon(lambda: two.received == [["behind it"]])

    run(act)


def test_close_sends_what_was_told(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            one.notices.tell(2, ["last"])
            await asyncio.to_thread(one.notices.close)
            await soon(lambda: two.received == [["last"]])

    run(act)


def test_a_payload_of_another_program_is_ignored(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            with psycopg.connect(url, autocommit=True) as stranger:
                for payload in ("", "{}", "[1]", "nothing", '[["known"]]'):
                    stranger.execute("SELECT pg_notify(%s, %s)", (one.notices.channel(None), payload))
            await soon(lambda: one.received)
            assert one.received == [["known"]]

    run(act)


def test_a_notice_waits_for_no_disk(url: str) -> None:
    """NOTIFY holds a lock of the whole server until its commit."""

    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            told: list[str] = []
            one.notices.run(
                lambda connection: str(connection.execute("SHOW synchronous_commit").fetchall()[0][0]),
                told.append,
                never,
            )
            await soon(lambda: told == ["off"])

    run(act)


def test_the_clock_is_that_of_the_server(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            now: list[float] = []
            sql = "SELECT extract(epoch FROM clock_timestamp())::double precision AS now"
            one.notices.run(
                lambda connection: connection.execute(sql).fetchall()[0]["now"], now.append, never
            )
            await soon(lambda: now)
            assert one.notices.server_now is not None
            assert abs(one.notices.server_now - now[0]) < 5

    run(act)
