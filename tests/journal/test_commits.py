"""Commits: grouped when they wait together, each answered for itself, read by others meanwhile."""

import asyncio
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from supervisor.core.policy import Policy
from supervisor.journal.errors import JournalError, JournalFenced, JournalUnwritable
from supervisor.journal.group_commit import CHECKPOINT_PAGES_IDLE, GROUP_COMMITS_MAX, Commit
from supervisor.journal.journal import Journal
from tests.journal.conftest import every_journal
from tests.journal.lives import accepted
from tests.memory_journal import MemoryJournal
from tests.waiting import DEADLINE_SECONDS


async def all_at_once(journal: Journal | MemoryJournal, sessions: int) -> list[BaseException | None]:
    commits = [journal.commit([accepted(1, session=f"s{each}")]) for each in range(sessions)]
    return await asyncio.gather(*commits, return_exceptions=True)


@every_journal
def test_commits_that_wait_together_share_transactions(journal: Journal) -> None:
    assert asyncio.run(all_at_once(journal, 64)) == [None] * 64
    assert journal.transactions < 32
    assert journal.read.counts()["waiting"] == 64


@every_journal
def test_one_bad_commit_in_a_group_is_refused_alone(journal: Journal) -> None:
    async def group() -> list[BaseException | None]:
        good = [journal.commit([accepted(1, session=f"s{each}")]) for each in range(20)]
        bad = journal.commit([accepted(7, session="s1")])
        after = [journal.commit([accepted(2, session=f"s{each}")]) for each in range(20)]
        return await asyncio.gather(*good, bad, *after, return_exceptions=True)

    outcomes = asyncio.run(group())
    assert [type(each) for each in outcomes if each is not None] == [JournalFenced]
    assert isinstance(outcomes[20], JournalFenced)
    assert journal.read.counts()["waiting"] == 40


@every_journal
def test_commits_of_one_session_keep_their_order(journal: Journal) -> None:
    async def many() -> None:
        await asyncio.gather(*(journal.commit([accepted(number)]) for number in range(1, 500)))

    asyncio.run(many())
    woken = journal.wake("s")
    assert woken is not None
    assert [message.id for message in woken.waiting] == [f"m_s_{number}" for number in range(1, 500)]


@every_journal
def test_a_commit_that_has_returned_can_be_read_while_others_are_written(journal: Journal) -> None:
    async def writer(session: str) -> None:
        for number in range(1, 60):
            await journal.commit([accepted(number, session)])
            assert journal.read.session_seq(session) == number
            assert journal.read.events_after(session, number - 1, 10)[0].seq == number

    async def writers() -> None:
        await asyncio.gather(*(writer(f"s{each}") for each in range(8)))

    asyncio.run(writers())


@every_journal
def test_an_answer_nobody_waits_for_any_more_harms_nothing(journal: Journal) -> None:
    async def leave() -> None:
        journal.commit([accepted(1)]).cancel()
        journal.commit([accepted(2)])

    asyncio.run(leave())
    journal.commit_now([accepted(3)])
    assert journal.read.session_seq("s") == 3


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """The kernel refuses to let any file of this process grow beyond `size`, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_without_room_it_refuses_whole_reads_on_and_recovers_by_itself(
    journal: Journal, tmp_path: Path
) -> None:
    journal.commit_now([accepted(1)])
    with no_room_beyond((tmp_path / "journal.db-wal").stat().st_size):
        for _ in range(3):
            with pytest.raises(JournalUnwritable) as refusal:
                journal.commit_now([accepted(2), accepted(3, text="x" * 100_000)])
            assert "journal.db" in refusal.value.fault
            assert refusal.value.hint
        assert journal.read.session_seq("s") == 1
        assert (found := journal.known("m_s_1"))
        assert found.seq == 1
    journal.commit_now([accepted(2), accepted(3, text="x" * 100_000)])
    assert journal.read.session_seq("s") == 3
    assert journal.check() == ()


def test_the_log_is_carried_over_and_does_not_grow_for_ever(journal: Journal, tmp_path: Path) -> None:
    text = "x" * 40_000
    sizes = []
    for number in range(1, 401):
        journal.commit_now([accepted(number, text=text)])
        sizes.append((tmp_path / "journal.db-wal").stat().st_size)
    assert sum(len(text) for _ in sizes) * 2 > 4 * max(sizes)
    assert max(sizes) < 3 * CHECKPOINT_PAGES_IDLE * 4096


def test_the_journal_in_memory_answers_alike() -> None:
    journal = MemoryJournal()
    assert asyncio.run(all_at_once(journal, 10)) == [None] * 10
    refused = asyncio.run(all_at_once(journal, 1))
    assert isinstance(refused[0], JournalError)
    journal.new_life()
    assert journal.epoch == 2
    assert len(journal.load(Policy()).sessions) == 10


async def outcomes_of(journal: Journal, commits: int) -> list[BaseException | None]:
    """Many commits at once, of which the third holds what no encoder foresees; then a chore and a commit."""
    texts = {2: object()}
    put = [
        journal.commit([accepted(1, session=f"s{each}", text=texts.get(each, "x"))])  # type: ignore[arg-type]
        for each in range(commits)
    ]
    chore = asyncio.ensure_future(journal.prune(_Never()))  # type: ignore[arg-type]
    async with asyncio.timeout(20):
        early = await asyncio.gather(*put, chore, return_exceptions=True)
        return [*early, *await asyncio.gather(journal.commit([accepted(1)]), return_exceptions=True)]


class _Never:
    """Pruning of which no slice is run."""

    def slice(self, connection: object) -> bool:
        raise AssertionError("a chore after the end")


@every_journal
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_every_commit_gets_an_outcome_when_the_journals_thread_breaks(journal: Journal) -> None:
    # More than one group takes: most of them are still in the queue then.
    outcomes = asyncio.run(outcomes_of(journal, 3 * GROUP_COMMITS_MAX))
    failed = [each for each in outcomes if each is not None]
    assert len(failed) >= 2 * GROUP_COMMITS_MAX, "a group fails as one, and nothing behind it is written"
    for error in failed:
        assert type(error) is JournalError
        assert "internal error (TypeError)" in error.fault
        assert error.__cause__ is not None
    assert outcomes[-1] in failed, "what is put later, too"
    with pytest.raises(JournalError):
        journal.commit_now([accepted(1)])
    written = [each for each, outcome in enumerate(outcomes[:-2]) if outcome is None]
    assert all(journal.read.session_seq(f"s{each}") == 1 for each in written)
    assert journal.read.counts().get("waiting", 0) == len(written)
    journal.close()


def test_a_stop_behind_commits_that_wait_lets_them_be_written_and_ends(
    journal: Journal, tmp_path: Path
) -> None:
    """The stop sign is gathered together with the commits before it."""
    outcomes: list[JournalError | None] = []
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for number in (1, 2, 3):
            journal._group_commit.put(Commit([accepted(number)], outcomes.append, None))
        journal._group_commit._queue.put(None)
        other.execute("ROLLBACK")
    journal._group_commit._thread.join(DEADLINE_SECONDS)
    assert not journal._group_commit._thread.is_alive()
    assert outcomes == [None, None, None]
