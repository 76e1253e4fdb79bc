"""Signals that ask the service for something."""

import asyncio
import signal
import sys
from collections.abc import Callable


def listen(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """SIGINT and SIGTERM stop; SIGHUP too where a terminal was closed, else it reads the settings again."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, lambda: stop() if sys.stderr.isatty() else reload())
