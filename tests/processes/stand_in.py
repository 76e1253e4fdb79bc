"""A worker without an agent: it does what comes over its line."""

import os
import signal
import socket
import ssl
import sys
from collections.abc import Sequence

from ipc.service_messages import Fork
from worker.errors import AgentError


def rehearse(kind: str, entry: str, code: Sequence[str]) -> None:
    """Draws a random number, as a real rehearsal does: what is forked from here on must draw others.

    A kind is played by its name.
    """
    ssl.RAND_bytes(1)
    if kind == "refuses":
        raise AgentError(f"the entry {entry} cannot be imported", "install it")
    if kind == "crashes":
        os._exit(3)
    if kind == "hangs":
        signal.pause()


def stretch() -> None:
    """Nothing to get ready."""


def run(fork: Fork) -> None:
    """Runs the script that the test has sent before the worker was there."""
    with socket.socket(fileno=fork.frames) as line, line.accept()[0] as connected:
        script = connected.makefile().read()
    os.close(fork.pulse)
    sys.argv = ["worker", str(fork.incarnation)]
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    signal.pause()


def give(script: str, frames: socket.socket, pulse: socket.socket) -> None:
    """Sends a worker what it is to do, over the supervisor's ends of its lines."""
    with frames, pulse:
        frames.sendall(script.encode())
