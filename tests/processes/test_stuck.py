"""When something does not answer: without a proof nothing is over, and what is stuck is replaced."""

import os
import signal
from pathlib import Path

import pytest

from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.processes import procfs
from tests.processes.stage import Stage, play, script

_DAEMON = (
    "if os.fork() == 0:",
    "    os.setsid()",
    "    if os.fork(): os._exit(0)",
    "    signal.pause()",
    "os.wait()",
)


def _zygote(stage: Stage) -> int:
    """The one of the idle processes whose parent is another of them."""
    found = (procfs.status(pid) for pid in stage.idle)
    return next(status.process.pid for status in found if status and status.parent in stage.idle)


def test_a_cell_that_is_not_seen_to_be_empty_in_time_is_not_called_so(tmp_path: Path) -> None:
    """Its keeper is dead and the zygote, who would have to end the orphan, does not move."""

    async def act() -> None:
        async with Stage(tmp_path, "sweep") as stage:
            started = await stage.start(script(*_DAEMON))
            worker = procfs.status(started.pid)
            assert worker is not None
            zygote = _zygote(stage)
            os.kill(zygote, signal.SIGSTOP)
            os.kill(worker.parent, signal.SIGKILL)
            stuck = await stage.next(WorkerStuck)
            assert (stuck.incarnation, stuck.words) == (1, "it is not proved that nothing of it is left")
            assert stage.strangers() != set()
            assert stage.events.empty()
            os.kill(zygote, signal.SIGCONT)
            died = await stage.next(WorkerDied)
            assert died.proof.all_dead
            assert died.proof.ms > 4500
            assert stage.strangers() == set()

    play(act())


@pytest.mark.parametrize("kind", ["pidns", "sweep"])
def test_workers_of_a_zygote_that_hangs_can_be_killed(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(*_DAEMON))
            os.kill(_zygote(stage), signal.SIGSTOP)
            died = await stage.kill(started.incarnation)
            assert died.proof.all_dead
            assert stage.strangers() == set()

    play(act())


@pytest.mark.parametrize("kind", ["pidns", "sweep"])
def test_a_zygote_that_hangs_is_replaced_and_what_it_held_is_ended(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            held = await stage.start(script(*_DAEMON), seat=1)
            zygote = _zygote(stage)
            os.kill(zygote, signal.SIGSTOP)
            stage.scripts[0] = script()
            stage.processes.start(0, 8)
            died = {event.incarnation: event for event in [await stage.next(WorkerDied) for _ in range(2)]}
            assert died.keys() == {held.incarnation, 8}
            assert "zygote" in str(died[8].reason)
            assert all(event.proof.all_dead for event in died.values())
            assert stage.strangers() == set()
            stage.processes.start(0, 9)
            assert (await stage.next(WorkerStarted)).incarnation == 9
            assert procfs.status(zygote) is None

    play(act())


def test_an_order_that_was_lost_with_its_zygote_does_not_end_the_next_zygote(tmp_path: Path) -> None:
    """The timer of an order runs on after the order was reported as failed."""

    async def act() -> None:
        async with Stage(tmp_path, "sweep") as stage:
            zygote = _zygote(stage)
            os.kill(zygote, signal.SIGSTOP)
            stage.scripts[0] = script()
            stage.processes.start(0, 8)
            lost = stage.processes._workers[8]
            os.kill(zygote, signal.SIGKILL)
            assert (await stage.next(WorkerDied)).incarnation == 8
            stage.processes.start(0, 9)
            assert (await stage.next(WorkerStarted)).incarnation == 9
            stage.processes._still_asked(lost)
            # Had the next zygote been ended, it would take this worker along and not answer this order.
            stage.scripts[1] = script()
            stage.processes.start(1, 10)
            assert (await stage.next(WorkerStarted)).incarnation == 10
            assert stage.events.empty()

    play(act())
