"""The worker, which on SIGUSR1 spins in C with the interpreter lock held; a mark tells that it does."""

import itertools
import os
import signal
from pathlib import Path
from types import FrameType

from worker.worker_main import run, stretch

__all__ = ["run", "stretch"]


def _spin(number: int, frame: FrameType | None) -> None:
    Path(os.environ["HERMES_TEST_SPINNING"]).touch()
    sum(itertools.repeat(0))


signal.signal(signal.SIGUSR1, _spin)
