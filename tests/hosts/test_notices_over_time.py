"""The connection of the notices when it is cut, closed or refused, and the clock of the server."""

import asyncio
from typing import Any

import psycopg
import pytest

from supervisor.journal.postgres import notices as telling
from supervisor.journal.postgres.connecting import Connection, connect
from tests.hosts.test_notices import Host, hosts, never, prepared, run
from tests.postgres_cluster import Cluster
from tests.waiting import soon


@pytest.fixture
def url(cluster: Cluster, schema: str) -> str:
    return prepared(cluster.url(schema))


def faults_of_loop() -> list[dict[str, Any]]:
    """What reaches the handler of the running loop from now on."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    return faults


def test_a_cut_or_closed_connection_leaves_no_timer(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            first = one.notices._timer
            one.cut()
            await soon(lambda: one.connects == 2)
            second = one.notices._timer
            one.notices.close()
            assert first is not None
            assert first.cancelled()
            assert second is not None
            assert second.cancelled()

    run(act)


def test_a_statement_that_is_over_is_not_carried_out_again_after_a_cut(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            told: list[Any] = []
            one.notices.run(b"SELECT 1", (), told.append, never)
            await soon(lambda: told)
            one.cut()
            await soon(lambda: one.connects == 2)
            one.notices.run(b"SELECT 2", (), told.append, never)
            await soon(lambda: [("2",)] in told)
            assert told == [[("1",)], [("2",)]]

    run(act)


def test_a_statement_that_was_refused_is_taken_when_the_server_knows_it(url: str) -> None:
    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            refused: list[Any] = []
            told: list[Any] = []
            one.notices.run(b"SELECT name FROM made_later", (), never, refused.append)
            one.notices.run(b"CREATE TABLE made_later (name text)", (), told.append, never)
            one.notices.run(b"SELECT name FROM made_later", (), told.append, refused.append)
            await soon(lambda: len(told) + len(refused) == 3)
            assert (told, len(refused)) == ([[], []], 1)

    run(act)


def test_a_defect_with_a_notice_keeps_no_result_that_came_with_it(url: str) -> None:
    """The socket does not tell again of what was read from it."""

    async def act() -> None:
        faults, connects, told = faults_of_loop(), list[int](), list[Any]()
        one = Host(url, 1)
        # It is not what `received` should be.
        one.notices.open(None, lambda: connects.append(1))  # type: ignore[arg-type]
        await soon(lambda: connects)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(7)")
            one.notices.run(b"SELECT 'locked' FROM pg_advisory_lock(7)", (), told.extend, never)
            waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            await soon(lambda: other.execute(waits).fetchone())
            other.execute("SELECT pg_notify(%s, '[[1]]')", (one.notices.channel(1),))
            other.execute("SELECT pg_advisory_unlock(7)")
            await soon(lambda: told)
        assert (told, len(faults)) == ([("locked",)], 1)
        one.notices.close()
        one.asking.close()

    run(act)


def test_the_clock_of_the_server_is_looked_at_again_and_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of two machines drift, and that is how a dead connection is noticed."""
    monkeypatch.setattr(telling, "_PROBE_SECONDS", 0.01)

    async def act() -> None:
        async with hosts((url, 1)) as (one,):
            right = one.notices._clock_offset
            assert right is not None
            for _ in range(2):
                one.notices._clock_offset = 0.0
                await soon(lambda: one.notices._clock_offset)
                assert abs(one.notices._clock_offset - right) < 5

    run(act)


def test_of_too_many_notices_that_wait_the_newest_are_sent(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "_WAITING_MAX", 2)

    async def act() -> None:
        async with hosts((url, 2)) as (two,):
            one = Host(url, 1)
            for number in range(4):
                one.notices.tell(2, ["notice", number])
            one.open()
            await soon(lambda: two.received)
            assert two.received == [["notice", 2], ["notice", 3]]
            one.notices.close()
            one.asking.close()

    run(act)


def test_a_connection_that_cannot_be_used_is_closed_before_the_next_is_made(
    cluster: Cluster, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database has no journal yet."""
    monkeypatch.setattr(telling, "_AGAIN_SECONDS", 0.0)
    url, made = cluster.url(schema), list[Connection]()

    def noted() -> Connection:
        made.append(connect(url, "hermes test 1"))
        return made[-1]

    async def act() -> None:
        one = Host(url, 1)
        one.notices._connect = noted
        one.open()
        await soon(lambda: len(made) > 2)
        prepared(url)
        await soon(lambda: one.connects)
        assert [each.closed for each in made] == [True] * (len(made) - 1) + [False]
        one.notices.close()
        one.asking.close()

    run(act)


def test_a_connection_that_is_made_while_the_host_ends_is_closed_and_not_used(url: str) -> None:
    async def act() -> None:
        faults, made = faults_of_loop(), list[Connection]()
        one = Host(url, 1)
        connecting = one.notices._connect

        def noted() -> Connection:
            made.append(connecting())
            return made[-1]

        one.notices._connect = noted
        one.open()
        # Its thread has made it, and the loop has not heard of that yet.
        one.asking._executor.submit(lambda: None).result()
        one.notices.close()
        for _ in range(5):
            await asyncio.sleep(0)
        assert (one.connects, faults, [each.closed for each in made]) == (0, [], [True])
        one.asking.close()

    run(act)
