"""The lease of the host, as the guard above the zygote keeps it: every cell ends when the lease is given up.

Where several hosts share a journal, the supervisor may run workers until a moment of CLOCK_BOOTTIME, which it
moves on with each renewal and leaves in memory that the guard has mapped (supervisor/host/lease.py). Only the
guard acts on it: the supervisor may be stopped, by a person, a debugger or its cgroup, and may then neither
renew nor kill. A guard that was stopped too finds the signal of its timer when it goes on, as do its workers;
they run until it has killed them.

The timer fires at the deadline that was there when it was set. If that has been moved since, it is set again:
so the guard wakes once a lease, and the supervisor tells it nothing.
"""

import ctypes
import mmap
import os
import signal
import sys
import time
from typing import Final

from worker import syscalls

# The signal of the timer.
SIGNAL: Final = signal.SIGALRM
_TIMER_ABSTIME: Final = 1
_NANOSECONDS: Final = 1_000_000_000
_BYTES: Final = 8


class _TimerSpec(ctypes.Structure):
    """struct itimerspec: an interval and a moment, each in seconds and nanoseconds."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every", "every_ns", "at", "at_ns"))


class LeaseWatch:
    """Made in the guard itself: a timer is not inherited by a fork."""

    def __init__(self, descriptor: int) -> None:
        """Takes the memory over; it is mapped read-only."""
        self._memory = mmap.mmap(descriptor, _BYTES, prot=mmap.PROT_READ)
        os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})
        self._timer = ctypes.c_void_p()
        syscalls.make_timer(time.CLOCK_BOOTTIME, self._timer)

    def is_over(self) -> bool:
        """Whether the lease is given up. If not, SIGNAL comes when the deadline of now has passed."""
        deadline = int.from_bytes(self._memory[:_BYTES], sys.byteorder)
        if time.clock_gettime_ns(time.CLOCK_BOOTTIME) >= deadline:
            return True
        seconds, nanoseconds = divmod(deadline, _NANOSECONDS)
        syscalls.set_timer(self._timer, _TIMER_ABSTIME, _TimerSpec(0, 0, seconds, nanoseconds))
        return False
