"""The worker, which in one seat crashes in native code at its start, after a last line in its log."""

import ctypes
import sys
from typing import NoReturn

from ipc.service_messages import Fork
from worker import worker_main
from worker.worker_main import stretch

__all__ = ["run", "stretch"]

CRASHING_SEAT = 4
LAST_WORDS = "the weather library is about to read address zero"


def run(fork: Fork) -> NoReturn:
    if fork.seat == CRASHING_SEAT:
        print(LAST_WORDS, file=sys.stderr, flush=True)
        ctypes.string_at(0)
    worker_main.run(fork)
