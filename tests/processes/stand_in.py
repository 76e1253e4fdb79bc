"""A worker without an agent: it does what the test's file beside its endpoint says."""

import os
import runpy
import signal
import ssl
import sys

from ipc.children import Fork


def rehearse() -> None:
    """Draws a random number, as a real rehearsal does: what is forked from here on must draw others."""
    ssl.RAND_bytes(1)


def stretch() -> None:
    """Nothing to get ready."""


def run(fork: Fork) -> None:
    """Runs the script named by the seat: tests write it before they start the worker."""
    folder = os.path.dirname(fork.endpoint)
    sys.argv = ["worker", str(fork.incarnation)]
    runpy.run_path(os.path.join(folder, f"seat-{fork.seat}.py"), run_name="__main__")
    signal.pause()
