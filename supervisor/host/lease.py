"""The lease of this host, as far as its own processes have to know it: until when workers may run.

A host that shares its journal holds its sessions until a moment of the database's clock (`lives.until`).
Afterwards another host may take them over and run their turns. So no worker of this host may run by then,
whatever has become of the supervisor: it may be stopped, or cut off from the database.

The moment cannot be compared with a clock of this host. What can be is a duration: when a renewal succeeded,
the lease began after that renewal was sent. So workers may run until two thirds of the lease after the moment
*before* it was sent; the last third is for ending them. The clock is CLOCK_BOOTTIME, which goes on while the
machine sleeps.

The deadline lies in memory that the guard above each zygote shares (worker/lease_watch.py), and the guard
ends every cell when it has passed. The supervisor cannot be asked: it may be the one that is stopped.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

from supervisor.clock import boottime

# The part of a lease after which it is given up without a renewal.
_GIVEN_UP = 2 / 3
_BYTES = 8


class Lease:
    """Written by the threads that renew; one aligned number, so that no reader sees half of it."""

    def __init__(self, seconds: float, descriptor: int | None = None) -> None:
        """`descriptor` is the memory of an earlier image of this process."""
        self.seconds = seconds
        if descriptor is None:
            descriptor = os.memfd_create("hermes-lease", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, mmap.PAGESIZE)
        os.set_inheritable(descriptor, False)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _BYTES)
        self._deadline = memoryview(self._memory).cast("Q")

    def renewed(self, sent_at: float) -> None:
        """A renewal that was sent at that moment has succeeded. An earlier one changes nothing."""
        self._deadline[0] = max(self._deadline[0], int((sent_at + self.seconds * _GIVEN_UP) * 1e9))

    def handed(self) -> int:
        """Return the descriptor for the next image of this process, which inherits it."""
        os.set_inheritable(self.descriptor, True)
        return self.descriptor

    @contextmanager
    def to_read(self) -> Iterator[int]:
        """A descriptor by which another process can read the deadline, and cannot change it."""
        descriptor = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def is_given_up(self) -> bool:
        return boottime() * 1e9 >= self._deadline[0]
