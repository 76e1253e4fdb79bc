"""Reads of a server by threads: never by the loop, and no row twice after a cut."""

import asyncio
from collections.abc import Iterator

import pytest

from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.server_lookahead import ServerLookahead
from supervisor.journal.postgres.server_rows import ServerRows
from supervisor.lookahead import Wanted
from tests.journal.server import Server
from tests.supervisor.held_asking import HeldAsking

_NUMBERS = "SELECT n FROM generate_series(1, 100) AS n"
_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rows'"


@pytest.fixture
def rows(server: Server) -> Iterator[ServerRows]:
    rows = ServerRows(lambda: connect(server.cluster.url(), "rows"))
    yield rows
    rows.close()


def cut(server: Server) -> None:
    server.sql(f"SELECT pg_terminate_backend(pid) FROM ({_BACKENDS}) AS found")


def test_a_read_of_a_cut_connection_is_made_again_and_leaves_one_connection(
    server: Server, rows: ServerRows
) -> None:
    for _ in range(3):
        assert [row[0] for row in rows.all(_NUMBERS)] == list(range(1, 101))
        cut(server)
    assert rows.all("SELECT 1")
    assert len(rows._opened) == 1


def test_rows_that_were_looked_at_before_a_cut_are_not_looked_at_again(
    server: Server, rows: ServerRows
) -> None:
    seen: list[int] = []

    def enough(row: list[int]) -> bool:
        seen.append(row[0])
        if row[0] == 20:
            cut(server)
        return False

    with pytest.raises(JournalUnreachable):
        rows.some(_NUMBERS, (), enough)
    assert sorted(set(seen)) == seen
    assert seen[-1] < 100


def test_a_read_in_the_thread_of_the_loop_is_a_defect_while_the_service_runs(rows: ServerRows) -> None:
    async def read() -> None:
        rows.all("SELECT 1")

    asyncio.run(read())
    rows.refuses_loop = True
    with pytest.raises(AssertionError, match="must not wait for the database"):
        asyncio.run(read())
    assert rows.all("SELECT 1"), "a thread may"


def test_an_answer_to_a_question_that_was_given_up_is_no_defect(rows: ServerRows) -> None:
    async def ask(is_found: bool) -> None:
        asking = HeldAsking()
        future = ServerLookahead(rows, asking).ask(Wanted())  # type: ignore[arg-type]
        future.cancel()
        asking.answer() if is_found else asking.fail(JournalUnreachable("away", "wait"))

    for is_found in (True, False):
        asyncio.run(ask(is_found))
