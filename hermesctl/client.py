"""The client side of the control protocol: numbered requests and answers, every wait bounded."""

import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from hermesctl.errors import CommandError, NotRunning
from hermesctl.exit_codes import Exit
from ipc.codec import Decoder, encode
from ipc.messages import Answer, Care, Queue, Refused, Request, Show, Table
from ipc.places import Places, is_listening
from ipc.sockets import Wire

# The supervisor answers after one commit; ten seconds mean a failing disk.
ANSWER_SECONDS = 10.0
# After this much silence the connection itself is checked.
SILENCE_SECONDS = 0.5
# An answer that was sent before the connection was lost arrives within this.
_LAST_ANSWER_SECONDS = 0.5
# Events that arrive while another answer is awaited; a few seconds of a fast stream.
_ASIDE_MAX = 20_000

_Expected = TypeVar("_Expected")


class Client:
    """One connection to the control socket."""

    def __init__(self, places: Places, wake: int | None = None) -> None:
        """`wake` is a file descriptor that ends a wait early when it becomes readable."""
        self._path = places.control
        self._born = _birth(self._path)
        if not is_listening(self._path):
            raise NotRunning()
        self._wake = () if wake is None else (wake,)
        self._wire = Wire()
        self._socket = self._wire.blocking(self._path, f"hermesctl-{os.urandom(8).hex()}")
        self._decoder: Decoder[Answer] = Decoder(Answer)
        # Of the last request that was sent.
        self.number = 0
        self._aside: deque[tuple[int, Answer]] = deque()

    def ask(
        self, request: Request, expected: type[_Expected], timeout_seconds: float = ANSWER_SECONDS
    ) -> _Expected:
        """Returns the answer to a request; a refusal ends the command."""
        return self.answer_to(self.post(request), expected, timeout_seconds)

    def rows(
        self,
        request: Show | Queue | Care,
        at_most: int | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> Iterator[dict[str, Any]]:
        """Returns the rows of a table, page after page; without `at_most` all of them."""
        left = at_most
        while left is None or left > 0:
            page = self.ask(request, Table, timeout_seconds)
            yield from page.rows[:left]
            if not page.more:
                return
            left = None if left is None else left - len(page.rows)
            request = msgspec.structs.replace(request, after=page.more)

    def answer_to(
        self, number: int, expected: type[_Expected], timeout_seconds: float = ANSWER_SECONDS
    ) -> _Expected:
        """Returns the first expected answer under a number; other arrivals are kept for `receive`."""
        deadline, is_lost = time.monotonic() + timeout_seconds, False
        while (left := deadline - time.monotonic()) > 0:
            arrived = self._read(min(left, _LAST_ANSWER_SECONDS if is_lost else SILENCE_SECONDS))
            if arrived is None:
                if is_lost:
                    raise NotRunning("the supervisor has gone", "hermesctl start")
                # It may have answered before it went: that is read before the loss is reported.
                is_lost = self.is_lost()
            elif arrived[0] == number and isinstance(arrived[1], Refused):
                raise refusal(arrived[1])
            elif arrived[0] == number and isinstance(arrived[1], expected):
                return arrived[1]
            else:
                self._put_aside(arrived)
        raise NotRunning(
            f"the supervisor did not answer within {timeout_seconds:g} s", "look at logs/supervisor.log"
        )

    def post(self, request: Request) -> int:
        """Sends a request whose answers `receive` returns, under the number returned."""
        self.number += 1
        self._socket.send([self.number.to_bytes(8, "big"), encode(request)])
        return self.number

    def receive(self, timeout_seconds: float) -> tuple[int, Answer] | None:
        """Returns the next answer with its request's number, or None after the time limit or a wake."""
        return self._aside.popleft() if self._aside else self._read(timeout_seconds)

    def is_lost(self) -> bool:
        """True when the connected process is gone, even if another one listens there by now."""
        return _birth(self._path) != self._born or not is_listening(self._path)

    def close(self) -> None:
        self._wire.close()

    def _read(self, timeout_seconds: float) -> tuple[int, Answer] | None:
        parts = self._socket.receive(0)
        if parts is None:
            readable, _, _ = select.select([self._socket.fileno(), *self._wake], [], [], timeout_seconds)
            if self._wake and self._wake[0] in readable:
                os.read(self._wake[0], 512)
            parts = self._socket.receive(0)
        if parts is None:
            return None
        number, frame = parts
        return int.from_bytes(number, "big"), self._decoder.decode(frame)

    def _put_aside(self, arrived: tuple[int, Answer]) -> None:
        if len(self._aside) >= _ASIDE_MAX:
            raise NotRunning("the supervisor streams but does not answer", "hermesctl status")
        self._aside.append(arrived)


def listener_pid(places: Places) -> int | None:
    """Returns the pid of the listener at the control socket from the kernel: it need not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(places.control)
        except OSError:
            return None
        return int(struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def refusal(refused: Refused) -> CommandError:
    """Returns the error with which a refused request ends the command."""
    later = refused.retry_after_seconds
    hint = refused.hint if later is None else f"{refused.hint} (again in {later:g} s)"
    return CommandError(refused.error, hint, Exit.REFUSED)


def _birth(path: str) -> tuple[int, int] | None:
    """Tells a socket file from its successor:

    ZeroMQ reconnects silently, but a subscription does not survive.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
