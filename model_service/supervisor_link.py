"""The link to the supervisor: ends with it, reports the state of this service, sends beats."""

import ctypes
import os
import signal
import sys

from ipc.codec import encode
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import Wire

_PR_SET_PDEATHSIG = 1
# Well under the silence after which the supervisor considers the service dead.
_BEAT_SECONDS = 1.0


def die_with(parent_pid: int) -> None:
    """Lets the kernel kill this process when its parent ends, and exits if the parent has ended already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot be tied to the supervisor: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the supervisor ended before this service began")


class SupervisorLink:
    """The service's end of the socket to the supervisor."""

    def __init__(self, start: ServiceStart) -> None:
        self._socket = Wire().blocking(start.endpoint, start.identity)

    def send(self, state: ServiceState) -> None:
        self._socket.send([encode(state)])

    def beat_forever(self) -> None:
        """Sends beats.

        The supervisor sends nothing to this service, so a receive with a timeout is the pause.
        """
        while True:
            self._socket.send([encode(Beat())])
            self._socket.receive(_BEAT_SECONDS)
