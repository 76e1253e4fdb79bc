"""Cells without namespaces: what holds all the same, and what is said when it does not."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from supervisor.core.events import WorkerDied, WorkerStuck
from supervisor.processes import procfs
from tests.processes.stage import Stage, marked, play, script
from worker import syscalls

_WEAKER = ("cgroup", "sweep")
_DAEMON = "subprocess.Popen('sleep 1000 & sleep 1000', shell=True, start_new_session=True)"
# Its own keeper, the zygote and the guard are the three processes above a worker.
_KILLS_ALL_ABOVE = """
import json
above, pid = [], os.getpid()
for _ in range(3):
    pid = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])
    above.append(pid)
answers = []
for pid in above:
    try:
        os.kill(pid, signal.SIGKILL)
        answers.append('killed')
    except PermissionError:
        answers.append('refused')
print(json.dumps(answers))
"""


def above(worker: int) -> list[int]:
    """The keeper of a worker, the zygote and its guard."""
    found = []
    for _ in range(3):
        status = procfs.status(worker)
        assert status is not None
        worker = status.parent
        found.append(worker)
    return found


def kill(*pids: int) -> None:
    """Each of them; one may end with the one before it."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", _WEAKER)
def test_h11_a_worker_cannot_kill_those_that_hold_it(tmp_path: Path, kind: str) -> None:
    if syscalls.landlock_version() < syscalls.LANDLOCK_WITH_SCOPES:
        pytest.skip("this kernel cannot keep a process from signalling others of its user")

    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(_DAEMON, _KILLS_ALL_ABOVE))
            assert '["refused", "refused", "refused"]' in stage.said()
            died = await stage.kill(started.incarnation)
            assert died.proof.all_dead
            assert stage.strangers() == set()

    play(act())


def kill_all_above(worker: int) -> None:
    """As an agent does where the kernel cannot keep it from that: keeper, zygote and guard at one blow."""
    keeper, zygote, guard = above(worker)
    # None of them may see another one end before its own end.
    for pid in (guard, zygote, keeper):
        os.kill(pid, signal.SIGSTOP)
    kill(guard, zygote, keeper)


@pytest.mark.parametrize("kind", _WEAKER)
def test_h11_what_is_left_when_all_that_hold_it_were_killed_is_adopted_and_ended(
    tmp_path: Path, kind: str
) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind, adopts=True) as stage:
            started = await stage.start(script(_DAEMON))
            assert len(stage.strangers()) > 2
            kill_all_above(started.pid)
            died = await stage.next(WorkerDied)
            assert died.proof.all_dead
            assert stage.strangers() == set()

    play(act())


@pytest.mark.timeout(60)
def test_h11_without_the_proof_a_worker_is_stuck_and_not_dead(tmp_path: Path) -> None:
    """A process that adopts no orphans cannot have the proof."""

    async def act() -> None:
        async with Stage(tmp_path, "sweep") as stage:
            started = await stage.start(script(_DAEMON))
            kill_all_above(started.pid)
            stuck = await stage.next(WorkerStuck)
            assert (stuck.processes, stuck.words) == (0, "it is not proved that nothing of it is left")
            assert marked(stage.mark)
            kill(*marked(stage.mark))

    play(act())


@pytest.mark.parametrize("kind", _WEAKER)
@pytest.mark.parametrize("victims", ["keeper", "zygote", "both"])
def test_h11_what_a_killed_keeper_or_zygote_leaves_is_ended_by_the_next_above(
    tmp_path: Path, kind: str, victims: str
) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(_DAEMON))
            keeper, zygote, _ = above(started.pid)
            before = marked(stage.mark)
            kill(*{"keeper": [keeper], "zygote": [zygote], "both": [zygote, keeper]}[victims])
            died = await stage.next(WorkerDied)
            assert died.proof.all_dead
            assert stage.strangers() & before == set()

    play(act())
