"""Sockets of the links to workers, made ahead.

A worker that is started for a turn is waited for, and making the sockets takes a fifth of that time: two are
bound, connected and unlinked. So those of the next worker are made once the order for this one is sent.
"""

import asyncio
import contextlib
from socket import socket
from typing import NamedTuple

from ipc.channel import connected_pair


class LinkSockets(NamedTuple):
    """Our ends, and those for a worker that is yet to be made."""

    frames: socket
    pulse: socket
    its_frames: socket
    its_pulse: socket

    def close(self) -> None:
        for each in self:
            each.close()


class NextLink:
    """Holds the sockets of one link at most."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._ahead: LinkSockets | None = None
        self._is_closed = False

    def take(self) -> LinkSockets:
        """OSError when there are none ahead and none can be made."""
        taken, self._ahead = self._ahead or self._make(), None
        asyncio.get_running_loop().call_soon(self._make_ahead)
        return taken

    def close(self) -> None:
        self._is_closed = True
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _make_ahead(self) -> None:
        if self._is_closed:
            return
        # The order for the next worker tries again, and fails by name.
        with contextlib.suppress(OSError):
            self._ahead = self._ahead or self._make()

    def _make(self) -> LinkSockets:
        frames, its_frames = connected_pair(self._folder)
        try:
            pulse, its_pulse = connected_pair(self._folder)
        except OSError:
            frames.close()
            its_frames.close()
            raise
        return LinkSockets(frames, pulse, its_frames, its_pulse)
