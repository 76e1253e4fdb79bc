"""Processes of the service are tied to their parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

from ipc import interpreter
from ipc.parent_death import die_with
from tests.services.watching import has_ended
from tests.waiting import until

_EXIT_FAILED = 9


def forked(run: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(_EXIT_FAILED)
    return pid


def test_a_child_ends_with_its_parent() -> None:
    reading, writing = os.pipe()

    def parent() -> None:
        me = os.getpid()

        def child() -> None:
            die_with(me)
            os.write(writing, f"{os.getpid()}\n".encode())
            signal.pause()

        forked(child)
        signal.pause()

    pid = forked(parent)
    os.close(writing)
    with open(reading) as told:
        child = int(told.readline())
    assert not has_ended(child)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    until(lambda: has_ended(child))


def test_a_child_whose_parent_has_ended_already_does_not_begin() -> None:
    line = [sys.executable, "-c", "from ipc.parent_death import die_with; die_with(1)"]
    done = subprocess.run(line, cwd=interpreter.PACKAGES, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "the parent ended before this process began\n"
