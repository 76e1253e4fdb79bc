"""Group commit: one thread writes all commits that wait as one transaction, in their order.

Problem: a durable commit costs one fsync, and many sessions commit at the same moment. One transaction per
commit would limit the whole supervisor to the fsync rate of the disk.

Method: callers put `Commit`s into a queue; the writing thread takes everything that waits, up to
GROUP_COMMITS_MAX, and writes it in one transaction. A lone commit is written at once: nothing waits for a
group to fill. If the transaction fails, each commit is retried alone, so that only the faulty one is refused.

Invariants: commits are written in the order of `put`. Each commit and each chore gets one outcome. An outcome
without an error is delivered only after COMMIT. Checkpoints and chores run between groups, after the outcomes
are delivered, so that no caller waits for them directly.

An unexpected exception ends the thread: the state that it left the connection in is unknown. Then everything
that waits, and everything that is put later, gets an error that names the exception. It is no
JournalUnwritable, so the engine does not try again, and the supervisor ends (engine.py). `_lock` keeps work
from being put into a queue that is not read any more.

Not chosen: SQLite's own `wal_autocheckpoint`, which would checkpoint inside a commit that a person waits for.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Protocol

from supervisor.core.records import Record
from supervisor.host import threads
from supervisor.journal.errors import JournalError, JournalUnreachable
from supervisor.journal.prune import Store

# 100 rows cost 2.6 times as much as one; a larger group gains little and delays its first commit.
GROUP_COMMITS_MAX = 256
# With an empty queue, checkpoint as often as SQLite would by itself (1000 pages).
CHECKPOINT_PAGES_IDLE = 1000
# Under constant load the log may grow to this (64 MB) before a commit waits for a checkpoint.
CHECKPOINT_PAGES_MAX = 16_000

STOPPED = JournalError("the journal is closed", "start the service again")
_BROKEN_HINT = "`hermesctl logs` shows where; start the service again, and please report it"

Deliver = Callable[[JournalError | None], None]


class Writer(Protocol):
    """Writes one transaction after the other; `pages` have been written since the last checkpoint."""

    @property
    def pages(self) -> int: ...
    def write(self, records: Sequence[Record]) -> None: ...
    def run(self, chore: Callable[[Store], bool]) -> bool: ...
    def checkpoint(self) -> None: ...


class Commit:
    """Records to be written, and the callback for the outcome; without a loop the writing thread calls it."""

    __slots__ = ("deliver", "loop", "records")

    def __init__(
        self, records: Sequence[Record], deliver: Deliver, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.records = records
        self.deliver = deliver
        self.loop = loop


class Chore:
    """A small job by the writing connection, run between commits in a transaction of its own."""

    __slots__ = ("deliver", "loop", "run")

    def __init__(
        self,
        run: Callable[[Store], bool],
        deliver: Callable[[bool | JournalError], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.run = run
        self.deliver = deliver
        self.loop = loop


class GroupCommit:
    """Owns the writing thread. Bounded by its callers: each waits for its commit before it sends the next."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._queue: SimpleQueue[Commit | Chore | None] = SimpleQueue()
        self._lock = Lock()
        # Why nothing is written any more; set when the thread ends.
        self._ended: JournalError | None = None
        # Taken from the queue, and without an outcome so far.
        self._unanswered: deque[Commit | Chore] = deque()
        self._thread = threads.start(self._run, "journal")

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        """Write all records or none. Commits that wait together share one transaction, in their order."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def deliver(error: JournalError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.put(Commit(records, deliver, loop))
        return future

    def commit_now(self, records: Sequence[Record]) -> None:
        """Commit and wait for it in this thread."""
        outcome: Future[JournalError | None] = Future()
        self.put(Commit(records, outcome.set_result, None))
        error = outcome.result()
        if error is not None:
            raise error

    def chore(self, run: Callable[[Store], bool]) -> "asyncio.Future[bool]":
        """Run a chore between commits and return its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()

        def deliver(outcome: bool | JournalError) -> None:
            if future.done():
                return
            if isinstance(outcome, JournalError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.put(Chore(run, deliver, loop))
        return future

    def put(self, work: Commit | Chore) -> None:
        with self._lock:
            ended = self._ended
            if ended is None:
                self._queue.put(work)
        if ended is not None:
            work.deliver(ended)

    def stop(self) -> None:
        """Write everything put before, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._end(_broken(error))
            # Without a trace on standard error, which could quote a person: the supervisor logs where it was.
            raise SystemExit from error
        self._end(STOPPED)

    def _end(self, error: JournalError) -> None:
        """Deliver an outcome to everyone who still waits for one."""
        with self._lock:
            self._ended = error
        with suppress(Empty):
            while True:
                work = self._queue.get_nowait()
                if work is not None:
                    self._unanswered.append(work)
        for work in self._unanswered:
            if isinstance(work, Commit):
                _deliver([work], [error])
            else:
                _tell(work, error)

    def _work(self) -> None:
        stopping = False
        while not stopping:
            first = self._queue.get()
            group = [] if first is None else self._gather(first)
            stopping = first is None or group[-1] is None
            commits = [each for each in group if isinstance(each, Commit)]
            chores = [each for each in group if isinstance(each, Chore)]
            self._unanswered.extend((*commits, *chores))
            if commits:
                self._serve(commits)
            for chore in chores:
                self._do(chore)

    def _serve(self, commits: list[Commit]) -> None:
        outcomes = self._write(commits)
        for _ in commits:
            self._unanswered.popleft()
        _deliver(commits, outcomes)
        self._checkpoint()

    def _do(self, chore: Chore) -> None:
        outcome: bool | JournalError
        try:
            outcome = self._writer.run(chore.run)
        except JournalError as error:
            outcome = error
        self._unanswered.popleft()
        _tell(chore, outcome)
        self._checkpoint()

    def _gather(self, first: Commit | Chore) -> list[Commit | Chore | None]:
        """Take what waits now; None, the stop sign, is always last."""
        group: list[Commit | Chore | None] = [first]
        while len(group) < GROUP_COMMITS_MAX and group[-1] is not None:
            try:
                group.append(self._queue.get_nowait())
            except Empty:
                break
        return group

    def _write(self, commits: list[Commit]) -> list[JournalError | None]:
        """Write one transaction for all. If it fails, retry each commit alone; only a faulty one fails.

        A server that does not answer would not answer each of them either.
        """
        error = self._try([record for commit in commits for record in commit.records])
        if error is None or len(commits) == 1 or isinstance(error, JournalUnreachable):
            return [error] * len(commits)
        return [self._try(commit.records) for commit in commits]

    def _try(self, records: Sequence[Record]) -> JournalError | None:
        try:
            self._writer.write(records)
        except JournalError as error:
            return error
        return None

    def _checkpoint(self) -> None:
        limit = CHECKPOINT_PAGES_IDLE if self._queue.empty() else CHECKPOINT_PAGES_MAX
        if self._writer.pages >= limit:
            self._writer.checkpoint()


def _broken(error: BaseException) -> JournalError:
    """Name its kind only: the message of an exception may quote a person."""
    fault = f"the journal's thread ended by an internal error ({type(error).__name__})"
    broken = JournalError(fault, _BROKEN_HINT)
    broken.__cause__ = error
    return broken


def _tell(chore: Chore, outcome: bool | JournalError) -> None:
    with suppress(RuntimeError):  # the loop is closed: no caller waits
        chore.loop.call_soon_threadsafe(chore.deliver, outcome)


def _deliver(commits: list[Commit], outcomes: list[JournalError | None]) -> None:
    """Make one call into each loop for the whole group: waking a loop costs more than the outcomes do."""
    told: dict[asyncio.AbstractEventLoop, list[tuple[Deliver, JournalError | None]]] = {}
    for commit, outcome in zip(commits, outcomes, strict=True):
        if commit.loop is None:
            commit.deliver(outcome)
        else:
            told.setdefault(commit.loop, []).append((commit.deliver, outcome))
    for loop, answers in told.items():
        try:
            loop.call_soon_threadsafe(_answer, answers)
        except RuntimeError:
            continue  # the loop is closed: no caller waits


def _answer(answers: list[tuple[Deliver, JournalError | None]]) -> None:
    for deliver, outcome in answers:
        deliver(outcome)
