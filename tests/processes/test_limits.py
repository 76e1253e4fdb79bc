"""A worker that takes too much is stopped at its own limit, and others feel nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.core.events import WorkerDied
from supervisor.core.reasons import EndReason, Reason
from supervisor.processes.cells import Limits
from tests.other_user import NOBODY, as_user, can_run_this
from tests.processes.asking import asked
from tests.processes.lone_supervisor import UNAVAILABLE
from tests.processes.missing_cells import skip_where_missing
from tests.processes.stage import PATIENCE_SECONDS, Stage, play, script

_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_HOARDS = "hoard = bytearray(b'x') * (200 << 20); import time; time.sleep(1000)"


@pytest.mark.parametrize("kind", ["pidns", "sweep"])
def test_a_tree_over_its_memory_is_killed_and_others_feel_nothing(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind, Limits(memory_bytes_max=150 << 20)) as stage:
            modest = await stage.start(script("subprocess.Popen(['sleep', '1000'])"), seat=1)
            before = stage.strangers()
            # Its child has the memory: the limit is the tree's.
            greedy = await stage.start(script(f"subprocess.Popen([sys.executable, '-c', {_HOARDS!r}])"))
            died = await stage.next(WorkerDied)
            assert died.incarnation == greedy.incarnation
            assert died.reason == Reason(EndReason.MEMORY, "150 MiB")
            assert died.proof.all_dead
            assert died.proof.processes == 2
            assert stage.strangers() == before
            assert (await stage.kill(modest.incarnation)).reason.kind is EndReason.KILLED

    play(act())


# In files that no process has mapped; the second has no name either.
_FILLS = {
    "a file in /tmp": "open('/tmp/file', 'wb').write(bytes(200 << 20))",
    "a file in memory": "os.write(os.memfd_create('file'), bytes(200 << 20))",
}


@pytest.mark.parametrize("fills", _FILLS)
def test_h10_memory_that_no_process_has_mapped_counts_too(tmp_path: Path, fills: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns", Limits(memory_bytes_max=150 << 20)) as stage:
            # A tmpfs is full before that: two of them are not.
            halves = _FILLS[fills].replace("200 << 20", "100 << 20")
            other = halves.replace("/tmp/", "/dev/shm/").replace("100 << 20", "70 << 20")
            tool = f"import os, time; {halves}; f = {other}; time.sleep(1000)"
            await stage.start(script(f"subprocess.Popen([sys.executable, '-c', {tool!r}])"))
            died = await stage.next(WorkerDied)
            assert died.reason == Reason(EndReason.MEMORY, "150 MiB")

    play(act())


def test_h10_what_lives_without_a_process_is_bounded_and_goes_with_the_cell(tmp_path: Path) -> None:
    async def act() -> None:
        mebi = 1 << 20
        async with Stage(tmp_path, "pidns", Limits(memory_bytes_max=256 * mebi)) as stage:
            fill = "os.posix_fallocate(os.open('{}/x', os.O_CREAT | os.O_WRONLY), 0, {})"
            found = await asked(
                stage,
                segment=f"called('shmget', 0x4831, {128 * mebi}, 0o1600)",
                too_large=f"called('shmget', 0x4832, {192 * mebi}, 0o1600)",
                queues="[libc.msgget(0, 0o1600) for _ in range(1000)].count(-1) >= 900",
                sets="[libc.semget(0, 250, 0o1600) for _ in range(1000)].count(-1) >= 800",
                tmp=fill.format("/tmp", 257 * mebi),
                run=fill.format("/run", 17 * mebi),
                shared=fill.format("/dev/shm", 129 * mebi),
                score="wrote('/proc/self/oom_score_adj')",
                seen="read('/proc/self/oom_score_adj').strip()",
            )
            assert found["segment"] == ["did", None]
            assert found["too_large"] == ["refused", "No space left on device"]
            assert found["queues"] == found["sets"] == ["did", True]
            assert all(
                found[name] == ["refused", "No space left on device"] for name in ("tmp", "run", "shared")
            )
            assert found["score"] == ["refused", "Read-only file system"]
            assert found["seen"] == ["did", "800"]
            again = await asked(stage, segment="called('shmget', 0x4831, 1, 0)")
            assert again["segment"] == ["refused", "No such file or directory"]

    play(act())


def test_h10_one_cell_leaves_inotify_to_the_others_and_to_the_host(tmp_path: Path) -> None:
    """The kernel counts instances by the user outside, that is for the supervisor and all its cells."""

    most = int(_INOTIFY.read_text())

    async def act() -> None:
        async with Stage(tmp_path, "pidns") as stage:
            opened = await asked(stage, count=f"sum(libc.inotify_init() >= 0 for _ in range({most + 1}))")
            assert 0 < opened["count"][1] <= most // 4
            again = await asked(stage, count="sum(libc.inotify_init() >= 0 for _ in range(2))")
            assert again["count"] == ["did", 2]

    play(act())


@pytest.fixture
def home_of_nobody() -> Iterator[Path]:
    """Below the world's temporary folder: the test's own cannot be entered by others."""
    home = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(home, NOBODY.pw_uid, NOBODY.pw_gid)
    yield home
    shutil.rmtree(home)


def test_an_ordinary_users_cells_have_their_number_of_processes_each(home_of_nobody: Path) -> None:
    # The kernel limits everybody but root.
    uid, gid = (NOBODY.pw_uid, NOBODY.pw_gid) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    if not can_run_this(uid, gid):
        pytest.skip("an ordinary user cannot run this interpreter, or not read these files")
    line = as_user(uid, gid)
    done = subprocess.run(
        [*line, sys.executable, "-B", "-m", "tests.processes.crowd", str(home_of_nobody), "24"],
        env={**os.environ, "HOME": str(home_of_nobody)},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_SECONDS,
    )
    if done.stdout.startswith(UNAVAILABLE):
        skip_where_missing("pidns", done.stdout.removeprefix(UNAVAILABLE).strip(), line)
    # The worker itself is the twenty-fourth, in the second cell as in the first.
    assert done.stdout.splitlines() == ["refused after 23", "refused after 23"], done.stderr
