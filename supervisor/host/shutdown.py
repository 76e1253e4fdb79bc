"""The end of a life: bounded by an alarm that needs nobody's consent, and it can say what it waits for."""

import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ipc.time_budgets import STOP_SECONDS
from supervisor.telemetry.systemd_notify import Notifier


class Ending:
    """From the first request to stop. `workers` and `services` are those that still live."""

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
        """Whoever asks first counts: a second request does not wind the alarm up again."""
        if self._has_begun:
            return
        self._has_begun = True
        self.wind()
        self._notifier.stopping()

    def wind(self) -> None:
        """From here on the kernel ends the process in time, whatever holds its loop or its interpreter.

        A disk that does not answer is no excuse either. All below the process dies with it.
        """
        signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

    def tell(self) -> None:
        self._notifier.status(f"stopping, {self.waits_for()}")

    def waits_for(self) -> str:
        """What a person who stopped the service is told; empty before that."""
        if not self._has_begun:
            return ""
        workers = len(self._workers())
        left = [f"{workers} worker{'s' if workers > 1 else ''}"] if workers else []
        left += [f"the service {row['service']} (pid {row['pid']})" for row in self._services() if row["pid"]]
        return f"waiting for {' and '.join(left) or 'the last processes'} to end"
