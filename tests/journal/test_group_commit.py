"""The writing thread beside its writer: groups, their outcomes, and callers that have gone meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import pytest

from supervisor.core.records import Record
from supervisor.journal import group_commit
from supervisor.journal.errors import JournalError, JournalUnreachable, JournalUnwritable
from supervisor.journal.group_commit import CHECKPOINT_PAGES_IDLE, Commit, GroupCommit
from supervisor.journal.journal import Journal
from supervisor.journal.prune import Pruning, Store
from tests.journal.lives import accepted
from tests.journal.test_fences import ATTEMPT, OPENED, RUNNING
from tests.waiting import DEADLINE_SECONDS, soon, until

Outcome = JournalError | None


class HeldWriter:
    """A writer that waits for `go` before each transaction; `sizes` are those of its transactions."""

    def __init__(self) -> None:
        self.pages = 0
        self.checkpoints = 0
        self.sizes: list[int] = []
        self.error: JournalError | None = None
        self.begun, self.go = threading.Event(), threading.Event()

    def write(self, records: Sequence[Record]) -> None:
        self.sizes.append(len(records))
        self._wait()
        if self.error is not None:
            raise self.error

    def run(self, chore: Callable[[Store], bool]) -> bool:
        self._wait()
        return chore(cast("Store", self))

    def checkpoint(self) -> None:
        self.pages = 0
        self.checkpoints += 1

    def _wait(self) -> None:
        self.begun.set()
        assert self.go.wait(DEADLINE_SECONDS)


@pytest.fixture
def writer() -> HeldWriter:
    return HeldWriter()


@pytest.fixture
def group(writer: HeldWriter) -> Iterator[GroupCommit]:
    made = GroupCommit(writer)
    yield made
    writer.go.set()
    made.stop()


def put(group: GroupCommit, writer: HeldWriter, count: int) -> list[Outcome]:
    """The outcomes of a commit that is written by now and of `count` that wait behind it."""
    outcomes: list[Outcome] = []
    group.put(Commit([accepted(1)], outcomes.append, None))
    assert writer.begun.wait(DEADLINE_SECONDS)
    for number in range(count):
        group.put(Commit([accepted(number + 2)], outcomes.append, None))
    return outcomes


def test_a_group_is_as_large_as_it_may_be_and_no_larger(
    group: GroupCommit, writer: HeldWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "GROUP_COMMITS_MAX", 3)
    outcomes = put(group, writer, 7)
    writer.go.set()
    until(lambda: len(outcomes) == 8)
    assert (writer.sizes, outcomes) == ([1, 3, 3, 1], [None] * 8)


def test_commits_of_a_group_are_not_tried_one_by_one_while_the_server_does_not_answer(
    group: GroupCommit, writer: HeldWriter
) -> None:
    outcomes = put(group, writer, 3)
    writer.error = JournalUnreachable("no answer", "wait")
    writer.go.set()
    until(lambda: len(outcomes) == 4)
    assert (writer.sizes, outcomes) == ([1, 3], [writer.error] * 4)


def test_commits_of_a_group_that_is_refused_are_tried_one_by_one(
    group: GroupCommit, writer: HeldWriter
) -> None:
    outcomes = put(group, writer, 2)
    writer.error = JournalUnwritable("full", "free space")
    writer.go.set()
    until(lambda: len(outcomes) == 3)
    assert writer.sizes == [1, 2, 1, 1]


@pytest.mark.parametrize("kind", ["commit", "chore"])
def test_an_outcome_whose_loop_is_closed_does_not_break_the_thread(
    group: GroupCommit, writer: HeldWriter, kind: str
) -> None:
    async def ask() -> None:
        group.chore(lambda store: False) if kind == "chore" else group.commit([accepted(1)])
        assert writer.begun.wait(DEADLINE_SECONDS)

    asyncio.run(ask())
    writer.go.set()
    group.commit_now([accepted(2)])
    assert writer.sizes[-1] == 1


@pytest.mark.parametrize("kind", ["commit", "chore"])
def test_an_outcome_that_nobody_waits_for_any_more_is_no_error_of_the_loop(
    group: GroupCommit, writer: HeldWriter, kind: str
) -> None:
    async def act() -> None:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
        asked: list[asyncio.Future[bool] | asyncio.Future[None]] = []
        asked.append(group.chore(lambda store: True) if kind == "chore" else group.commit([accepted(1)]))
        assert writer.begun.wait(DEADLINE_SECONDS)
        asked[0].cancel()
        later = group.chore(lambda store: False)
        writer.go.set()
        await soon(later.done)
        assert (later.result(), errors) == (False, [])

    asyncio.run(act())


def test_the_log_is_carried_over_after_chores_too(group: GroupCommit, writer: HeldWriter) -> None:
    def chore(store: Store) -> bool:
        writer.pages = CHECKPOINT_PAGES_IDLE
        return False

    async def act() -> None:
        await group.chore(chore)
        await soon(lambda: writer.checkpoints)

    writer.go.set()
    asyncio.run(act())
    assert (writer.checkpoints, writer.pages) == (1, 0)


def test_what_comes_after_the_end_of_the_thread_is_refused_at_once(writer: HeldWriter) -> None:
    group = GroupCommit(writer)
    group.stop()
    outcomes: list[Outcome] = []
    group.put(Commit([accepted(1)], outcomes.append, None))
    assert outcomes == [group_commit.STOPPED]
    assert writer.sizes == []


def test_whatever_is_written_counts_towards_the_next_checkpoint(journal: Journal) -> None:
    writer = journal._writer
    journal.commit_now(RUNNING)
    short = writer.pages
    assert short >= 16
    opened = replace(OPENED, session="t", turn="t/1", messages=("m_t_1",))
    journal.commit_now([accepted(1, "t", "x" * 100_000), opened, replace(ATTEMPT, session="t", turn="t/1")])
    assert writer.pages >= 2 * short + 2 * 100_000 // 4096
    before = writer.pages
    asyncio.run(journal.prune(Pruning(before=0.0)))
    assert writer.pages > before
    writer.checkpoint()
    assert writer.pages == 0
