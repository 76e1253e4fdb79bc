"""What batches and starts of a life on a server do to its lease, its lock and its files."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import psycopg
import pytest

from supervisor.clock import boottime
from supervisor.host.lease import Lease
from supervisor.journal import lock as locking
from supervisor.journal.errors import JournalEnded, JournalUnfit
from supervisor.journal.postgres import host_life
from supervisor.journal.postgres.connecting import connect
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.server_journal import ServerJournal
from supervisor.journal.prune import Store
from tests.journal.lives import accepted
from tests.journal.server import Server
from tests.journal.test_fences import ATTEMPT, DONE, OPENED, renumbered
from tests.journal.test_lives_on_a_server import _later, commit_stubbornly
from tests.waiting import until

LEASE_SECONDS = 3600.0


def given_up_at(lease: Lease) -> float:
    return lease._deadline[0] / 1e9


def is_held_up(server: Server) -> bool:
    return bool(server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))


def slowly(server: Server, commit: Callable[[], "Future[object]"]) -> float:
    """Make a commit that the server holds up; return a moment after it was sent and before it was made."""
    with psycopg.connect(server.cluster.url(server._schema)) as holding:
        holding.execute("SELECT 1 FROM lives FOR UPDATE")
        made = commit()
        until(lambda: is_held_up(server))
        moment = boottime()
    made.result(30)
    return moment


def test_the_lease_counts_from_before_a_batch_was_sent(server: Server) -> None:
    """Two messages of a session are a batch of the thread."""
    journal = server.open(lease_seconds=LEASE_SECONDS)
    moment = slowly(server, lambda: _later(lambda: journal.commit_now([accepted(1), accepted(2)])))
    assert given_up_at(journal.lease) < moment + LEASE_SECONDS * 2 / 3


def test_the_lease_counts_from_before_a_batch_of_the_loop_was_sent(server: Server) -> None:
    async def message(journal: ServerJournal) -> float:
        loop = asyncio.get_running_loop()

        async def commit() -> None:
            await journal.commit([accepted(2)])

        return await asyncio.to_thread(
            slowly, server, lambda: asyncio.run_coroutine_threadsafe(commit(), loop)
        )

    journal = server.open(lease_seconds=LEASE_SECONDS)
    journal.commit_now([accepted(1)])
    moment = asyncio.run(message(journal))
    assert given_up_at(journal.lease) < moment + LEASE_SECONDS * 2 / 3


def test_a_warning_at_a_commit_is_noticed_on_later_connections_too(server: Server) -> None:
    """It says that a replica may not have the batch, so that is made sure of by another commit."""
    journal = server.open()
    server.sql(f"SELECT pg_terminate_backend({journal._writer._connection.info.backend_pid})")
    commit_stubbornly(journal, [accepted(1)])
    server.sql(
        """CREATE SEQUENCE writes;
        CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('writes') = 1 THEN RAISE WARNING 'the replica is away'; END IF;
            RETURN new;
        END $$;
        CREATE TRIGGER warns AFTER UPDATE ON lives FOR EACH ROW EXECUTE FUNCTION warn()"""
    )
    journal.commit_now([accepted(2)])
    assert server.sql("SELECT last_value FROM writes") == [(2,)]


def test_the_next_life_of_a_host_has_its_sessions_from_its_beginning(server: Server) -> None:
    """Another host gets none before this one has ended the processes that the former life has left."""
    journal = server.open()
    server.sql("INSERT INTO owners VALUES ('s', 1, 5, true)")
    held, journal._lock = journal._lock, -1
    os.close(held)  # as the kernel does for a process that ends
    assert server.open().epoch == 2
    assert server.sql("SELECT life, claim, taken FROM owners") == [(2, 0, True)]


def test_a_chore_of_a_life_that_is_gone_changes_nothing(server: Server) -> None:
    ran: list[Store] = []

    def chore(store: Store) -> bool:
        ran.append(store)
        return False

    journal = server.open()
    journal.commit_now([accepted(1)])
    server.sql("UPDATE lives SET gone = true")
    with pytest.raises(JournalEnded):
        journal._writer.run(chore)
    assert not ran


def test_the_files_of_a_session_come_from_another_host_only_when_its_turn_begins_elsewhere(
    server: Server,
) -> None:
    alpha, beta = server.open("alpha"), server.open("beta")
    alpha.commit_now([accepted(1), OPENED, ATTEMPT, DONE])
    for number, journal in ((2, alpha), (3, beta), (4, beta)):
        turn, seq = f"s/{number}", 4 * number - 3
        opened = replace(OPENED, turn=turn, number=number, messages=(f"m_s_{seq}",))
        attempt, done = replace(ATTEMPT, turn=turn), replace(DONE, turn=turn)
        following = [renumbered(each, seq + by) for by, each in enumerate((opened, attempt, done), 1)]
        journal.commit_now([accepted(seq), *following])
        assert beta.came_from("s", turn) == ("alpha" if number == 3 else "")


def test_a_start_that_is_refused_leaves_neither_its_lock_nor_a_connection(server: Server) -> None:
    server.open("alpha").close()
    server.sql("UPDATE journal_schema SET moved_at = clock_timestamp()")
    with pytest.raises(JournalUnfit):
        server.open("beta")
    held = locking.take(server._folder / "beta.lock")
    assert held >= 0
    until(lambda: not server.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'hermes beta'"))


def test_commits_are_durable_whatever_the_role_has_as_its_default(server: Server) -> None:
    url = server.cluster.url(server._schema)
    for default, found in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        with connect(f"{url}%20-csynchronous_commit%3D{default}", "test") as connection:
            (row,) = connection.execute("SHOW synchronous_commit").fetchall()
            assert row[0] == found


def test_a_host_of_the_same_name_that_could_not_renew_for_a_while_is_not_ended(server: Server) -> None:
    """The database was away: by its clock the lease is over, and the host renews it a moment later."""
    server.open("alpha")
    server.sql("UPDATE lives SET until = clock_timestamp() - interval '1 min'")
    second = _later(partial(begin_elsewhere, server))

    def is_refused() -> bool:
        server.sql("UPDATE lives SET renewed_at = clock_timestamp()")
        return second.done()

    until(is_refused)
    with pytest.raises(JournalUnfit, match="another host with the name alpha"):
        second.result()
    assert server.sql("SELECT gone FROM lives") == [(False,)]


def begin_elsewhere(server: Server) -> None:
    with connect(server.cluster.url(server._schema), "test") as connection:
        host_life.begin(connection, Host("alpha", "elsewhere"))
