"""A journal in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.journal.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = open_in(tmp_path)
    yield opened
    opened.close()


def open_in(folder: Path) -> Journal:
    return Journal.open(folder / "journal.db", folder / "supervisor.lock")
