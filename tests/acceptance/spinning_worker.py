"""The worker, which spins in C with the interpreter lock held on SIGUSR1, and stops its loop on SIGUSR2.

On SIGWINCH it keeps the interpreter lock as well, in a call that takes no processor time and does not return.
A mark tells that it does.
"""

import ctypes
import itertools
import os
import signal
import threading
from pathlib import Path
from types import FrameType

from worker.worker_main import run, stretch

__all__ = ["run", "stretch"]


def _spin(number: int, frame: FrameType | None) -> None:
    _mark()
    sum(itertools.repeat(0))


def _keep_interpreter(number: int, frame: FrameType | None) -> None:
    """A call through PyDLL keeps the lock; signals interrupt a sleep."""
    _mark()
    while True:
        ctypes.PyDLL(None).sleep(600)


def _stand_still(number: int, frame: FrameType | None) -> None:
    """The loop's thread waits; others, such as the one that answers pulses, go on."""
    _mark()
    threading.Event().wait()


def _mark() -> None:
    Path(os.environ["HERMES_TEST_SPINNING"]).touch()


signal.signal(signal.SIGUSR1, _spin)
signal.signal(signal.SIGWINCH, _keep_interpreter)
signal.signal(signal.SIGUSR2, _stand_still)
