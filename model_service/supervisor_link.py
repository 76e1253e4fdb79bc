"""The link to the supervisor: reports the state of this service, sends beats."""

from ipc.codec import encode
from ipc.messages import Beat
from ipc.service_messages import ServiceStart, ServiceState
from ipc.sockets import Wire

# Well under the silence after which the supervisor considers the service dead.
_BEAT_SECONDS = 1.0


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
