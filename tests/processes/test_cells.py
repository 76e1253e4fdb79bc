"""The contract of every cell: one act ends all that a worker has started, and the proof is true."""

import os
from pathlib import Path

import pytest

from supervisor.core.events import WorkerDied
from supervisor.core.reasons import EndReason
from supervisor.processes.cells import Limits
from tests.processes.stage import KINDS, Stage, play, script

_DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
os.wait()
"""
_RESIDENT = """
from worker import residents
residents.add(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
"""
_FORKS_FOR_EVER = """
if os.fork() == 0:
    while True:
        if os.fork():
            os._exit(0)
"""
_BROOD = """
def brood(depth):
    for _ in range(3):
        if os.fork() == 0:
            if depth:
                brood(depth - 1)
            signal.pause()
brood(2)
"""
_IGNORES_EVERYTHING = """
if os.fork() == 0:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()
"""
_FIRST_THREAD_ENDS = """
import ctypes, threading
if os.fork() == 0:
    threading.Thread(target=signal.sigwait, args=[{signal.SIGUSR2}]).start()
    ctypes.CDLL(None).pthread_exit(None)
"""
# What a worker does, and how many processes its cell holds then, the worker included.
_VICTIMS = {
    "idle": ("", 1),
    "children": ("for _ in range(3): subprocess.Popen(['sleep', '1000'])", 4),
    "grandchildren": ("subprocess.Popen(['sh', '-c', 'sh -c \"sleep 1000 & wait\" & wait'])", None),
    "setsid": ("subprocess.Popen(['sleep', '1000'], start_new_session=True)", 2),
    "daemon": (_DAEMON, 2),
    "forks for ever": (_FORKS_FOR_EVER, None),
    "brood": (_BROOD, None),
    "ignores every signal": (_IGNORES_EVERYTHING, 2),
    "child is stopped": ("os.kill(subprocess.Popen(['sleep', '1000']).pid, signal.SIGSTOP)", 2),
    "holds the output": ("subprocess.Popen('exec sleep 1000', shell=True, stdout=1, stderr=2)", 2),
    "first thread has ended": (_FIRST_THREAD_ENDS, 2),
    "resident": (_RESIDENT, 2),
    "500 MB": ("hoard = bytearray(b'x') * (500 << 20)", 1),
}
_DEAF = {
    "spins in C": "print('up', flush=True); sum(range(10**15))",
    "is stopped": "print('up', flush=True); os.kill(os.getpid(), signal.SIGSTOP)",
    "waits for a pipe": "print('up', flush=True); subprocess.check_output('sleep 1000 & wait', shell=True)",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("victim", _VICTIMS)
def test_a_kill_leaves_nothing(tmp_path: Path, kind: str, victim: str) -> None:
    async def act() -> None:
        lines, processes = _VICTIMS[victim]
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(lines))
            died = await stage.kill(started.incarnation)
            assert stage.strangers() == set()
            assert died.proof.all_dead
            assert died.proof.how == kind
            assert 0 < died.proof.ms < 5000
            assert died.proof.processes == processes or (processes is None and died.proof.processes >= 1)
            assert died.reason.kind is EndReason.KILLED

    play(act())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("victim", _DEAF)
def test_a_kill_needs_no_consent(tmp_path: Path, kind: str, victim: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(_DEAF[victim]))
            died = await stage.kill(started.incarnation)
            assert stage.strangers() == set()
            assert died.proof.all_dead

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_one_kill_touches_one_cell(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            first = await stage.start(script(_DAEMON), seat=0)
            before = stage.strangers()
            second = await stage.start(script(_DAEMON), seat=1)
            await stage.kill(second.incarnation)
            assert stage.strangers() == before
            await stage.kill(first.incarnation)
            assert stage.strangers() == set()

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_ends_takes_its_daemons_along(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            stage.scripts[0] = script(_DAEMON, "print('I give up', flush=True)", "os._exit(3)")
            stage.processes.start(0, 1)
            event = await stage.events.get()
            died = event if not hasattr(event, "pid") else await stage.events.get()
            assert stage.strangers() == set()
            assert isinstance(died, WorkerDied)
            assert str(died.reason) == "exited with status 3; last line of its log: I give up"
            assert died.proof.all_dead

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_limits_hold_inside(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        limits = Limits(processes_max=64, files_max=123)
        ask = "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE))"
        async with Stage(tmp_path, kind, limits) as stage:
            await stage.start(script(ask))
            assert stage.said().startswith("(123, 123) (0, 0)")

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_has_no_privilege_left(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            await stage.start(script("print(open('/proc/self/status').read())"))
            status = dict(line.split(":\t") for line in stage.said().splitlines() if ":\t" in line)
            held = ("CapPrm", "CapEff", "CapInh", "CapAmb")
            assert {int(status[name], 16) for name in held} == {0}
            # Only who has a capability may give up the right to regain it; for others NoNewPrivs does.
            if os.geteuid() == 0 or kind == "pidns":
                assert int(status["CapBnd"], 16) == 0
            assert status["NoNewPrivs"] == "1"

    play(act())
