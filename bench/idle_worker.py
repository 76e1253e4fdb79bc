"""A real worker that collects its garbage when it is sent SIGUSR1, and then says so in its log.

The zygote forks it by `run`; `python -m bench.idle_worker` is the same worker executed from nothing, with its
Fork on standard input.
"""

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import worker.agents
import worker.warm_up
import worker.worker_main
from ipc.codec import Decoder
from ipc.service_messages import Fork

COLLECTED = "bench.collected"


def stretch() -> None:
    worker.worker_main.stretch()


def run(fork: Fork) -> NoReturn:
    signal.signal(signal.SIGUSR1, _collect)
    worker.worker_main.run(fork)


def _collect(number: int, frame: FrameType | None) -> None:
    gc.collect()
    os.write(2, f"{COLLECTED}\n".encode())


if __name__ == "__main__":
    # A worker that is forked has its kind from the zygote.
    worker.agents.load(worker.agents.BUILTIN)
    run(Decoder[Fork](Fork).decode(sys.stdin.buffer.read()))
