"""Shutdown: bounded by a kernel alarm that works also when the loop is blocked, and reported to people."""

import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ipc.time_budgets import STOP_SECONDS
from supervisor.telemetry.systemd_notify import Notifier


class Shutdown:
    """Runs from the first request to stop. `workers` and `services` are those that are still alive."""

    def __init__(
        self,
        notifier: Notifier,
        workers: Callable[[], Collection[object]],
        services: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._notifier = notifier
        self._workers = workers
        self._services = services
        self._has_begun = False

    def begin(self) -> None:
        """The first request counts: a second one does not restart the alarm."""
        if self._has_begun:
            return
        self._has_begun = True
        self.wind()
        self._notifier.stopping()

    def wind(self) -> None:
        """Set the alarm: the kernel ends the process in time, also when its loop or interpreter is blocked.

        That includes a disk that does not answer. All descendants die with the process.
        """
        signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

    def tell(self) -> None:
        self._notifier.status(f"stopping, {self.waits_for()}")

    def waits_for(self) -> str:
        """Return what a person who stopped the service reads; empty before that."""
        if not self._has_begun:
            return ""
        workers = len(self._workers())
        left = [f"{workers} worker{'s' if workers > 1 else ''}"] if workers else []
        left += [f"the service {row['service']} (pid {row['pid']})" for row in self._services() if row["pid"]]
        return f"waiting for {' and '.join(left) or 'the last processes'} to end"
