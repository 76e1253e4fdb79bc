"""Ends a process together with its parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent_pid: int) -> None:
    """Lets the kernel kill this process when its parent ends, and exits if the parent has ended already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot be tied to its parent: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the parent ended before this process began")
