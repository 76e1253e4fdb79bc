"""What an earlier life left is ended by exact identity, and nothing else ever is."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.processes import procfs
from supervisor.processes.orphans import Record, _read, sweep_orphans


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A shell with a child, as a keeper with its worker."""
    with subprocess.Popen(
        ["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        os.killpg(process.pid, 9) if process.poll() is None else None


def _process(pid: int) -> procfs.Process:
    found = procfs.status(pid)
    assert found is not None
    return found.process


def _child(sleeper: subprocess.Popen[str]) -> procfs.Process:
    assert sleeper.stdout is not None
    return _process(int(sleeper.stdout.readline()))


def test_a_leftover_is_ended_with_all_below_it(tmp_path: Path, sleeper: subprocess.Popen[str]) -> None:
    child = _child(sleeper)
    Record(tmp_path / "processes").add(_process(sleeper.pid))
    assert sweep_orphans(tmp_path / "processes").killed >= 1
    assert procfs.living(child) is None
    # A shell whose child was killed may end before its own turn comes.
    assert sleeper.wait(10) in (0, -9, 137)


def test_a10_a_recycled_pid_is_never_hit(tmp_path: Path, sleeper: subprocess.Popen[str]) -> None:
    child = _child(sleeper)
    real = _process(sleeper.pid)
    Record(tmp_path / "processes").add(procfs.Process(real.pid, real.started - 1))
    assert sweep_orphans(tmp_path / "processes").killed == 0
    assert not procfs.kill(procfs.Process(real.pid, real.started - 1))
    assert list(procfs.descendants(procfs.Process(real.pid, real.started - 1), 10)) == []
    assert procfs.living(real) is not None
    assert procfs.living(child) is not None


def test_a_record_of_another_boot_means_nothing(tmp_path: Path, sleeper: subprocess.Popen[str]) -> None:
    _child(sleeper)
    file = tmp_path / "processes"
    Record(file).add(_process(sleeper.pid))
    where, line = file.read_text().splitlines()
    file.write_text(f"another {where}\n{line}\n")
    assert sweep_orphans(file).killed == 0
    assert sleeper.poll() is None


@pytest.mark.parametrize("damage", ["", "x", "7", "7 x", "7 8 9", "-1 5", "\0\0"])
def test_a_damaged_record_means_nothing(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "processes"
    Record(file).add(procfs.NO_PROCESS)
    file.write_text(file.read_text().splitlines()[0] + f"\n{damage}")
    assert sweep_orphans(file).killed == 0
    file.write_text(damage)
    assert sweep_orphans(file).killed == 0


def test_a_long_record_is_written_anew_and_keeps_the_living(
    tmp_path: Path, sleeper: subprocess.Popen[str]
) -> None:
    _child(sleeper)
    record = Record(tmp_path / "processes")
    record.add(_process(sleeper.pid))
    for number in range(2000):
        gone = procfs.Process(os.getpid(), number)
        record.add(gone)
        record.remove(gone)
    assert len((tmp_path / "processes").read_text().splitlines()) < 600
    assert sweep_orphans(tmp_path / "processes").killed >= 1
    assert sleeper.wait(10) is not None


def test_the_record_keeps_the_workspace_and_the_last_line_of_a_process_counts(tmp_path: Path) -> None:
    file = tmp_path / "processes"
    record = Record(file)
    one, two = procfs.Process(7, 1), procfs.Process(8, 2)
    record.add(one)
    record.add(two)
    record.add(one, "folder")
    assert _read(file) == {one: "folder", two: ""}
    # Another supervisor takes over what is left, in place of all that was there.
    later = Record(file)
    later.take_over({"folder": [one], "": [two]})
    assert _read(file) == {one: "folder", two: ""}
    later.remove(two)
    later.close()
    assert _read(file) == {one: "folder"}
    later.remove(one)
    later.close()
    assert not file.exists()
    assert _read(file) == {}


def test_a_record_is_appended_to_until_it_is_long(tmp_path: Path) -> None:
    file = tmp_path / "processes"
    record = Record(file)
    record.add(procfs.Process(7, 0))
    first = file.stat().st_ino
    # A line of a dead process stays until then: the file is written anew rarely.
    for number in range(1, 512):
        record.add(procfs.Process(7, number))
        record.remove(procfs.Process(7, number))
        assert file.stat().st_ino == first
    assert len(file.read_text().splitlines()) == 1 + 512
    record.add(procfs.Process(7, 999))
    assert file.stat().st_ino != first
    assert list(_read(file)) == [procfs.Process(7, 0), procfs.Process(7, 999)]
