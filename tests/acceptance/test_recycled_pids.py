"""A pid that is really used again: the process that has it now is never killed in place of the old one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# A pid namespace of its own, where nobody else starts processes, and its /proc; the next pid can be chosen.
_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
_AS_USER = ["--user", "--map-root-user"]


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """The command that runs another one in such a namespace."""
    for command in (_NAMESPACE, [*_NAMESPACE, *_AS_USER]):
        chosen = [*command, "sh", "-c", "echo 1000 > /proc/sys/kernel/ns_last_pid"]
        if subprocess.run(chosen, capture_output=True).returncode == 0:
            return command
    pytest.skip("this host gives no pid namespace in which the next pid can be chosen")


def played(namespace: list[str], play: str, folder: Path) -> dict[str, Any]:
    line = [*namespace, sys.executable, "-m", "tests.acceptance.recycled_pids", play, str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["pidns", "sweep"])
def test_a10_a_kill_never_hits_the_process_that_has_the_pid_now(
    namespace: list[str], tmp_path: Path, kind: str
) -> None:
    """The worker and the command it had started are gone, and both numbers are used again."""
    found = played(namespace, kind, tmp_path)
    assert found["recycled"] == [True, True]
    assert found["killed one by one"] == [False, False]
    assert found["members"] == []
    assert found["alive"] == [True, True]


def test_a10_a_start_never_hits_what_has_the_pids_of_the_last_life(
    namespace: list[str], tmp_path: Path
) -> None:
    """Every pid in the record of a killed supervisor belongs to another process when the next one starts."""
    found = played(namespace, "start", tmp_path)
    assert len(found["recorded"]) >= 3
    assert found["recycled"] == found["recorded"]
    assert found["alive"] == found["recorded"]
    assert found["epoch"] == 2
