"""A journal that answers when the test says so, as one on a server may."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ipc.paging import Placed
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError

_Found = TypeVar("_Found")


class HeldAsking:
    """Questions are read in their order, and told in their order."""

    def __init__(self) -> None:
        self._asked: deque[tuple[Callable[[], Any], Callable[[Any], None], Failed]] = deque()
        self._read: deque[Callable[[], None]] = deque()

    def ask(self, read: Callable[[], _Found], then: Callable[[_Found], None], failed: Failed) -> None:
        self._asked.append((read, then, failed))

    def rows(self, found: Iterator[Placed], limit: int) -> Iterable[Placed]:
        return list(found)

    @property
    def is_asked(self) -> bool:
        return bool(self._asked)

    def read(self) -> None:
        """The journal reads the answer to its oldest question."""
        read, then, _ = self._asked.popleft()
        found = read()
        self._read.append(lambda: then(found))

    def tell(self) -> None:
        """The oldest answer arrives."""
        self._read.popleft()()

    def answer(self) -> None:
        self.read()
        self.tell()

    def held(self) -> Callable[[], None]:
        """Its oldest question is put aside; the call answers it."""
        read, then, _ = self._asked.popleft()
        return lambda: then(read())

    def fail(self, error: JournalError) -> None:
        """Its oldest question is not answered."""
        _, _, failed = self._asked.popleft()
        failed(error)
