"""The tie to the supervisor: never outlive it, say where this process stands, beat while it serves."""

import ctypes
import os
import signal
import sys

from ipc.codec import encode
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import Wire

_PR_SET_PDEATHSIG = 1
# Well under the silence after which the supervisor takes the service for dead.
_BEAT_SECONDS = 1.0


def die_with(parent_pid: int) -> None:
    """The kernel kills this process when its parent ends; a parent that ended before is noticed here."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot be tied to the supervisor: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the supervisor ended before this service began")


class Line:
    """The service's end of the socket to the supervisor."""

    def __init__(self, start: ServiceStart) -> None:
        self._socket = Wire().blocking(start.endpoint, start.identity)

    def say(self, state: ServiceState) -> None:
        self._socket.send([encode(state)])

    def beat_for_ever(self) -> None:
        """Nothing is ever asked of this service here, so waiting for a frame is the pause between beats."""
        while True:
            self._socket.send([encode(Beat())])
            self._socket.receive(_BEAT_SECONDS)
