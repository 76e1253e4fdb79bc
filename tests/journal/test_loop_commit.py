"""Commits that the event loop sends itself: as durable, as ordered and as refused as those of the thread."""

import asyncio
import os
import select
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
import uvloop

from supervisor.core.records import Record
from supervisor.journal.errors import JournalEnded, JournalError, JournalFenced
from supervisor.journal.postgres.batch_writer import BatchWriter
from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.server_journal import ServerJournal
from supervisor.journal.prune import Store
from tests.cutting_proxy import Cut
from tests.journal.lives import accepted
from tests.journal.server import Server, replica_comes, waiting_for_replica
from tests.waiting import until

# What has to be escaped somewhere on its way.
_TEXT = "\x00 \x10 \" ' % %s $1 ü \n"


@pytest.fixture
def by_thread(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Record]]:
    """The batches that the thread got to write."""
    batches: list[Sequence[Record]] = []
    write = BatchWriter.write

    def noted(self: BatchWriter, records: Sequence[Record]) -> None:
        batches.append(records)
        write(self, records)

    monkeypatch.setattr(BatchWriter, "write", noted)
    return batches


def run(work: Coroutine[Any, Any, None]) -> None:
    """In a loop as the supervisor's: it reports the error of a socket once."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def begun(server: Server) -> ServerJournal:
    """A journal with a session that has one message."""
    journal = server.open()
    journal.commit_now([accepted(1)])
    return journal


def test_messages_that_wait_need_no_thread(server: Server, by_thread: list[Sequence[Record]]) -> None:
    async def messages(journal: ServerJournal) -> None:
        for number in range(2, 50):
            await journal.commit([accepted(number, text=_TEXT)])
            assert journal.read.session_seq("s") == number

    journal = begun(server)
    run(messages(journal))
    assert len(by_thread) == 1
    assert journal.transactions == 49
    assert server.sql("SELECT batch FROM lives") == [(49,)]
    woken = journal.wake("s")
    assert woken is not None
    assert {message.text for message in woken.waiting} == {"hello", _TEXT}


@pytest.mark.parametrize("how", ["before", "halfway", "sent", "answer"])
@pytest.mark.parametrize("is_prepared", [True, False])
def test_a_batch_that_is_cut_is_settled_by_the_thread(server: Server, how: Cut, is_prepared: bool) -> None:
    async def messages(journal: ServerJournal) -> None:
        number = 1
        for _ in range(10):
            if is_prepared:
                await journal.commit([accepted(number := number + 1)])
            server.proxy.cut(how)
            await journal.commit([accepted(number := number + 1)])

    journal = begun(server)
    run(messages(journal))
    number = 21 if is_prepared else 11
    assert server.proxy.cuts == 10
    assert [each.seq for each in journal.read.events_after("s", 0, 100)] == list(range(1, number + 1))
    assert server.sql("SELECT batch FROM lives") == [(number,)]
    assert journal.transactions == number


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_connection_that_ended_while_it_rested_costs_no_batch(server: Server, is_reset: bool) -> None:
    """What the server said at its end waits to be read. The next write is answered by a reset, or fails."""

    async def messages(journal: ServerJournal) -> None:
        await journal.commit([accepted(2)])
        line = writing_line(journal)
        server.sql(f"SELECT pg_terminate_backend({line.info.backend_pid})")
        arrivals = select.poll()
        arrivals.register(line.fileno(), select.POLLIN)
        assert arrivals.poll(30_000)
        if is_reset:
            os.write(line.fileno(), b"S")
        await asyncio.wait_for(journal.commit([accepted(3)]), 30)

    journal = begun(server)
    run(messages(journal))
    assert [each.seq for each in journal.read.events_after("s", 0, 100)] == [1, 2, 3]


def test_a_connection_that_is_reset_in_the_middle_of_a_long_statement_costs_no_batch(server: Server) -> None:
    async def messages(journal: ServerJournal) -> None:
        await journal.commit([accepted(2)])
        backend = writing_line(journal).info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            commit = journal.commit([accepted(3, text="long " * 4_000_000)])
            await asyncio.sleep(0)  # it is sent as far as the buffers go
            server.proxy.drop()
        finally:
            os.kill(backend, signal.SIGCONT)
        await asyncio.wait_for(commit, 30)

    journal = begun(server)
    run(messages(journal))
    assert [each.seq for each in journal.read.events_after("s", 0, 100)] == [1, 2, 3]


def writing_line(journal: ServerJournal) -> Connection:
    return journal._writer._connection


def test_a_copy_of_the_loop_that_arrives_late_changes_nothing(server: Server) -> None:
    async def messages(journal: ServerJournal) -> None:
        await journal.commit([accepted(2)])
        server.proxy.cut("late")
        await journal.commit([accepted(3)])

    journal = begun(server)
    run(messages(journal))
    before = server.sql("SELECT batch, xmin::text FROM lives")
    server.proxy.deliver()
    assert server.sql("SELECT batch, xmin::text FROM lives") == before
    assert server.sql("SELECT count(*) FROM events") == [(3,)]


def test_what_is_put_behind_a_batch_of_the_loop_is_written_behind_it(server: Server) -> None:
    """Whether it is one for the thread, a chore, or one for the loop; and also when the first is cut."""
    seen: list[int] = []

    def chore(store: Store) -> bool:
        seen.extend(row[0] for row in store.execute("SELECT seq FROM sessions WHERE name = 's'").fetchall())
        return False

    async def together(journal: ServerJournal, first: int) -> None:
        await asyncio.gather(
            journal.commit([accepted(first)]),
            journal._group_commit.chore(chore),
            journal.commit([accepted(first + 1), accepted(first + 2)]),
            journal.commit([accepted(first + 3)]),
        )

    async def twice(journal: ServerJournal) -> None:
        await together(journal, 2)
        server.proxy.cut("answer")
        await together(journal, 6)

    journal = begun(server)
    run(twice(journal))
    assert journal.read.session_seq("s") == 9
    assert all(number in (2, 5) or number >= 6 for number in seen)
    assert len(seen) == 2


def test_a_refused_batch_is_named_and_the_next_one_is_written(
    server: Server, by_thread: list[Sequence[Record]]
) -> None:
    async def messages(journal: ServerJournal) -> None:
        with pytest.raises(JournalFenced, match=r"session\.advanced"):
            await journal.commit([accepted(7)])
        await journal.commit([accepted(2)])

    journal = begun(server)
    run(messages(journal))
    assert len(by_thread) == 2, "the second commit of the loop was none of the thread"
    assert server.sql("SELECT batch FROM lives") == [(2,)]


def test_a_life_that_is_gone_writes_nothing_from_the_loop_either(server: Server) -> None:
    async def message(journal: ServerJournal) -> None:
        server.sql("UPDATE lives SET gone = true")
        with pytest.raises(JournalEnded):
            await journal.commit([accepted(2)])

    run(message(begun(server)))
    assert server.sql("SELECT count(*) FROM events") == [(1,)]


@pytest.mark.parametrize("by", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_batch_of_the_loop_that_gave_up_waiting_for_its_replica_is_not_acknowledged(
    absent_replica: Server, by: str
) -> None:
    server = absent_replica

    async def message(journal: ServerJournal) -> None:
        server.sql("SELECT pg_reload_conf()")
        until(lambda: server.sql("SHOW synchronous_standby_names") == [("absent",)])
        commit = journal.commit([accepted(2)])
        (first,) = await asyncio.to_thread(until, lambda: waiting_for_replica(server))
        server.sql(f"SELECT {by}({first})")
        await asyncio.to_thread(until, lambda: server.sql("SELECT batch FROM lives") == [(2,)])
        # It is visible, and waited for once more.
        await asyncio.to_thread(until, lambda: waiting_for_replica(server))
        assert not commit.done()
        replica_comes(server)
        await commit

    server.sql("ALTER SYSTEM RESET synchronous_standby_names")
    journal = begun(server)
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
    run(message(journal))
    assert server.sql("SELECT batch FROM lives") == [(2,)]


@pytest.mark.parametrize("ends", ["closed", "loop ended"])
def test_a_batch_under_way_at_the_end_is_written_and_so_is_what_waits_behind_it(
    server: Server, ends: str
) -> None:
    async def leave(journal: ServerJournal) -> None:
        journal.commit([accepted(2)])
        journal.commit([accepted(3)]).cancel()
        if ends == "closed":
            journal.close()

    journal = begun(server)
    run(leave(journal))
    if ends == "loop ended":
        journal.commit_now([accepted(4)])
    assert [row[0] for row in server.sql("SELECT seq FROM events ORDER BY seq")] == [
        1,
        2,
        3,
        *([4] if ends == "loop ended" else []),
    ]


def test_an_answer_that_nobody_waits_for_leaves_the_connection_to_the_next(server: Server) -> None:
    async def messages(journal: ServerJournal) -> None:
        journal.commit([accepted(2)]).cancel()
        await journal.commit([accepted(3)])

    journal = begun(server)
    run(messages(journal))
    run(messages_again(journal))
    assert journal.read.session_seq("s") == 4


async def messages_again(journal: ServerJournal) -> None:
    """In another loop, by the same connection."""
    await journal.commit([accepted(4)])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_when_the_thread_has_ended_nothing_is_written(server: Server) -> None:
    async def messages(journal: ServerJournal) -> None:
        with pytest.raises(JournalError, match="internal error"):
            await journal._group_commit.chore(lambda store: bool(1 // 0))
        with pytest.raises(JournalError, match="internal error"):
            await journal.commit([accepted(2)])

    journal = begun(server)
    run(messages(journal))
