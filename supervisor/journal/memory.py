"""The journal without a disk, for simulations: the same SQL, the same refusals, one connection."""

import asyncio
from collections.abc import Sequence

from supervisor.core.model import Policy, Session, State
from supervisor.core.records import Record
from supervisor.journal.errors import JournalError
from supervisor.journal.journal import begin_life, connect, epoch_of
from supervisor.journal.load import load, wake
from supervisor.journal.migrate import migrate
from supervisor.journal.read import Reads
from supervisor.journal.rows import Rows
from supervisor.journal.writer import Writer


class MemoryJournal:
    """Survives a pretended crash by `new_life`, not the end of the process."""

    def __init__(self) -> None:
        self._connection = connect(":memory:")
        migrate(self._connection, "memory")
        self._rows = Rows(self._connection, "memory")
        self._writer = Writer(self._connection, "memory")
        self.read = Reads(self._rows)
        self.epoch = 0
        self.new_life()

    def new_life(self) -> None:
        """What a restart does to the file: the epoch is one more, all else is as it was committed."""
        begin_life(self._connection)
        self.epoch = epoch_of(self._connection)

    @property
    def transactions(self) -> int:
        return self._writer.transactions

    def load(self, policy: Policy) -> State:
        return load(self._rows, policy, self.epoch)

    def wake(self, session: str) -> Session | None:
        return wake(self._rows, session)

    def message_seq(self, message: str) -> int | None:
        return self.read.message_seq(message)

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self.commit_now(records)
        except JournalError as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def commit_now(self, records: Sequence[Record]) -> None:
        self._writer.write(records)

    def check(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        self._connection.close()
