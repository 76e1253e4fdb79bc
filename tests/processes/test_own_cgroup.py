"""Cells of control groups, on folders that look like those of the kernel: limits, and what is removed."""

import asyncio
import os
from pathlib import Path

import pytest

from ipc.service_messages import Sandbox
from supervisor.processes.cells import CELLS, CellUnavailable, Held, Limits, own_cgroup
from supervisor.processes.cells.cgroup import CgroupCell
from supervisor.processes.cells.sweep import SweepCell
from supervisor.processes.procfs import NO_PROCESS

# Above the highest pid that Linux can give.
_NO_PID = 2**22 + 1


def cell_in(folder: Path, limits: Limits | None = None) -> CgroupCell:
    cell = CgroupCell(limits or Limits())
    cell._folder = folder
    return cell


def made(folder: Path, incarnation: int, *files: str) -> Path:
    """The group of a cell, with these files."""
    group = folder / f"{own_cgroup.prefix()}{incarnation}"
    group.mkdir()
    for name in files:
        (group / name).write_text("max")
    return group


@pytest.mark.parametrize(
    ("events", "was_killed"),
    [
        ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n", False),
        ("low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 0\n", True),
        ("low 0\n", False),
        (None, False),
    ],
)
def test_a_group_was_out_of_memory_when_the_kernel_has_killed_in_it(
    tmp_path: Path, events: str | None, was_killed: bool
) -> None:
    if events is not None:
        (tmp_path / "memory.events").write_text(events)
    assert own_cgroup.was_out_of_memory(str(tmp_path)) is was_killed


def test_groups_of_supervisors_that_are_gone_are_removed_and_no_others(tmp_path: Path) -> None:
    gone, held = tmp_path / f"hermes-worker-{_NO_PID}-1", tmp_path / f"hermes-worker-{_NO_PID}-2"
    own, other = made(tmp_path, 1), tmp_path / "other-1"
    for folder in (gone, held, other):
        folder.mkdir()
    (held / "cgroup.procs").write_text("a process that could not be ended")
    own_cgroup.remove_empty(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted((held, own, other))


def test_only_controllers_that_are_there_are_handed_down(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu pids\n")
    own_cgroup.hand_down(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"
    (tmp_path / "cgroup.subtree_control").unlink()
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    own_cgroup.hand_down(tmp_path)
    assert not (tmp_path / "cgroup.subtree_control").exists()


def test_the_keeper_of_a_cell_counts_for_none_of_its_processes(tmp_path: Path) -> None:
    group = made(tmp_path, 3, "memory.max", "pids.max")
    cell = cell_in(tmp_path, Limits(memory_bytes_max=4096, processes_max=10))
    assert cell.spec(3, Sandbox(), ()).cgroup == str(group)
    assert [(group / name).read_text() for name in ("memory.max", "pids.max")] == ["4096", "11"]


def test_no_limit_is_none_and_one_that_the_kernel_lacks_is_not_written(tmp_path: Path) -> None:
    group = made(tmp_path, 3, "memory.max", "pids.max")
    cell_in(tmp_path).spec(3, Sandbox(), ())
    assert [(group / name).read_text() for name in ("memory.max", "pids.max")] == ["max", "max"]
    without = made(tmp_path, 4)
    cell_in(tmp_path, Limits(4096, 10)).spec(4, Sandbox(), ())
    assert os.listdir(without) == []


def test_a_kernel_that_cannot_kill_a_group_gives_no_cell_and_keeps_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cgroup, "settle", lambda: False)
    with pytest.raises(CellUnavailable, match="has no cgroup"):
        cell_in(tmp_path).set_up()
    assert os.listdir(tmp_path) == []


def test_a_cell_is_empty_when_its_group_is_its_keeper_gone_and_nothing_found_beside_them(
    tmp_path: Path,
) -> None:
    events = made(tmp_path, 5) / "cgroup.events"
    events.write_text("populated 1\nfrozen 0\n")

    async def act() -> None:
        held = Held(5, NO_PROCESS, -1)
        finishing = asyncio.create_task(cell_in(tmp_path).finish(held))
        for then in (
            lambda: events.write_text("populated 0\nfrozen 0\n"),
            held.gone.set,
            held.reaped.set,
        ):
            done, _ = await asyncio.wait([finishing], timeout=0.01)
            assert not done
            then()
        await finishing

    asyncio.run(act())


def test_a_keeper_that_was_killed_proves_nothing_before_its_zygote_has_looked() -> None:
    async def act() -> None:
        held = Held(5, NO_PROCESS, -1)
        held.gone.set()
        finishing = asyncio.create_task(SweepCell(Limits()).finish(held))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not finishing.done()
        held.reaped.set()
        await finishing

    asyncio.run(act())


@pytest.mark.parametrize("kind", CELLS)
def test_every_kind_of_cell_has_the_limits_and_what_it_hides(tmp_path: Path, kind: str) -> None:
    cell = CELLS[kind](Limits(4096, 10, 64))
    if isinstance(cell, CgroupCell):
        cell._folder = tmp_path
    sandbox = Sandbox()
    spec = cell.spec(3, sandbox, ("/keys",))
    assert (spec.kind, spec.sandbox, spec.hide) == (kind, sandbox, ("/keys",))
    assert (spec.memory_bytes_max, spec.files_max) == (4096, 64)
    # Processes that are only found by scans are not counted.
    assert spec.processes_max == (0 if kind == "sweep" else 10)


def test_without_control_groups_there_is_no_cell_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_cgroup, "own_folder", lambda: None)
    with pytest.raises(CellUnavailable, match="no cgroup2 is mounted here"):
        CgroupCell(Limits()).set_up()


def test_a_cell_says_where_the_kernel_does_not_limit_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cgroup, "settle", lambda: False)
    group, cell = made(tmp_path, 0, "cgroup.kill"), cell_in(tmp_path)
    cell.set_up()
    assert cell.description.endswith("the kernel does not limit its memory here")
    (group / "memory.max").write_text("max")
    cell = cell_in(tmp_path)
    cell.set_up()
    assert cell.description.endswith("the supervisor's files too")


def test_a_supervisor_moves_into_its_leaf_only_where_it_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_cgroup, "own_folder", lambda: tmp_path)
    assert not own_cgroup.settle(), "the root of the tree has no type"
    (tmp_path / "cgroup.type").touch()
    procs = tmp_path / "cgroup.procs"
    procs.write_text(f"1\n{os.getpid()}\n")
    assert not own_cgroup.settle()
    assert not (tmp_path / "supervisor").exists()
    procs.write_text(f"{os.getpid()}\n")
    assert own_cgroup.settle()
    assert (tmp_path / "supervisor" / "cgroup.procs").read_text() == str(os.getpid())
