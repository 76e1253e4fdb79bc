"""A worker forked from a rehearsed process, as a zygote does it; says what it inherited."""

import os
import sys

from ipc.codec import Decoder
from ipc.service_messages import Fork
from worker.warm_up import rehearse
from worker.worker_main import run


def main(kind: str = "builtin", entry: str = "") -> None:
    fork = Decoder[Fork](Fork).decode(sys.stdin.buffer.read())
    before = set(os.listdir("/proc/self/fd"))
    rehearse(kind, entry)
    sockets = [
        name
        for name in set(os.listdir("/proc/self/fd")) - before
        if os.path.exists(path := f"/proc/self/fd/{name}") and os.readlink(path).startswith("socket:")
    ]
    inherited = (
        f"threads={len(os.listdir('/proc/self/task'))} sockets={len(sockets)} mcp={'mcp' in sys.modules}"
    )
    print(inherited, file=sys.stderr, flush=True)
    child = os.fork()
    if child == 0:
        run(fork)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
