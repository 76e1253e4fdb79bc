"""Runs tests for the hunt in a copy of the checkout: an order a line on stdin, a finding a line on stdout.

Each run is a fork of this process, which has imported pytest and what others have written, and nothing of
ours. A fault may leave processes behind, also in sessions of their own: this process adopts them (it is a
subreaper), and they are killed before the next run.
"""

import ctypes
import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress

# Imported before the forks, or each would do it again.
import hypothesis.stateful
import msgspec
import psutil
import pytest
import sqlite_utils
import uvloop
import zmq

PRELOADED = (hypothesis, msgspec, sqlite_utils, uvloop, zmq)
# No exit code of pytest's.
COULD_NOT_RUN = 70
_SOME_FAILED = 1
_PR_SET_CHILD_SUBREAPER = 36
# Assertions are not rewritten: nobody reads their messages, and all is compiled already.
_OPTIONS = ("-x", "-q", "--tb=short", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist")


class _Noticed:
    """Notes the first test that failed."""

    test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def main() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(judged(order["tests"], order["seconds"], order["output"])), flush=True)


def judged(tests: list[str], seconds: float, output: str) -> dict[str, object]:
    """The exit code of pytest, None when it took too long, and the test that failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _run(tests, output, writing)
        finally:
            # Here only with an exception.
            traceback.print_exc()
            os._exit(COULD_NOT_RUN)
    os.close(writing)
    watched = os.pidfd_open(child)
    # No further order comes before the finding of this one: stdin is readable when the hunt has been ended.
    ready, _, _ = select.select([watched, sys.stdin], [], [], seconds)
    os.close(watched)
    ended = watched in ready
    if not ended:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _end_all()
    with open(reading) as told:
        return {"code": code if ended else None, "test": told.read()}


def _run(tests: list[str], output: str, writing: int) -> None:
    os.setsid()
    shown = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(shown, 1)
    os.dup2(shown, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    noticed = _Noticed()
    try:
        code = int(pytest.main([*_OPTIONS, *tests], plugins=[noticed]))
    except (pytest.PytestUnraisableExceptionWarning, ExceptionGroup):
        # pytest itself raises when the last test has left a socket or a task behind.
        traceback.print_exc()
        code, noticed.test = _SOME_FAILED, noticed.test or "the end of the run"
    os.write(writing, noticed.test.encode())
    sys.stdout.flush()
    os._exit(code)


def _end_all() -> None:
    """Until none is left: one that is killed may have started another before."""
    while children := psutil.Process().children(recursive=True):
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


if __name__ == "__main__":
    main()
