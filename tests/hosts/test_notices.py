"""Notices between lives through a real server: in order, once, across cuts, and only within one journal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

from supervisor.journal.errors import JournalFenced, JournalUnreachable, JournalUnwritable
from supervisor.journal.postgres import server_schema
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.notices import PAYLOAD_BYTES_MAX, Notices
from supervisor.journal.postgres.read_threads import ReadThreads
from tests.postgres_cluster import Cluster
from tests.waiting import soon


class Host:
    """One end: what it received, and how often it has connected."""

    def __init__(self, url: str, life: int) -> None:
        self._name = f"hermes test {life}"
        self._url = url
        self.asking = ReadThreads(1)
        self.notices = Notices(partial(connect, url, self._name), self.asking, life)
        self.received: list[list[Any]] = []
        self.senders: set[int | None] = set()
        self.arrivals = 0
        self.connects = 0

    def open(self) -> None:
        def received(sender: int | None, notices: list[list[Any]]) -> None:
            self.senders.add(sender)
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
            host.notices.close()
            host.asking.close()


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
            assert two.senders == {1}
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
                refused = list[Any]()
                one.notices.run(b"SELECT 1", (), never, refused.append)
                await soon(lambda: refused)
                assert isinstance(refused[0], JournalUnreachable)
            finally:
                cluster.start()  # in this thread: the server ends with the thread that starts it
            await soon(lambda: two.connects == 2)
            # It is lost when the other end connects later: that is what `connected` is for.
            one.notices.tell(None, ["again"])
            await soon(lambda: ["again"] in two.received)

    run(act)


def test_a_statement_that_was_cut_is_carried_out_again_once(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            failed = list[Any]()
            given_up_at = list[int]()

            def give_up(error: object) -> None:
                failed.append(error)
                given_up_at.append(one.connects)

            ends_itself = b"SELECT pg_terminate_backend(pg_backend_pid())"
            one.notices.run(ends_itself, (), never, give_up)
            await soon(lambda: failed)
            assert isinstance(failed[0], JournalUnreachable)
            assert given_up_at == [2], "a second time it is given up"
            await soon(lambda: one.connects == 3)

            one.notices.run(b"SELECT 1 / $1::int", (0,), never, failed.append)
            one.notices.run(b"no statement", (), never, failed.append)
            rows = list[Any]()
            one.notices.run(b"SELECT 4 / $1::int, NULL, $2::text", (2, "a\0b"), rows.extend, never)
            await soon(lambda: rows)
            assert rows == [("2", None, "a\0b")]
            assert [type(each) for each in failed[1:]] == [JournalFenced, JournalUnwritable]
            assert one.connects == 3, "an error of a statement costs no connection"

    run(act)


def test_a_defect_costs_its_work_and_nothing_else(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            handled: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: handled.append(context))

            def broken(outcome: object) -> None:
                raise KeyError

            one.notices.run(b"SELECT 1", (), broken, never)
            one.notices.run(b"SELECT 1 / 0", (), never, broken)
            await soon(lambda: len(handled) == 2)
            assert all(isinstance(each["exception"], KeyError) for each in handled)
            one.notices.tell(2, ["behind it"])
            await soon(lambda: two.received == [["behind it"]])

    run(act)


def test_a_notice_that_comes_with_a_result_is_heard_at_once(url: str) -> None:
    """The server sends what was told during a statement between its result and its end."""

    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            rows = list[Any]()
            one.notices.run(b"SELECT 1 FROM pg_sleep(0.5)", (), rows.extend, never)
            two.notices.tell(1, ["meanwhile"])
            # Long before the clock is looked at.
            await soon(lambda: one.received == [["meanwhile"]], 10)
            await soon(lambda: rows)

    run(act)


def test_more_than_the_socket_takes_is_sent_when_it_has_room(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            rows = list[Any]()
            for _ in range(2):
                one.notices.run(b"SELECT length($1)", ("x" * 20_000_000,), rows.extend, never)
            await soon(lambda: len(rows) == 2)
            assert rows == [("20000000",)] * 2

    run(act)


def test_close_sends_what_was_told(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1), (url, 2)) as (one, two):
            for number in range(3):
                one.notices.tell(2, ["last", number])
            one.notices.close()
            await soon(lambda: two.received == [["last", number] for number in range(3)])

    run(act)


def test_a_payload_of_another_program_is_ignored(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            with psycopg.connect(url, autocommit=True) as stranger:
                for payload in ("", "{}", "[1]", "nothing", '[["from",7]]', '[["known"]]'):
                    stranger.execute("SELECT pg_notify(%s, %s)", (one.notices.channel(None), payload))
            await soon(lambda: one.received)
            assert one.received == [["known"]]
            assert one.senders == {None}, "a version that does not say so"

    run(act)


def test_a_notice_waits_for_no_disk(url: str) -> None:
    """NOTIFY holds a lock of the whole server until its commit."""

    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            told = list[Any]()
            one.notices.run(b"SHOW synchronous_commit", (), told.extend, never)
            await soon(lambda: told == [("off",)])

    run(act)


def test_the_clock_is_that_of_the_server(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            now = list[Any]()
            sql = b"SELECT extract(epoch FROM clock_timestamp())::double precision"
            one.notices.run(sql, (), now.extend, never)
            await soon(lambda: now)
            assert one.notices.server_now is not None
            assert abs(one.notices.server_now - float(now[0][0])) < 5

    run(act)
