"""Files of long outputs: whole, bounded in size and number, and never written through a link."""

import os
from pathlib import Path

import pytest

from worker import output_files
from worker.output_files import FILE_BYTES_MAX, OutputFile, store
from worker.tools.excerpt import Excerpt, cut, left_out, shortened


def kept(*contents: bytes) -> str:
    excerpt = Excerpt(40, kept=True)
    for content in contents:
        excerpt.add(content)
    return excerpt.text()


def test_a_short_output_has_no_file(outputs: Path) -> None:
    assert kept(b"x" * 20, b"y" * 20) == "x" * 20 + "y" * 20
    assert not outputs.exists()


def test_a_cut_output_is_whole_in_its_file_byte_by_byte(outputs: Path) -> None:
    parts = [bytes([number % 256]) * 7 for number in range(300)]
    text = kept(*parts)
    assert (outputs / "1.txt").read_bytes() == b"".join(parts)
    assert text.startswith(f"[cut: all of it is in {outputs}/1.txt; read it there]\n")
    assert f"[… {300 * 7 - 40} bytes left out …]" in text
    assert (outputs.stat().st_mode & 0o777, (outputs / "1.txt").stat().st_mode & 0o777) == (0o700, 0o600)


def test_of_an_endless_output_the_file_has_the_beginning(outputs: Path) -> None:
    text = kept(*[b"z" * 1024 * 1024] * 9)
    assert (outputs / "1.txt").stat().st_size == FILE_BYTES_MAX
    assert text.startswith("[cut: the beginning of it is in ")


def test_the_oldest_files_go_when_there_are_too_many(outputs: Path) -> None:
    for number in range(300):
        assert store(f"output {number}") == str(outputs / f"{number + 1}.txt")
    left = sorted(int(each.stem) for each in outputs.iterdir())
    assert left == list(range(45, 301))


def test_the_oldest_files_go_when_they_are_too_large(outputs: Path) -> None:
    for _ in range(10):
        store("z" * FILE_BYTES_MAX)
    assert sorted(int(each.stem) for each in outputs.iterdir()) == list(range(3, 11))


def test_files_that_were_open_at_once_are_not_too_large_together(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them was made while the others were empty."""
    monkeypatch.setattr(output_files, "_BYTES_MAX", 8)
    monkeypatch.setattr(output_files, "FILE_BYTES_MAX", 4)
    several = [OutputFile() for _ in range(3)]
    for each in several:
        each.write(b"zzzz")
    for each in several:
        each.close()
    assert sorted(each.name for each in outputs.iterdir()) == ["2.txt", "3.txt"]


@pytest.mark.parametrize("name", [".hermes-outputs", ".hermes-outputs/1.txt", ".hermes-outputs/7.txt"])
def test_a_planted_link_is_not_followed(tmp_path: Path, outputs: Path, name: str) -> None:
    victim = tmp_path / "victim"
    if name == ".hermes-outputs":
        victim.mkdir()
    else:
        outputs.mkdir()
        victim.write_text("mine")
    (tmp_path / name).symlink_to(victim)
    text = cut("z" * 50_000)
    if victim.is_dir():
        assert text.startswith("[cut: the rest could not be kept: ")
        assert os.listdir(victim) == []
    else:
        assert victim.read_text() == "mine"
        assert len((outputs / ("2.txt" if "1" in name else "8.txt")).read_text()) == 50_000


def test_what_else_is_in_the_folder_stays(outputs: Path) -> None:
    (outputs / "9.txt").mkdir(parents=True)
    (outputs / "notes.md").write_text("mine")
    assert store("new") == str(outputs / "10.txt")
    assert sorted(os.listdir(outputs)) == ["10.txt", "9.txt", "notes.md"]


def test_without_a_workspace_the_cut_text_says_why(tmp_path: Path) -> None:
    output_files.keep_in(str(tmp_path / "absent"))
    assert cut("z" * 50_000).startswith("[cut: the rest could not be kept: No such file or directory]\n")
    assert left_out("z" * 5_000) == "[left out for lack of room: 5000 characters]"


def test_a_result_that_names_its_file_gets_no_second_one(outputs: Path) -> None:
    result = "[exit status 0]\n" + cut("z" * 50_000)
    short = shortened(result, 1_000)
    assert short.startswith(f"[cut: all of it is in {outputs}/1.txt; read it there]\n[exit status 0]\nzzz")
    assert len(short) < 1_200
    assert shortened(short, 2_000) == short
    assert f"all of it is in {outputs}/1.txt" in left_out(short)
    assert "\n" not in left_out(short)
    assert left_out(left_out(short)) == left_out(short)
    assert len(list(outputs.iterdir())) == 1


def test_a_file_that_is_not_closed_by_its_reader_is_closed_with_its_tool(outputs: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    excerpt = Excerpt(40, kept=True)
    excerpt.add(b"z" * 100)
    assert len(os.listdir("/proc/self/fd")) == before + 2
    excerpt.close()
    excerpt.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_leaves_the_beginning() -> None:
    file = OutputFile()
    os.close(file._file)
    file._file = os.open("/dev/full", os.O_WRONLY)
    file.write(b"z")
    file.close()
    assert not file.is_whole


def test_a_file_that_cannot_be_made_leaves_nothing_open(
    outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_files, "_TRIES_MAX", 0)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileExistsError, match="is in use by others"):
        store("z")
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_output_whose_beginning_was_not_kept_has_no_file_later(tmp_path: Path) -> None:
    output_files.keep_in(str(tmp_path / "absent"))
    excerpt = Excerpt(40, kept=True)
    excerpt.add(b"y" * 100)
    (tmp_path / "absent").mkdir()
    excerpt.add(b"z" * 100)
    assert excerpt.text().startswith("[cut: the rest could not be kept: No such file or directory]\n")
    assert not list((tmp_path / "absent").iterdir())
