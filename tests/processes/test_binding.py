"""A session's workspace comes into the cell of its worker, and into no other."""

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.processes import procfs
from supervisor.processes.orphans import Record
from supervisor.processes.worker_process import Phase, Worker
from supervisor.processes.workspace_binding import Bindings
from tests.processes.stage import Stage, play, script, until

# Says what it finds in its home once there is something, and adds to it.
_LOOKS = """
while not os.listdir('/workspace'):
    time.sleep(0.005)
os.chdir(os.environ['HOME'])
print('found', sorted(os.listdir('.')), os.statvfs('.').f_flag & os.ST_NOSUID, flush=True)
open('from inside', 'w').write('hello')
"""


async def bound(stage: Stage, incarnation: int, folder: Path) -> str:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    stage.processes.bind(incarnation, folder, told.set_result)
    return await told


def workspace(stage: Stage, name: str) -> Path:
    folder = stage.places.workspaces / name
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    return folder


def test_a_workspace_is_seen_by_its_worker_and_by_no_other(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            folders = [workspace(stage, name) for name in ("one", "two")]
            for seat, folder in enumerate(folders):
                (folder / folder.name).write_text("here before")
                await stage.start(f"import os, time\nprint('up', flush=True)\n{_LOOKS}", seat)
            # The next one is in its cell already when the others get their workspaces.
            await until(lambda: bool(stage.prepared()), "a prepared worker")
            for seat, folder in enumerate(folders):
                assert await bound(stage, seat + 1, folder) == ""
                await until(lambda: (folder / "from inside").exists(), "what it writes")  # noqa: B023
                assert f"found ['{folder.name}'] {os.ST_NOSUID}" in stage.said(seat)
            for seat in (2, 3):
                await stage.start(script("print('found', os.listdir('/workspace'))"), seat)
                assert "found []" in stage.said(seat)

    play(act())


def test_what_is_no_workspace_is_not_bound_and_the_fault_is_told(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            workspace(stage, "real")
            (stage.places.workspaces / "link").symlink_to("/etc")
            (stage.places.workspaces / "file").write_text("no folder")
            started = await stage.start(script())
            place = stage.places.workspaces
            for name, fault in (
                ("missing", "No such file or directory"),
                ("link", "Not a directory"),
                ("file", "Not a directory"),
                ("..", "'..' is no name of a workspace"),
            ):
                assert await bound(stage, started.incarnation, place / name) == fault
            assert await bound(stage, 99, place / "real") == "it has ended"
            assert await bound(stage, started.incarnation, place / "real") == ""
            await stage.kill(started.incarnation)
            assert await bound(stage, started.incarnation, place / "real") == "it has ended"

    play(act())


def test_whoever_waits_is_told_when_the_zygote_ends_before_it_answers(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            folder = workspace(stage, "one")
            started = await stage.start(script())
            worker = procfs.status(started.pid)
            assert worker is not None
            os.kill(worker.parent, signal.SIGSTOP)
            told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            stage.processes.bind(started.incarnation, folder, told.set_result)
            os.kill(worker.parent, signal.SIGKILL)
            assert await told == "it has ended"

    play(act())


def test_the_next_image_knows_a_worker_with_its_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what outlives a later crash the record says whose it is, after a restart in place too."""

    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            started = await stage.start(script())
            assert await bound(stage, started.incarnation, workspace(stage, "one")) == ""
            worker = stage.processes._workers[started.incarnation]
            handed = worker.hand_over()
            assert handed is not None
            assert (handed.pid, handed.workspace) == (started.pid, "one")
            assert Worker.take_over(handed, worker.spawner).hand_over() == handed
            assert worker.held is not None
            record = stage.processes._record
            record.remove(worker.held.keeper)
            by_guard = {worker.spawner.guard: worker.spawner}
            monkeypatch.setattr(stage.processes._runtimes, "take_over", lambda zygotes: by_guard)
            stage.processes._take_over(HandedProcesses(workers=(handed,)))
            assert record._processes[worker.held.keeper] == "one"

    play(act())


def test_a_worker_that_is_being_ended_gets_no_workspace(tmp_path: Path) -> None:
    held = SimpleNamespace(keeper=procfs.NO_PROCESS)
    worker = SimpleNamespace(phase=Phase.ENDING, held=held, workspace="", spawner=None)
    record, told = Record(tmp_path / "processes"), list[str]()
    Bindings({1: cast("Worker", worker)}, record).bind(1, tmp_path / "one", told.append)
    assert (told, worker.workspace) == (["it has ended"], "")
    assert not record.file.exists()


@pytest.mark.parametrize("kind", ["cgroup", "sweep"])
def test_cells_without_a_view_have_nothing_to_wait_for(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script())
            assert await bound(stage, started.incarnation, workspace(stage, "one")) == ""

    play(act())
