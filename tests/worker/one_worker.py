"""A worker as a process of its own: reads its Fork from standard input and lives."""

import sys

from ipc.codec import Decoder
from ipc.service_messages import Fork
from worker.worker_main import run

if __name__ == "__main__":
    run(Decoder[Fork](Fork).decode(sys.stdin.buffer.read()))
