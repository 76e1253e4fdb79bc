"""Processes that an earlier supervisor left: watched until they are gone, and reported once."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.clock import monotonic
from supervisor.core.events import WorkerDied
from supervisor.core.reasons import EndReason
from supervisor.processes import procfs
from supervisor.processes.orphans import Record
from supervisor.processes.survivors import Survivors
from tests.waiting import soon


@pytest.fixture
def sleepers() -> Iterator[list["subprocess.Popen[bytes]"]]:
    made = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    yield made
    for each in made:
        each.kill()
        each.wait()


def process_of(sleeper: "subprocess.Popen[bytes]") -> procfs.Process:
    found = procfs.status(sleeper.pid)
    assert found is not None
    return found.process


def test_a_survivor_is_reported_when_the_last_of_its_processes_is_gone(
    tmp_path: Path, sleepers: list["subprocess.Popen[bytes]"]
) -> None:
    async def act() -> None:
        before = len(os.listdir("/proc/self/fd"))
        reports: list[WorkerDied] = []
        record = Record(tmp_path / "processes")
        survivors = Survivors(record, reports.append)
        processes = [process_of(each) for each in sleepers]
        for process in processes:
            record.add(process, "one")
        survivor = survivors._survivor(3, "one", processes, monotonic())
        assert (survivor.seat, survivor.incarnation, survivor.workspace) == (3, 4, "one")
        assert survivor.processes == 2
        assert "sleep (pid" in survivor.words
        orphan = survivor.orphan("session")
        assert (orphan.seat, orphan.session) == (3, "session")
        pidfds = set(survivors._pidfds)
        sleepers[0].kill()
        await soon(lambda: len(survivors._pidfds) == 1)
        assert reports == []
        assert list(record._processes) == processes[1:]
        sleepers[1].kill()
        await soon(lambda: reports)
        (died,) = reports
        assert (died.seat, died.incarnation, died.reason.kind) == (3, 4, EndReason.ORPHANED)
        assert died.proof.all_dead
        assert (died.proof.processes, died.proof.how) == (2, "restart")
        assert 0 < died.proof.ms < 60_000
        assert record._processes == {}
        # Their numbers may be those of other files by now.
        assert not any(asyncio.get_running_loop().remove_reader(pidfd) for pidfd in pidfds)
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(act())


def test_processes_that_are_gone_by_then_or_whose_pid_is_anothers_are_reported_too(
    tmp_path: Path, sleepers: list["subprocess.Popen[bytes]"]
) -> None:
    async def act() -> None:
        reports: list[WorkerDied] = []
        survivors = Survivors(Record(tmp_path / "processes"), reports.append)
        gone, real = (process_of(each) for each in sleepers)
        sleepers[0].kill()
        sleepers[0].wait()
        another = procfs.Process(real.pid, real.started - 1)
        survivor = survivors._survivor(0, "", [gone, another], monotonic())
        assert survivor.processes == 0
        assert reports == []
        await soon(lambda: reports)
        assert len(reports) == 1
        assert survivors._pidfds == set()
        assert procfs.living(real) is not None

    asyncio.run(act())


def test_a_closed_watch_tells_nothing_and_holds_nothing(
    tmp_path: Path, sleepers: list["subprocess.Popen[bytes]"]
) -> None:
    async def act() -> None:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
        before = len(os.listdir("/proc/self/fd"))
        reports: list[WorkerDied] = []
        survivors = Survivors(Record(tmp_path / "processes"), reports.append)
        real = process_of(sleepers[0])
        survivors._survivor(0, "", [real, procfs.Process(real.pid, real.started - 1)], monotonic())
        survivors.close()
        assert len(os.listdir("/proc/self/fd")) == before
        os.kill(real.pid, signal.SIGKILL)
        sleepers[0].wait()
        for _ in range(5):
            await asyncio.sleep(0)
        # Nor is a descriptor closed twice: its number may be that of another file.
        assert (reports, errors) == ([], [])

    asyncio.run(act())


def test_a_sweep_that_leaves_nothing_has_no_survivor_and_an_empty_record(
    tmp_path: Path, sleepers: list["subprocess.Popen[bytes]"]
) -> None:
    async def act() -> None:
        earlier = Record(tmp_path / "processes")
        for each in sleepers:
            earlier.add(process_of(each), "one")
        record = Record(tmp_path / "processes")
        assert Survivors(record, lambda died: None).sweep() == ()
        assert [each.wait() for each in sleepers] == [-signal.SIGKILL] * 2
        assert len((tmp_path / "processes").read_text().splitlines()) == 1
        record.close()
        assert not (tmp_path / "processes").exists()

    asyncio.run(act())
