"""Waits for a process to end, or ends it, by its pidfd: a recycled pid is never mistaken for it."""

import contextlib
import os
import select
import signal


class Ending:
    """The end of one process, if it is still running."""

    def __init__(self, pid: int) -> None:
        try:
            self._descriptor: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._descriptor = None

    def within(self, seconds: float) -> bool:
        """Returns true when the process is gone, after waiting that long at most."""
        if self._descriptor is None:
            return True
        readable, _, _ = select.select([self._descriptor], [], [], seconds)
        return bool(readable)

    def kill(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
