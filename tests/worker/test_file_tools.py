"""The tools read, write and edit: what a model gets back, what is on the disk, and what they do not open."""

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worker import file_calls
from worker.tools import Report
from worker.tools.files import Edit, Read, Write

LINES = "".join(f"line {number}\n" for number in range(1, 5001))


def call(tool: Read | Write | Edit, **arguments: Any) -> Report:
    async def scene() -> Report:
        try:
            return await tool.run(arguments, lambda text: None)
        finally:
            tool.close()

    return asyncio.run(scene())


def read(path: Path | str, **arguments: Any) -> Report:
    return call(Read(), path=str(path), **arguments)


def write(path: Path, content: str) -> Report:
    return call(Write(), path=str(path), content=content)


def edit(path: Path, old: str, new: str, **arguments: Any) -> Report:
    return call(Edit(), path=str(path), old=old, new=new, **arguments)


def test_a_file_is_read_whole_or_from_a_line_on(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("één\ntwo\nthree\n")
    assert read(file) == Report("één\ntwo\nthree\n")
    assert read(file, first_line=2, lines=1) == Report("[lines 2 to 2 of 3]\ntwo\n")
    past = read(file, first_line=4)
    assert (past.ok, past.text) == (False, "error: it has 3 lines, so there is no line 4")


def test_a_number_may_be_written_as_a_text(tmp_path: Path) -> None:
    """Models often do."""
    (tmp_path / "long").write_text(LINES)
    assert read(tmp_path / "long", first_line="7", lines="1").text == "[lines 7 to 7 of 5000]\nline 7\n"


def test_a_path_with_half_a_character_is_refused_by_name(tmp_path: Path) -> None:
    path = f"{tmp_path}/\ud800"
    for report in (
        read(path),
        call(Write(), path=path, content=""),
        call(Edit(), path=path, old="a", new="b"),
    ):
        assert not report.ok
        assert report.text == rf"error: '{tmp_path}/\ud800' has one half of a character: give the whole one"


def test_a_text_with_half_a_character_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("kept")
    for report, half in ((write(file, "x\udfffy"), "\\udfff"), (edit(file, "kept", "\ud83d"), "\\ud83d")):
        fault = f"error: the text has '{half}', one half of a character: give the whole one"
        assert (report.ok, report.text) == (False, fault)
    assert file.read_text() == "kept"


def test_of_a_long_file_the_model_gets_a_part_and_how_much_there_is(tmp_path: Path) -> None:
    file = tmp_path / "long"
    file.write_text(LINES)
    assert read(file).text.startswith("[lines 1 to 2000 of 5000]\nline 1\n")
    file.write_text("x" * 100_000 + "\nlast\n")
    assert "[… 98000 characters left out …]\nlast\n" in read(file).text
    file.write_text(f"{'y' * 1_999}\n" * 50)
    assert read(file).text.startswith("[lines 1 to 20 of 50]\n")
    file.write_text(f"{'é' * 999}é\n" * 50)
    assert read(file).text.startswith("[lines 1 to 19 of 50]\n")


def test_what_is_no_text_is_named_and_not_shown(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF\0\0")
    assert "is no text, but 6 bytes" in read(binary).text
    (tmp_path / "empty").touch()
    assert read(tmp_path / "empty").text == "(an empty file)"
    (tmp_path / "folder").mkdir()
    assert read(tmp_path).text == "binary\nempty\nfolder/"
    missing = read(tmp_path / "missing")
    assert (missing.ok, missing.text) == (False, f"error: {tmp_path}/missing: No such file or directory")


def test_names_that_are_no_text_are_shown_all_the_same(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    assert read(tmp_path) == Report("caf?")


def test_a_pipe_and_a_device_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        assert read(place).text.endswith("is no file")
        assert write(place, "words").text.endswith("is no file")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_process_of_its_own_opens_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's own memory and environment are files under /proc; its key is in both."""
    monkeypatch.setenv("SECRET_KEY", "do-not-tell")
    assert f"\nPid:\t{os.getpid()}\n" not in read("/proc/self/status").text
    assert "do-not-tell" not in read("/proc/self/environ").text


def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "new"
    assert write(file, "one\ntwo\n").text == f"made {file}: 2 line ends"
    assert file.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~_umask()
    file.chmod(0o755)
    assert write(file, "three").text.startswith("replaced")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("three", 0o755)
    assert [each.name for each in file.parent.iterdir()] == ["new"]


def test_a_write_that_fails_is_told_and_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(source: str, target: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    file = tmp_path / "file"
    file.write_text("old")
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="Input/output"):
        file_calls.write(str(file), "new")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"file": "old"}


def test_the_unfinished_file_is_beside_the_one_that_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another file system it could not take its place."""
    places: list[str] = []
    monkeypatch.setattr(os, "replace", lambda source, target: places.extend([source, target]))
    file_calls.write(str(tmp_path / "file"), "new")
    unfinished, target = map(Path, places)
    assert (unfinished.parent, unfinished.read_text()) == (tmp_path, "new")
    assert (target, unfinished.name.startswith(".hermes-")) == (tmp_path / "file", True)


def test_a_path_may_begin_with_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file_calls.write("~/notes/a", "one")
    file_calls.edit("~/notes/a", "one", "two")
    assert (file_calls.read("~/notes/a"), (tmp_path / "notes/a").read_text()) == ("two", "two")


def test_files_up_to_16_mebibytes_are_edited(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    os.truncate(file, 16 * 1024 * 1024)
    with pytest.raises(file_calls.CallError, match="does not contain"):
        file_calls.edit(str(file), "0", "1")
    os.truncate(file, 16 * 1024 * 1024 + 1)
    with pytest.raises(file_calls.CallError, match="more than 16777216 bytes"):
        file_calls.edit(str(file), "0", "1")


def test_a_thousand_names_of_a_folder_are_shown(tmp_path: Path) -> None:
    for number in range(1_001):
        (tmp_path / f"{number:04}").touch()
    shown = file_calls.read(str(tmp_path)).splitlines()
    assert (len(shown), shown[999:]) == (1_001, ["0999", "[… 1 more …]"])


def test_a_file_that_is_too_large_to_edit_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("0123456789+")
    monkeypatch.setattr(file_calls, "_EDITED_BYTES_MAX", 10)
    with pytest.raises(file_calls.CallError, match="more than 10 bytes"):
        file_calls.edit(str(file), "0", "1")
    assert file.read_text() == "0123456789+"


def test_of_a_large_folder_the_first_names_are_shown_and_how_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_calls, "_ENTRIES_MAX", 2)
    for name in "ab":
        (tmp_path / name).touch()
    assert file_calls.read(str(tmp_path)) == "a\nb"
    (tmp_path / "c").touch()
    assert file_calls.read(str(tmp_path)) == "a\nb\n[… 1 more …]"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert write(link, "new").ok
    assert edit(link, "new", "newer").ok
    assert (link.is_symlink(), target.read_text()) == (True, "newer")


def test_one_passage_is_replaced_or_all_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "code"
    file.write_text("a = 1\nb = 1\n")
    twice = edit(file, "1", "2")
    assert (twice.ok, "2 times" in twice.text) == (False, True)
    assert file.read_text() == "a = 1\nb = 1\n"
    assert edit(file, "a = 1", "a = 2").text == f"replaced 1 passage in {file}"
    assert edit(file, " = ", "=", every=True).text == f"replaced 2 passages in {file}"
    assert file.read_text() == "a=2\nb=1\n"
    assert "does not contain" in edit(file, "c", "d").text


def test_line_ends_of_windows_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "dos"
    file.write_bytes(b"one\r\ntwo\r\n")
    assert edit(file, "one\ntwo", "one\nand\ntwo").ok
    assert file.read_bytes() == b"one\r\nand\r\ntwo\r\n"
    assert edit(file, "one\r\nand", "1\r\n&").ok
    assert file.read_bytes() == b"1\r\n&\r\ntwo\r\n"


def test_what_cannot_be_edited_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "latin"
    file.write_bytes(b"caf\xe9")
    assert "no text in UTF-8" in edit(file, "caf", "tea").text
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        refused = write(file, "x")
    finally:
        tmp_path.chmod(0o755)
    # Root may write anywhere; everybody else is told why not.
    assert refused.ok == (os.geteuid() == 0), refused.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (Read, {}),
        (Read, {"path": ""}),
        (Read, {"path": "a\0b"}),
        (Read, {"path": "x", "first_line": 0}),
        (Read, {"path": "x", "lines": 0}),
        (Read, {"path": "x", "colour": "red"}),
        (Write, {"path": "x"}),
        (Edit, {"path": "x", "old": "", "new": "y"}),
    ],
)
def test_wrong_arguments_are_named(tool: type[Read | Write | Edit], arguments: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        call(tool(), **arguments)


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found
