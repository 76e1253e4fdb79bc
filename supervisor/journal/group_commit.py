"""Group commit: one thread takes whatever commits wait and writes them as one transaction, in their order."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from sqlite3 import Connection

from supervisor.core.records import Record
from supervisor.host import threads
from supervisor.journal.errors import JournalError
from supervisor.journal.writer import Writer

# A hundred rows cost 2.6 times one, so a bigger group gains little and makes its first sender wait longer.
GROUP_COMMITS_MAX = 256
# When there is nothing else to do, the log is carried over as often as SQLite itself would do it.
CHECKPOINT_PAGES_IDLE = 1000
# Under load without a pause the log may grow to this (64 MB) before a commit has to wait for a checkpoint.
CHECKPOINT_PAGES_MAX = 16_000

STOPPED = JournalError("the journal is closed", "start the service again")

Deliver = Callable[[JournalError | None], None]


class Commit:
    """Records on their way to the disk, and where the outcome goes. It is called in the writing thread."""

    __slots__ = ("deliver", "loop", "records")

    def __init__(
        self, records: Sequence[Record], deliver: Deliver, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.records = records
        self.deliver = deliver
        self.loop = loop


class Chore:
    """A little work on the writing connection, between commits. It minds its own transaction."""

    __slots__ = ("deliver", "loop", "run")

    def __init__(
        self,
        run: Callable[[Connection], bool],
        deliver: Callable[[bool | JournalError], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.run = run
        self.deliver = deliver
        self.loop = loop


class Groups:
    """Owns the writing thread. Bounded by its callers: each waits for its commit before it sends the next."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._queue: SimpleQueue[Commit | Chore | None] = SimpleQueue()
        self._thread = threads.start(self._work, "journal")

    def put(self, work: Commit | Chore) -> None:
        if self._thread.is_alive():
            self._queue.put(work)
        else:
            work.deliver(STOPPED)

    def stop(self) -> None:
        """Everything put before is written, then the thread ends."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        stopping = False
        while not stopping:
            first = self._queue.get()
            group = [] if first is None else self._gather(first)
            stopping = first is None or group[-1] is None
            commits = [each for each in group if isinstance(each, Commit)]
            if commits:
                self._serve(commits)
            for each in group:
                if isinstance(each, Chore):
                    self._do(each)

    def _serve(self, commits: list[Commit]) -> None:
        """Whatever happens here, also what nobody foresaw, every sender gets an answer."""
        outcomes: list[JournalError | None] = [STOPPED] * len(commits)
        try:
            outcomes = self._write(commits)
        finally:
            _deliver(commits, outcomes)
        self._checkpoint()

    def _do(self, chore: Chore) -> None:
        outcome: bool | JournalError = STOPPED
        try:
            outcome = self._writer.run(chore.run)
        except JournalError as error:
            outcome = error
        finally:
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                chore.loop.call_soon_threadsafe(chore.deliver, outcome)
        self._checkpoint()

    def _gather(self, first: Commit | Chore) -> list[Commit | Chore | None]:
        """What waits right now; None, the sign to stop, is always last."""
        group: list[Commit | Chore | None] = [first]
        while len(group) < GROUP_COMMITS_MAX and group[-1] is not None:
            try:
                group.append(self._queue.get_nowait())
            except Empty:
                break
        return group

    def _write(self, commits: list[Commit]) -> list[JournalError | None]:
        """One transaction for all. If it fails, each gets its own, so that only the guilty one is refused."""
        error = self._try([record for commit in commits for record in commit.records])
        if error is None or len(commits) == 1:
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


def _deliver(commits: list[Commit], outcomes: list[JournalError | None]) -> None:
    """One call into each loop for the whole group: waking a loop costs more than the answers themselves."""
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
            continue  # the loop was closed: nobody waits any more


def _answer(answers: list[tuple[Deliver, JournalError | None]]) -> None:
    for deliver, outcome in answers:
        deliver(outcome)
