"""Following the log of the supervisor when it is rotated or emptied at an unlucky moment."""

import io
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from hermesctl.commands import logs
from hermesctl.commands.logs import _fresh


class Patience:
    """Time that ends."""

    def __init__(self) -> None:
        self.pauses = 0

    def sleep(self, seconds: float) -> None:
        self.pauses += 1
        assert self.pauses < 100, "the line did not come"


class Behind(io.FileIO):
    """A file that has more to read a moment after its end was reached."""

    is_first = True

    def read(self, size: int | None = -1, /) -> bytes:
        if self.is_first:
            self.is_first = False
            return b""
        return super().read(-1) or b""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "time", Patience())


def test_a_log_that_was_emptied_is_followed_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text("the first\n")
    with log.open("rb") as file:
        lines = _fresh(log, file)
        assert next(lines) == "the first"
        log.write_text("second\n")
        assert next(lines) == "second"
        lines.close()


def test_what_was_written_just_before_a_rotation_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text("the last\n")
    file = Behind(log)
    log.rename(tmp_path / "supervisor.log.1")
    log.write_text("the first\n")
    lines = _fresh(log, cast(BinaryIO, file))
    assert [next(lines), next(lines)] == ["the last", "the first"]
    assert file.closed
    lines.close()
