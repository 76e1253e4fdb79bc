"""Threads of this process leave signals to the main thread: one that it blocks then waits in the kernel."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# They ask the service for something; see signals.py.
REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(target: Callable[[], None], name: str) -> threading.Thread:
    """A daemon: a disk that never answers must not keep the process from ending."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    # A thread has the mask of the one that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    thread.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread


def executor() -> ThreadPoolExecutor:
    """For `asyncio.to_thread`."""
    return ThreadPoolExecutor(
        thread_name_prefix="look", initializer=signal.pthread_sigmask, initargs=(signal.SIG_BLOCK, REQUESTS)
    )
