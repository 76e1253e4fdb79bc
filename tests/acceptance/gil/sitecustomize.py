"""For a service under test: on SIGUSR1 a process spins in C and never lets the interpreter lock go."""

import itertools
import os
import signal
from pathlib import Path
from types import FrameType


def _spin(number: int, frame: FrameType | None) -> None:
    Path(os.environ["HERMES_TEST_SPINNING"]).touch()
    sum(itertools.repeat(0))


signal.signal(signal.SIGUSR1, _spin)
