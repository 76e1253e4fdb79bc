"""Commits of the most frequent kind, driven by the event loop instead of the thread of the journal.

Problem: a person waits for a commit of one statement, and handing it to a thread and back takes as long as
half of that commit.

Method: while the thread has nothing to do, a batch of messages that wait is sent from the loop, by the
connection of the thread. Everything else goes to the thread, and so does a batch from the loop that meets an
error, a warning or a cut: it is in doubt then, and the thread settles it (batch_writer.py). So what an error
means is decided in one place.

Invariants: the connection is used by the loop only while nothing is in the thread, and the other way round.
What is put while a batch is under way waits here, so that the order of `put` is kept.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import psycopg

from supervisor.journal.group_commit import Chore, Commit, GroupCommit
from supervisor.journal.postgres.batch_writer import BATCH_OF_MESSAGES, BatchWriter
from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.dialect import numbered
from supervisor.journal.postgres.loop_connection import LoopConnection, Row

_SQL, _NAMES = numbered(BATCH_OF_MESSAGES)


class LoopCommit(GroupCommit):
    """`put` is called in the thread of the loop; without a loop, while none runs."""

    def __init__(self, writer: BatchWriter) -> None:
        super().__init__(writer)
        self._batch_writer = writer
        self._line: LoopConnection | None = None
        self._line_of: tuple[Connection, asyncio.AbstractEventLoop] | None = None
        self._under_way: Commit | None = None
        self._waiting: deque[Commit | Chore] = deque()
        # Given to the thread, and not answered yet.
        self._in_thread = 0

    def put(self, work: Commit | Chore) -> None:
        if self._under_way is not None and work.loop is not self._under_way.loop:
            self._give_up()  # that loop has ended
        if self._under_way is not None:
            self._waiting.append(work)
        elif self._in_thread or not isinstance(work, Commit) or not self._is_sent(work):
            self._to_thread(work)

    def stop(self) -> None:
        self._give_up()
        super().stop()

    def _is_sent(self, commit: Commit) -> bool:
        if self._ended is not None or commit.loop is None:
            return False
        begun = self._batch_writer.begin(commit.records)
        if begun is None:
            return False
        connection, values = begun
        # The statement stays prepared as long as the connection lasts.
        if self._line is None or self._line_of != (connection, commit.loop):
            self._line = LoopConnection(connection, rested=lambda: None, heard=None, cut=self._failed)
            self._line_of = (connection, commit.loop)
        self._under_way = commit
        self._line.run(_SQL, [values[name] for name in _NAMES], self._sent, self._failed)
        return True

    def _sent(self, rows: list[Row]) -> None:
        commit = self._under_way
        assert commit is not None
        if not self._batch_writer.taken():
            self._to_thread_all()
            return
        self._under_way = None
        commit.deliver(None)
        self._go_on()

    def _failed(self, error: psycopg.Error) -> None:
        self._to_thread_all()

    def _give_up(self) -> None:
        """The batch that is under way stays in doubt, with its connection closed."""
        if self._under_way is not None:
            assert self._line is not None
            self._line.close()
            self._to_thread_all()

    def _to_thread_all(self) -> None:
        commit, self._under_way = self._under_way, None
        assert commit is not None
        self._to_thread(commit)
        self._go_on()

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for work in waiting:
            self.put(work)

    def _to_thread(self, work: Commit | Chore) -> None:
        self._in_thread += 1
        work.deliver = self._counted(work.deliver)
        super().put(work)

    def _counted(self, deliver: Callable[[Any], None]) -> Callable[[Any], None]:
        def delivered(outcome: Any) -> None:
            self._in_thread -= 1
            deliver(outcome)

        return delivered
