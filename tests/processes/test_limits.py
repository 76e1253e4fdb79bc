"""A worker that takes too much is stopped at its own limit, and others feel nothing."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.core.events import WorkerDied
from supervisor.processes.cells import Limits
from tests.processes.lone_supervisor import UNAVAILABLE
from tests.processes.stage import PATIENCE_SECONDS, Stage, play, script

_NOBODY = pwd.getpwnam("nobody")
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
            assert died.words == "it used more than 150 MiB of memory"
            assert died.proof.all_dead
            assert died.proof.processes == 2
            assert stage.strangers() == before
            assert (await stage.kill(modest.incarnation)).words == "killed by the supervisor"

    play(act())


@pytest.fixture
def home_of_nobody() -> Iterator[Path]:
    """Below the world's temporary folder: the test's own cannot be entered by others."""
    home = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(home, _NOBODY.pw_uid, _NOBODY.pw_gid)
    yield home
    shutil.rmtree(home)


def test_an_ordinary_users_cells_have_their_number_of_processes_each(home_of_nobody: Path) -> None:
    as_nobody = ["setpriv", f"--reuid={_NOBODY.pw_uid}", f"--regid={_NOBODY.pw_gid}", "--clear-groups"]
    # The kernel limits everybody but root.
    command = [*(as_nobody if os.geteuid() == 0 else []), sys.executable]
    reads_us = [*command, "-B", "-c", "import tests.processes.crowd"]
    if shutil.which("setpriv") is None or subprocess.run(reads_us, capture_output=True).returncode:
        pytest.skip("an ordinary user cannot run this interpreter, or not read these files")
    done = subprocess.run(
        [*command, "-B", "-m", "tests.processes.crowd", str(home_of_nobody), "24"],
        env={**os.environ, "HOME": str(home_of_nobody)},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_SECONDS,
    )
    if done.stdout.startswith(UNAVAILABLE):
        pytest.skip(done.stdout.removeprefix(UNAVAILABLE).strip())
    # The worker itself is the twenty-fourth, in the second cell as in the first.
    assert done.stdout.splitlines() == ["refused after 23", "refused after 23"], done.stderr
