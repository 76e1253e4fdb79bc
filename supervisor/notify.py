"""Tells systemd how the service stands: READY, STATUS, STOPPING; silent where systemd did not start it."""

import os
import socket


class Notifier:
    """Speaks to the socket systemd names in the environment."""

    def __init__(self) -> None:
        # Taken out of the environment so that no child can speak in the supervisor's name.
        self._address = os.environ.pop("NOTIFY_SOCKET", "")

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self, now: float) -> None:
        """`now` is monotonic: systemd tells an older READY from the one that ends this."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(now * 1_000_000)}")

    def status(self, text: str) -> None:
        self._send(f"STATUS={text}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            try:
                link.sendto(state.encode(), address)
            except OSError:
                return  # systemd will judge by the process alone
