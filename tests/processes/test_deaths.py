"""Whoever dies, nothing is left over: the supervisor, the guard, the zygote, a keeper, or all at once."""

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.places import find_places
from supervisor.core.events import WorkerDied, WorkerStarted
from supervisor.processes import procfs
from tests.processes.lone_supervisor import SCRIPT, UNAVAILABLE
from tests.processes.missing_cells import skip_where_missing
from tests.processes.stage import KINDS, Stage, marked, play, script, until

_SPINS = (
    "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
    "print('up', flush=True)",
    "sum(range(10**15))",
)
_DAEMON = (
    "if os.fork() == 0:",
    "    os.setsid()",
    "    if os.fork(): os._exit(0)",
    "    signal.pause()",
    "os.wait()",
)


@contextlib.contextmanager
def _lone_supervisor(home: Path, kind: str, mark: str, *before: str) -> Iterator[subprocess.Popen[str]]:
    home.mkdir(exist_ok=True)
    (home / SCRIPT).write_text(script(*_DAEMON, *_SPINS))
    with subprocess.Popen(
        [*before, sys.executable, "-m", "tests.processes.lone_supervisor", str(home), kind],
        env={**os.environ, "HERMES_TEST_MARK": mark},
        stdout=subprocess.PIPE,
        text=True,
    ) as supervisor:
        try:
            yield supervisor
        finally:
            supervisor.kill()


def _first_line(process: subprocess.Popen[str], kind: str, start: str) -> str:
    """Skips where the host has no such cell; any other end is a failure."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(UNAVAILABLE):
            skip_where_missing(kind, line.removeprefix(UNAVAILABLE).strip())
        if line.startswith(start):
            return line
    raise AssertionError(f"it ended with status {process.wait()} before its line {start!r}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_supervisor_takes_everything_along(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        mark = secrets.token_hex(8)
        with _lone_supervisor(tmp_path, kind, mark) as supervisor:
            _first_line(supervisor, kind, "serving")
            logs = [find_places(str(tmp_path)).logs / f"worker-{seat}.log" for seat in (0, 1)]
            await until(lambda: all("up\n" in log.read_text() for log in logs), "spinning workers")
            # Supervisor, guard, zygote; of each worker itself, its daemon, its sleeper. Keepers may hide.
            await until(lambda: len(marked(mark)) >= 9, "all of both workers")
            supervisor.kill()
            await until(lambda: not marked(mark), "an empty host", seconds=2.0)

    play(act())


def test_where_namespaces_are_forbidden_no_other_cell_is_taken_and_the_reason_told(tmp_path: Path) -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    if subprocess.run(["unshare", "-Ur", "sh", "-c", "true"], capture_output=True).returncode:
        pytest.skip("no user namespace to forbid namespaces in")

    async def act() -> None:
        mark = secrets.token_hex(8)
        with _lone_supervisor(
            tmp_path, "auto", mark, "unshare", "-Ur", "sh", "-c", forbid, "sh"
        ) as supervisor:
            assert supervisor.stdout is not None
            assert supervisor.stdout.readline().startswith(f"{UNAVAILABLE}unshare: No space left on device")
            supervisor.kill()
            await until(lambda: not marked(mark), "an empty host", seconds=2.0)

    play(act())


def _pid_of(victim: str, stage: Stage) -> int:
    """The guard is a child of this process, and the zygote the guard's only one."""
    own = procfs.status(os.getpid())
    assert own is not None
    below = [found for found in procfs.descendants(own.process, 1000) if found.process.pid in stage.idle]
    guard = next(found.process.pid for found in below if found.parent == os.getpid())
    zygote = next(found.process.pid for found in below if found.parent == guard)
    return {"guard": guard, "zygote": zygote}[victim]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("victim", ["guard", "zygote"])
def test_a_dead_zygote_is_replaced_and_its_workers_are_reported(
    tmp_path: Path, kind: str, victim: str
) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind, adopts=True) as stage:
            for seat in (0, 1):
                await stage.start(script(*_DAEMON), seat=seat)
            os.kill(_pid_of(victim, stage), signal.SIGKILL)
            died = [await stage.next(WorkerDied), await stage.next(WorkerDied)]
            assert {event.incarnation for event in died} == {1, 2}
            assert [event.proof.all_dead for event in died] == [True] * 2
            assert stage.strangers() == set()
            assert "zygote" in stage.processes.state_detail
            stage.processes.start(0, 9)
            assert (await stage.next(WorkerStarted)).incarnation == 9

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_a_keeper_killed_from_outside_leaves_no_orphan(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(*_DAEMON))
            os.kill(stage.keeper(started.pid), signal.SIGKILL)
            died = await stage.next(WorkerDied)
            assert stage.strangers() == set()
            assert died.proof.all_dead
            assert str(died.reason).startswith("ended by SIGKILL")

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_killed_from_outside_is_reported_with_its_signal(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            started = await stage.start(script(*_DAEMON))
            os.kill(started.pid, signal.SIGKILL)
            died = await stage.next(WorkerDied)
            assert stage.strangers() == set()
            assert str(died.reason) == "ended by SIGKILL; last line of its log: up"

    play(act())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fatal", "word"),
    [
        ("__import__('ctypes').string_at(0)", "ended by SIGSEGV"),
        # The first process of a namespace is deaf to its own SIGABRT; the C library then traps.
        ("os.abort()", "ended by SIG"),
        ("os._exit(3)", "exited with status 3"),
    ],
)
def test_a_worker_that_ends_by_itself_is_reported_and_leaves_nothing(
    tmp_path: Path, kind: str, fatal: str, word: str
) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            await stage.start(script(*_DAEMON) + f"\n{fatal}")
            died = await stage.next(WorkerDied)
            assert stage.strangers() == set()
            assert died.proof.all_dead
            assert str(died.reason).startswith(word)

    play(act())


@pytest.mark.parametrize("kind", KINDS)
def test_kills_at_any_moment_of_a_start_are_answered_once(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            for incarnation in range(1, 41):
                stage.scripts[incarnation] = script(*_DAEMON)
                stage.processes.start(incarnation, incarnation)
                asyncio.get_running_loop().call_later(incarnation * 0.0005, stage.processes.kill, incarnation)
            died: list[int] = []
            while len(died) < 40:
                event = await stage.events.get()
                if isinstance(event, WorkerDied):
                    assert event.proof.all_dead
                    died.append(event.incarnation)
            assert sorted(died) == list(range(1, 41))
            await until(lambda: stage.strangers() == set(), "no worker left")
            stage.processes.kill(1)
            stage.processes.kill(12345)
            assert stage.events.empty()

    play(act())


def test_readings_tell_what_a_tree_uses(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "sweep") as stage:
            hoard = "x = bytearray(1) * (80 << 20); x[::4096] = x[::4096]; input()"
            started = await stage.start(
                script(f"subprocess.Popen([sys.executable, '-c', {hoard!r}], stdin=subprocess.PIPE)")
            )

            def told() -> bool:
                reading = stage.processes.usages().get(started.incarnation)
                return reading is not None and reading.processes == 2 and reading.memory_bytes > 80 << 20

            await until(told, "a reading of 80 MB")
            assert stage.processes.usages()[started.incarnation].pid == started.pid
            await stage.kill(started.incarnation)
            assert stage.processes.usages() == {}

    play(act())


def test_a_worker_is_known_from_its_order_to_its_death(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "sweep") as stage:
            started = await stage.start(script())
            assert stage.processes.is_known(started.incarnation)
            await stage.kill(started.incarnation)
            assert not stage.processes.is_known(started.incarnation)

    play(act())
