"""A life on a server: its row fences what it writes, and a batch whose answer was lost is written once."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.journal.errors import JournalEnded, JournalError, JournalUnfit, JournalUnreachable
from supervisor.journal.postgres.server_journal import ServerJournal
from tests.cutting_proxy import Cut
from tests.journal.lives import accepted
from tests.journal.server import Server, replica_comes, waiting_for_replica
from tests.waiting import until


def commit_stubbornly(journal: ServerJournal, records: list[Record]) -> int:
    """As the engine does: the same records again until they are written. Returns how often it failed."""
    failed = 0

    def is_written() -> bool:
        nonlocal failed
        try:
            journal.commit_now(records)
        except JournalUnreachable:
            failed += 1
            return False
        return True

    until(is_written, 60)
    return failed


@pytest.mark.parametrize("how", ["before", "halfway", "sent", "answer"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_batch_whose_answer_is_lost_is_written_once(server: Server, how: Cut, size: int) -> None:
    """One message is a statement by itself, two of a session are a pipeline."""
    journal = server.open()
    for number in range(25):
        server.proxy.cut(how)
        batch: list[Record] = [accepted(number * size + each) for each in range(1, size + 1)]
        assert commit_stubbornly(journal, batch) >= 1
    assert server.proxy.cuts == 25
    assert [each.seq for each in journal.read.events_after("s", 0, 100)] == list(range(1, 25 * size + 1))
    assert server.sql("SELECT batch FROM lives") == [(25,)]
    assert journal.transactions == 25


def test_a_hundred_swallowed_answers_cost_nothing(server: Server) -> None:
    journal = server.open()
    for number in range(1, 101):
        server.proxy.cut("answer")
        assert commit_stubbornly(journal, [accepted(number)]) == 1, "it was committed the first time"
    assert journal.read.session_seq("s") == 100
    assert server.sql("SELECT batch FROM lives") == [(100,)]


def test_a_copy_that_arrives_late_changes_nothing(server: Server) -> None:
    """The server carries out the first copy after the second: its number is used up."""
    journal = server.open()
    journal.commit_now([accepted(1)])
    server.proxy.cut("late")
    assert commit_stubbornly(journal, [accepted(2)]) == 1
    before = server.sql("SELECT batch, xmin::text FROM lives")
    server.proxy.deliver()
    assert server.sql("SELECT batch, xmin::text FROM lives") == before
    assert server.sql("SELECT count(*) FROM events") == [(2,)]
    journal.commit_now([accepted(3)])


def test_a_late_copy_is_refused_by_its_number_alone(server: Server) -> None:
    """Also where every fence of its records would let it pass."""
    journal = server.open()
    journal.commit_now([accepted(1)])
    server.proxy.cut("late")
    with pytest.raises(JournalUnreachable):
        journal.commit_now([accepted(2)])
    # What comes first after that is the batch in doubt, whatever the caller writes.
    journal.commit_now([accepted(1, session="other")])
    server.sql("DELETE FROM events WHERE session = 's' AND seq = 2")
    server.sql("DELETE FROM messages WHERE id = 'm_s_2'")
    server.sql("UPDATE sessions SET seq = 1 WHERE name = 's'")
    server.proxy.deliver()
    assert server.sql("SELECT seq FROM sessions WHERE name = 's'") == [(1,)]


def test_what_was_settled_is_acknowledged_and_not_written_again(server: Server) -> None:
    journal = server.open()
    records: list[Record] = [accepted(1)]
    server.proxy.cut("answer")
    with pytest.raises(JournalUnreachable):
        journal.commit_now(records)
    journal.commit_now([accepted(1, session="other")])
    journal.commit_now(records)
    assert server.sql("SELECT batch FROM lives") == [(2,)]
    assert server.sql("SELECT count(*) FROM messages") == [(2,)]


def test_a_batch_in_doubt_that_is_refused_when_sent_again_is_told_so(server: Server) -> None:
    journal = server.open()
    bad: list[Record] = [accepted(2)]
    server.proxy.cut("before")
    with pytest.raises(JournalUnreachable):
        journal.commit_now(bad)
    with pytest.raises(JournalError, match=r"session\.advanced"):
        journal.commit_now(bad)
    journal.commit_now([accepted(1)])


def test_a_life_that_is_gone_writes_nothing(server: Server) -> None:
    journal = server.open()
    journal.commit_now([accepted(1)])
    server.sql("UPDATE lives SET gone = true")
    with pytest.raises(JournalEnded, match="ended by another start"):
        journal.commit_now([accepted(2)])
    assert journal.read.session_seq("s") == 1


def test_a_life_that_is_gone_does_not_settle_its_doubt_either(server: Server) -> None:
    journal = server.open()
    server.proxy.cut("before")
    with pytest.raises(JournalUnreachable):
        journal.commit_now([accepted(1)])
    server.sql("UPDATE lives SET gone = true")
    with pytest.raises(JournalEnded):
        journal.commit_now([accepted(1)])
    assert server.sql("SELECT count(*) FROM events") == [(0,)]


@pytest.mark.parametrize(
    ("set_back", "lost"), [("UPDATE lives SET batch = batch - 2", 2), ("DELETE FROM lives", 3)]
)
def test_a_server_that_lost_acknowledged_batches_ends_the_life_and_names_them(
    server: Server, set_back: str, lost: int
) -> None:
    journal = server.open()
    for number in (1, 2, 3):
        journal.commit_now([accepted(number)])
    server.sql(set_back)
    with pytest.raises(JournalEnded, match=f"lost {lost} batches"):
        journal.commit_now([accepted(4)])


def test_a_life_of_the_same_number_with_another_secret_is_not_this_one(server: Server) -> None:
    journal = server.open()
    journal.commit_now([accepted(1)])
    server.sql("UPDATE lives SET secret = 'of another life'")
    with pytest.raises(JournalEnded):
        journal.commit_now([accepted(2)])


def test_a_start_on_the_same_host_ends_the_former_life_at_once(server: Server) -> None:
    former = server.open()
    former.commit_now([accepted(1)])
    # The process was killed: its lock is free, and its connection is open as if its host had vanished.
    server.sql("UPDATE lives SET host = 'beta'")
    later = server.open("beta")
    assert later.epoch == 2
    with pytest.raises(JournalError):
        former.commit_now([accepted(2)])
    with pytest.raises(JournalEnded):
        former.commit_now([accepted(2)])
    later.commit_now([accepted(2)])
    assert [each.seq for each in later.read.events_after("s", 0, 9)] == [1, 2]


def test_a_half_sent_batch_of_a_former_life_does_not_hold_up_the_next(server: Server) -> None:
    """A host that lost its power: the server waits for the rest of the batch, and holds the row meanwhile."""
    journal = server.open()
    journal.commit_now([accepted(1)])
    journal._writer._connection.execute("BEGIN")
    journal._writer._connection.execute("UPDATE lives SET batch = 2")
    held, journal._lock = journal._lock, -1
    os.close(held)  # as the kernel does for a process that ends
    assert server.open().epoch == 2


def test_several_hosts_have_one_database(server: Server) -> None:
    alpha, beta = server.open("alpha"), server.open("beta")
    alpha.commit_now([accepted(1, session="a")])
    beta.commit_now([accepted(1, session="b")])
    assert server.sql("SELECT name, batch, gone FROM lives ORDER BY epoch") == [
        ("alpha", 1, False),
        ("beta", 1, False),
    ]
    assert list(alpha.load(Policy()).sessions) == ["a", "b"], "sessions without an owner are adopted once"
    assert list(beta.load(Policy()).sessions) == []


def test_a_second_host_of_a_name_is_refused_when_the_first_is_renewed(server: Server) -> None:
    server.open("alpha", lease_seconds=2.0)
    with pytest.raises(JournalUnfit, match="another host with the name alpha"):
        server.open("alpha", place="elsewhere")


def test_a_name_is_free_again_when_the_lease_of_a_dead_host_is_over(server: Server) -> None:
    """A container that was killed comes back under another host name."""
    dead = server.open("alpha", lease_seconds=2.0)
    dead._keeper.close()
    later = server.open("alpha", place="elsewhere")
    assert server.sql("SELECT gone FROM lives ORDER BY epoch") == [(True,), (False,)]
    later.commit_now([accepted(1)])


def test_a_clean_end_leaves_the_database_to_another_host(server: Server) -> None:
    server.open("alpha").close()
    assert server.open("beta").epoch == 2


def test_an_unreachable_server_is_named_and_comes_back(server: Server) -> None:
    journal = server.open()
    journal.commit_now([accepted(1)])
    server.proxy.is_away = True
    server.proxy.cut("before")
    records: list[Record] = [accepted(2)]
    for _ in range(3):
        with pytest.raises(JournalUnreachable, match="does not answer") as refusal:
            journal.commit_now(records)
        assert refusal.value.hint
    server.proxy.is_away = False
    journal.commit_now(records)
    assert journal.read.session_seq("s") == 2


def test_crashes_of_the_server_lose_nothing_that_was_acknowledged(restless_server: Server) -> None:
    server = restless_server
    journal = server.open()
    acknowledged = 0
    stopping = threading.Event()

    def load() -> None:
        nonlocal acknowledged
        while not stopping.is_set():
            commit_stubbornly(journal, [accepted(acknowledged + 1)])
            acknowledged += 1

    sender = threading.Thread(target=load)
    sender.start()
    try:
        for _ in range(5):
            seen = acknowledged
            until(lambda seen=seen: acknowledged > seen + 20)  # type: ignore[misc]
            server.cluster.stop("immediate")
            server.cluster.start()
    finally:
        stopping.set()
        sender.join(60)
    assert not sender.is_alive()
    assert server.sql("SELECT count(*), max(seq) FROM events") == [(acknowledged, acknowledged)]
    assert server.sql("SELECT batch FROM lives") == [(acknowledged,)]
    assert len(journal.load(Policy()).sessions["s"].waiting) == acknowledged


def _later(work: Callable[[], object]) -> "Future[object]":
    done: Future[object] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except JournalError as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


@pytest.mark.parametrize("by", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_commit_that_gave_up_waiting_for_its_replica_is_not_acknowledged(
    absent_replica: Server, by: str
) -> None:
    """The primary has the batch and shows it: only another durable commit proves that the replica has it."""
    server = absent_replica
    journal = server.open()
    server.sql("SELECT pg_reload_conf()")
    until(lambda: server.sql("SHOW synchronous_standby_names") == [("absent",)])
    written = _later(lambda: commit_stubbornly(journal, [accepted(1)]))
    (first,) = until(lambda: waiting_for_replica(server))
    server.sql(f"SELECT {by}({first})")
    until(lambda: server.sql("SELECT batch FROM lives") == [(1,)])
    # It is visible, and waited for once more.
    until(lambda: waiting_for_replica(server))
    assert not written.done()
    replica_comes(server)
    written.result(60)
    assert server.sql("SELECT batch FROM lives") == [(1,)]
    assert server.sql("SELECT count(*) FROM events") == [(1,)]


def test_a_commit_found_after_a_cut_is_not_acknowledged_before_its_replica_has_it(
    absent_replica: Server,
) -> None:
    """The first copy waits for the replica while the second waits for the first; then the first gives up."""
    server = absent_replica
    journal = server.open()
    server.sql("SELECT pg_reload_conf()")
    until(lambda: server.sql("SHOW synchronous_standby_names") == [("absent",)])
    server.proxy.cut("sent")
    written = _later(lambda: commit_stubbornly(journal, [accepted(1)]))
    (first,) = until(lambda: waiting_for_replica(server))
    until(lambda: server.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
    server.sql(f"SELECT pg_terminate_backend({first})")
    until(lambda: first not in waiting_for_replica(server) and waiting_for_replica(server))
    assert server.sql("SELECT batch FROM lives") == [(1,)]
    assert not written.done()
    replica_comes(server)
    written.result(60)
    assert server.sql("SELECT batch FROM lives") == [(1,)]
