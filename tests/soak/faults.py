"""What breaks the service: workers, zygote, stt and supervisor are killed, stopped and let go, at random."""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable

from tests.acceptance.sight import descendants, zygote_of
from tests.service import Service

_PAUSE_SECONDS = (0.1, 1.2)
_STOP_SECONDS = (0.05, 0.8)


class Weather:
    """Blows until told to stop. `life` tells the visitors that the service they knew is gone."""

    def __init__(self, service: Service, chance: random.Random) -> None:
        self._service = service
        self._chance = chance
        self._calm = threading.Event()
        self.life = 1
        self.counts: Counter[str] = Counter()
        self._kinds: dict[str, tuple[float, Callable[[], None]]] = {
            "worker killed": (4, lambda: self._hit(self._worker(), signal.SIGKILL)),
            "worker stopped for a while": (3, lambda: self._hold(self._worker())),
            "zygote killed": (0.7, lambda: self._hit(self._zygote(), signal.SIGKILL)),
            "zygote stopped for a while": (1, lambda: self._hold(self._zygote())),
            "stt killed": (0.5, lambda: self._hit(self._ears(), signal.SIGKILL)),
            "stt stopped for a while": (1, lambda: self._hold(self._ears())),
            "supervisor stopped for a while": (2, lambda: self._hold(self._supervisor())),
            "supervisor killed": (1, self._kill),
            "supervisor restarted": (0.3, self._restart),
        }

    def blow(self, seconds: float) -> None:
        """Everything once, in any order, then whatever comes."""
        first = self._chance.sample(list(self._kinds), len(self._kinds))
        over = threading.Event()
        timer = threading.Timer(seconds, over.set)
        timer.start()
        try:
            while not over.is_set():
                over.wait(self._chance.uniform(*_PAUSE_SECONDS))
                weights = [weight for weight, _ in self._kinds.values()]
                kind = first.pop() if first else self._chance.choices(list(self._kinds), weights)[0]
                self._kinds[kind][1]()
                self.counts[kind] += 1
        finally:
            timer.cancel()

    def _supervisor(self) -> int:
        assert self._service.process is not None
        return self._service.process.pid

    def _worker(self) -> int:
        pids = [row["pid"] for row in self._service.show("workers") if row["pid"]]
        return self._chance.choice(pids) if pids else 0

    def _zygote(self) -> int:
        try:
            return zygote_of(self._service)
        except (AssertionError, OSError, ValueError):
            return 0  # there is none at this moment

    def _ears(self) -> int:
        return sum(row["pid"] or 0 for row in self._service.show("services") if row["service"] == "stt")

    def _hit(self, pid: int, number: signal.Signals) -> None:
        """Through a descriptor, and only what is really ours: the pid may have gone to somebody else."""
        if not pid:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if pid in descendants(self._supervisor()):
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)

    def _hold(self, pid: int) -> None:
        self._hit(pid, signal.SIGSTOP)
        self._calm.wait(self._chance.uniform(*_STOP_SECONDS))
        self._hit(pid, signal.SIGCONT)

    def _kill(self) -> None:
        self._service.kill()
        self.life += 1
        self._service.start()

    def _restart(self) -> None:
        assert self._service.stop() == 0, "it did not end in order"
        self.life += 1
        self._service.start()
