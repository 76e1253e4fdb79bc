"""Workers that have ended leave no descriptor open in their supervisor, however they ended."""

import os
import signal
from pathlib import Path
from typing import cast

import pytest

from supervisor.core.events import WorkerDied
from supervisor.processes.worker_processes import Processes
from tests.processes.stage import KINDS, Stage, play, script, until

# The first ones make what is made once: a thread, the sockets of the next link.
_FIRST, _FURTHER = 2, 6


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _start_and_end(stage: Stage, count: int) -> None:
    """So many workers that are killed by the host, by another process, and before they are made."""
    for number in range(count):
        started = await stage.start(script())
        if number % 2:
            stage.processes.kill(started.incarnation)
        else:
            os.kill(started.pid, signal.SIGKILL)
        await stage.next(WorkerDied)
        stage.scripts[1] = ""
        stage.processes.start(1, 1000 + started.incarnation)
        died = await stage.kill(1000 + started.incarnation)
        assert died.proof.all_dead


@pytest.mark.parametrize("kind", KINDS)
def test_ended_workers_leave_no_descriptor_open(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            await _start_and_end(stage, _FIRST)
            # A thread that reads /proc has a file open for a moment.
            counts = [_open_descriptors() for _ in range(50)]
            before = min(counts)
            await _start_and_end(stage, _FURTHER)
            await until(lambda: _open_descriptors() <= before, f"{before} open descriptors again")
            zygote = stage.processes._spawner.zygote
            assert zygote is not None
            assert set(stage.processes._record._processes) == {zygote.process}

    play(act())


def test_a_closed_host_of_workers_leaves_no_descriptor_open(tmp_path: Path) -> None:
    async def act() -> None:
        before = _open_descriptors()
        async with Stage(tmp_path, "sweep") as stage:
            for seat in range(3):
                await stage.start(script(), seat)
        await until(lambda: _open_descriptors() <= before, f"{before} open descriptors again")

    play(act())


def test_a_frame_about_a_worker_that_has_ended_leaves_no_descriptor_open() -> None:
    before = _open_descriptors()
    Processes._running(cast("Processes", None), None, os.pidfd_open(os.getpid()))
    assert _open_descriptors() == before
