"""How the running service asks a journal: a read, and what is done with its result.

A file answers in place: a read takes a fraction of a millisecond, and handing it to a thread would cost more.
A server is asked by threads (postgres/read_threads.py), because the event loop must not wait for a network.
So whatever reads the journal while the loop turns is written as a question with a continuation, and does not
know which of the two it talks to. In place the continuation is called before `ask` returns.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from ipc.errors import WireError
from ipc.paging import Placed
from supervisor.journal.errors import JournalError

_Found = TypeVar("_Found")
Failed = Callable[[JournalError | WireError], None]


class Asking(Protocol):
    def ask(self, read: Callable[[], _Found], then: Callable[[_Found], None], failed: Failed) -> None:
        """Call `then` with what `read` returns, or `failed` with its error."""

    def rows(self, found: Iterator[Placed], limit: int) -> Iterable[Placed]:
        """Return the rows of a page; called within `read`."""


async def asked(asking: Asking, read: Callable[[], _Found]) -> _Found:
    """Return what `read` returns."""
    future: asyncio.Future[_Found] = asyncio.get_running_loop().create_future()
    asking.ask(read, future.set_result, future.set_exception)
    return await future


class InPlace:
    def ask(self, read: Callable[[], _Found], then: Callable[[_Found], None], failed: Failed) -> None:
        try:
            found = read()
        except (JournalError, WireError) as error:
            failed(error)
        else:
            then(found)

    def rows(self, found: Iterator[Placed], limit: int) -> Iterable[Placed]:
        """Rows are read as the page takes them."""
        return found
