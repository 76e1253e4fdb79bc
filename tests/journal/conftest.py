"""A journal in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.journal.contract import Keeper
from supervisor.journal.journal import Journal
from tests.memory_journal import MemoryJournal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_in(tmp_path)
    yield opened
    opened.close()


class Shelf:
    """Where a journal of one kind is opened, for one life after the other."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._memory: MemoryJournal | None = None
        self.opened: Keeper | None = None

    def open(self) -> Keeper:
        """The next life; the one before is over."""
        self.close()
        if self._kind == "sqlite":
            self.opened = open_in(self._folder)
        elif self._memory is None:
            self.opened = self._memory = MemoryJournal()
        else:
            self._memory.new_life()
            self.opened = self._memory
        return self.opened

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()
            self.opened = None


@pytest.fixture(params=["sqlite", "memory"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """Every kind of journal there is; another one is held to the contract by adding its name."""
    shelf = Shelf(request.param, tmp_path)
    yield shelf
    shelf.close()


def open_in(folder: Path) -> Journal:
    return Journal.open(folder / "journal.db", folder / "supervisor.lock")
