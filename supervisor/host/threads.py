"""Threads of this process block request signals, so that only the main thread receives them."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# Requests to the service; see signals.py.
REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Looks at files and the host at once; each takes milliseconds.
LOOKS_MAX = 4


def start(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread: a disk that never answers must not keep the process from ending."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    # A thread inherits the mask of the thread that starts it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, REQUESTS)
    thread.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread


def executor() -> ThreadPoolExecutor:
    """For `asyncio.to_thread`."""
    return ThreadPoolExecutor(
        LOOKS_MAX,
        thread_name_prefix="look",
        initializer=signal.pthread_sigmask,
        initargs=(signal.SIG_BLOCK, REQUESTS),
    )
