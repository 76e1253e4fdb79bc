"""The main function of a forked process: it becomes a worker, and exits by status, never by returning."""

import asyncio
import os
import signal
import socket
from typing import NoReturn

from ipc.service_messages import Fork
from ipc.sockets import Wire
from ipc.zmtp import OPENING
from worker import syscalls
from worker.event_loop import new_event_loop
from worker.lifecycle import Lifecycle
from worker.tools import spawn


def run(fork: Fork) -> NoReturn:
    """Runs one incarnation and exits the process with its status."""
    # Ctrl-C in a terminal reaches every process of it; a worker then simply ends, as if killed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # It holds the model's key and its own identity; its commands run as the same user.
    syscalls.refuse_inspection()
    if fork.tools_filter:
        spawn.restrict(fork.tools_filter)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_run(fork))
    raise AssertionError("a worker outlived its life")


def stretch() -> None:
    """Runs the first steps of a worker once, so that the memory they write to is its own already.

    Memory shared with the zygote is copied at the first write, page by page: half of the time to Ready.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_connect_to_itself())


async def _connect_to_itself() -> None:
    """No other process can connect: the kernel chooses the name, which is gone at the end."""
    wire = Wire()
    with socket.socket(socket.AF_UNIX) as peer, socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")
        listener.listen(0)
        peer.connect(listener.getsockname())
        peer.send(OPENING)
        wire.line(listener.detach(), lambda parts: None)
    wire.close()


async def _run(fork: Fork) -> NoReturn:
    """Exits from inside the loop: leaving it would wait for the agent's tasks and threads."""
    os._exit(await Lifecycle(fork).run())
