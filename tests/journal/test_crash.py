"""SIGKILL in the middle of commits: everything acknowledged is there, nothing is there by half."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from supervisor.core.policy import Policy
from supervisor.journal.errors import JournalLocked
from tests.journal.conftest import open_in

ROOT = Path(__file__).parents[2]


@contextmanager
def committing(folder: Path, senders: int) -> Iterator["subprocess.Popen[str]"]:
    """A child that commits; killed at the end whatever happens."""
    command = [sys.executable, "-m", "tests.journal.committer", str(folder), str(senders)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ) as child:
        try:
            yield child
        finally:
            child.kill()


def told(child: "subprocess.Popen[str]", lines: int) -> dict[str, int]:
    """Kill it after so many acknowledgements; the last one of each session."""
    assert child.stdout is not None
    seen: dict[str, int] = {}
    for count, line in enumerate(child.stdout, start=1):
        if not line.endswith("\n"):
            break  # killed in the middle of a line
        name, number = line.split()
        seen[name] = int(number)
        if count == lines:
            child.kill()  # what it had acknowledged until then is still read to the end
    return seen


@pytest.mark.parametrize("lines", [1, 7, 60, 333])
def test_acknowledged_commits_survive_a_kill_whole(tmp_path: Path, lines: int) -> None:
    with committing(tmp_path, senders=8) as child:
        acknowledged = told(child, lines)
    journal = open_in(tmp_path)
    loaded = journal.load(Policy()).sessions
    assert journal.check() == ()
    assert journal.epoch == 2
    for name, number in acknowledged.items():
        assert loaded[name].seq >= number, f"{name} lost what was acknowledged"
    for name, session in loaded.items():
        assert session.seq % 2 == 0, f"half a commit in {name}"
        assert len(session.waiting) == session.seq
        events = journal.read.events_after(name, 0, 100_000)
        assert [event.seq for event in events] == list(range(1, session.seq + 1))
    journal.close()


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with committing(tmp_path, senders=1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(JournalLocked) as refusal:
            open_in(tmp_path)
        assert refusal.value.pid == child.pid
        assert str(child.pid) in refusal.value.fault
    open_in(tmp_path).close()
