"""Signals that ask the service for something."""

import asyncio
import signal
import sys
from collections.abc import Callable

from supervisor.host.threads import REQUESTS


def listen(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """SIGINT and SIGTERM stop; SIGHUP stops too where a terminal was closed, else it reloads the settings."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, lambda: stop() if sys.stderr.isatty() else reload())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, REQUESTS)


async def hold_back() -> None:
    """Block the signals: a request then waits in the kernel, across `execve`, for the image that listens.

    One that came before is delivered when this returns: the loop reads it in one round and calls in the next.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    for _ in range(2):
        await asyncio.sleep(0)
