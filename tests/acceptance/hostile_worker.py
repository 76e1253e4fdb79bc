"""The worker, which on a signal sends messages without end on its own lines, past its own ZeroMQ sockets.

SIGUSR1 sends small parts, SIGUSR2 large ones; the last part of the message never comes.
"""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from types import FrameType

from worker.worker_main import run, stretch

__all__ = ["run", "stretch"]

MEBIBYTE = 1 << 20
_SENT_BYTES_MAX = 512 * MEBIBYTE
# Flags, length and body: MORE, and for the large ones LONG too.
_PARTS = {
    signal.SIGUSR1: b"\x01\x01x" * (MEBIBYTE // 3),
    signal.SIGUSR2: b"\x03" + MEBIBYTE.to_bytes(8) + b"y" * MEBIBYTE,
}


def _connections() -> Iterator[int]:
    """Every connected Unix socket of this process."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            found = socket.socket(fileno=os.dup(descriptor))
            with found:
                found.getpeername()
                if found.family == socket.AF_UNIX and not found.getsockopt(
                    socket.SOL_SOCKET, socket.SO_ACCEPTCONN
                ):
                    yield descriptor


def _attack(number: int, frame: FrameType | None) -> None:
    lines, part, sent = list(_connections()), _PARTS[signal.Signals(number)], 0
    while lines and sent < _SENT_BYTES_MAX:
        _, writable, _ = select.select([], lines, [])
        for descriptor in writable:
            try:
                # A part that is cut in the middle goes on with the next bytes, whatever they are.
                sent += os.write(descriptor, part)
            except BlockingIOError:
                continue
            except OSError:
                lines.remove(descriptor)


for _signal in _PARTS:
    signal.signal(_signal, _attack)
