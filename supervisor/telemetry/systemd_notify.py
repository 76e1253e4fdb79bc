"""Notifies systemd: READY, STATUS, WATCHDOG, STOPPING; does nothing where systemd did not start the service.

WATCHDOG is sent only after the engine has made a turn: a stuck engine sends none and is restarted.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

from supervisor.event_sink import Progress

_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
# Three notifications per deadline: one lost datagram or one slow commit does not restart the service.
_TURNS_PER_DEADLINE = 3
# Maximum age of the text in `systemctl status` without a watchdog.
_STATUS_SECONDS = 5.0


class Notifier:
    """Sends to the socket that systemd names in the environment."""

    def __init__(self) -> None:
        # Removed from the environment so that no child can notify in the supervisor's name.
        self.environment = {name: os.environ.pop(name) for name in _VARIABLES if name in os.environ}
        self._address = self.environment.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds = _watchdog_seconds(self.environment)

    @property
    def is_heard(self) -> bool:
        return bool(self._address)

    def ready(self) -> None:
        self._send("READY=1", "STATUS=ready")

    def alive(self, text: str) -> None:
        self._send("WATCHDOG=1", f"STATUS={text}")

    def reloading(self, now: float) -> None:
        """`now` is monotonic: by it systemd tells an older READY from the one that ends this reload."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(now * 1_000_000)}")

    def status(self, text: str) -> None:
        self._send(f"STATUS={text}")

    def extend(self, text: str, seconds: float) -> None:
        """Ask for more time than the start has: several times what passes until the next request."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 10_000_000)}", f"STATUS={text}")

    def stopping(self) -> None:
        self._send("STOPPING=1", "STATUS=stopping")

    def _send(self, *states: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            try:
                link.sendto("\n".join(states).encode(), socket.MSG_DONTWAIT, address)
            except OSError:
                return  # systemd then judges by the process alone


def waiting(text: str, seconds: float) -> None:
    """The start waits for something outside: say for what, and that its time limit does not count yet.

    The environment stays as it is for the notifier of the service.
    """
    found = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    notifier = Notifier()
    os.environ.update(found)
    notifier.extend(text, seconds)


class Watch:
    """Asks the engine for a turn, notifies systemd when it has come, and only then asks again."""

    def __init__(self, notifier: Notifier, engine: Progress, sentence: Callable[[], str]) -> None:
        self._notifier = notifier
        self._engine = engine
        self._sentence = sentence
        self._pause_seconds = min(
            _STATUS_SECONDS, (notifier.watchdog_seconds or _STATUS_SECONDS) / _TURNS_PER_DEADLINE
        )
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        if self._notifier.is_heard:
            self._engine.prove(self._moved)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _moved(self) -> None:
        self._notifier.alive(self._sentence())
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._pause_seconds, self._engine.prove, self._moved)


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Return the watchdog interval meant for this process; None when there is none."""
    microseconds = environment.get("WATCHDOG_USEC", "")
    process = environment.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or process not in ("", str(os.getpid())):
        return None
    return int(microseconds) / 1_000_000
