"""A client of the control socket that writes its frames by hand, valid or not."""

import os
from types import TracebackType

from ipc.codec import Decoder
from ipc.messages import Answer, Refused
from ipc.places import Places
from ipc.sockets import Wire
from ipc.zmtp import frames
from tests.waiting import DEADLINE_SECONDS
from tests.wire_values import Plain, frame


class RawClient:
    """Numbers its requests like any client; what is in them is the test's business."""

    def __init__(self, places: Places, path: str | None = None) -> None:
        """`path` is another socket than the control socket."""
        self._wire = Wire()
        self._socket = self._wire.blocking(path or places.control, f"raw-{os.urandom(8).hex()}")
        self._decoder: Decoder[Answer] = Decoder(Answer)
        self._number = 0

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def post(self, *parts: bytes) -> None:
        self._socket.send(list(parts))

    def receive(self, timeout_seconds: float = DEADLINE_SECONDS) -> tuple[bytes, Answer] | None:
        parts = self._socket.receive(timeout_seconds)
        return None if parts is None else (parts[0], self._decoder.decode(parts[1]))

    def ask(self, message: Plain | bytes) -> Answer:
        """The first answer to a request."""
        self._number += 1
        number = self._number.to_bytes(8)
        self.post(number, message if isinstance(message, bytes) else frame(message))
        while True:
            arrived = self.receive()
            assert arrived is not None, "the request was not answered"
            if arrived[0] == number:
                return arrived[1]

    def refused(self, message: Plain | bytes) -> Refused:
        answer = self.ask(message)
        assert isinstance(answer, Refused), answer
        return answer


def sent_as(parts: list[bytes]) -> bytes:
    """A message as it travels between two ZeroMQ sockets."""
    return b"".join(frames(parts))
