"""Reads of the server, by a few threads: the event loop never waits for the network.

Each thread has a connection of its own (server_rows.py). What the engine asks before it decides has a thread
for itself, so that no table of a client delays a batch.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from ipc.errors import WireError
from ipc.paging import Placed, taken
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError

_Found = TypeVar("_Found")
# Queries of clients and the pasts of turns; more would only compete for the server.
_THREADS = 4
_DEFECT = "`hermesctl logs` shows where; please report it"


class ReadThreads:
    def __init__(self, threads: int = _THREADS) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="journal-read")

    def ask(self, read: Callable[[], _Found], then: Callable[[_Found], None], failed: Failed) -> None:
        loop = asyncio.get_running_loop()

        def deliver(done: "Future[_Found]") -> None:
            error = done.exception()
            if error is None:
                then(done.result())
            elif isinstance(error, JournalError | WireError):
                failed(error)
            else:
                # A defect: who asked is told, and the loop's handler logs it.
                failed(JournalError(f"the journal could not be read ({type(error).__name__})", _DEFECT))
                raise error

        def answered(done: "Future[_Found]") -> None:
            # Closed before it was read, or the loop is closed: no caller waits.
            if not done.cancelled():
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(deliver, done)

        self._executor.submit(read).add_done_callback(answered)

    def rows(self, found: Iterator[Placed], limit: int) -> Iterable[Placed]:
        """Rows are read here, in the thread, as many as fit a page."""
        return taken(found, limit)

    def close(self) -> None:
        """What is being read is not waited for: its connection ends with the process."""
        self._executor.shutdown(wait=False, cancel_futures=True)
