"""The connection to the supervisor: numbered requests with a time limit, and subscriptions.

All requests of all clients go through one socket. The supervisor may be killed and started again, or replaced
in place; then the socket is closed and another one made, because libzmq would send what was queued again, to
the next supervisor, after its sender was told that it failed. A lost connection answers every open request
with 503, except those with a key: sent twice, such a request is carried out once, so it is sent again and its
client only waits.

    down ── handshake ──► up        up: requests are sent; those with a key that were kept are sent again
    up ── connection lost ──► down  down: requests are refused with 503; subscriptions are gone
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from gateway.errors import HttpError, Unavailable
from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.messages import (
    Answer,
    Begin,
    Queue,
    Refused,
    Request,
    Retry,
    Show,
    Submit,
    Subscribe,
    Table,
    Unsubscribe,
)
from ipc.sockets import LoopSocket, Wire
from ipc.zmtp import Sent

# The supervisor answers after one commit; ten seconds mean a failing disk.
ANSWER_SECONDS = 10.0
# Requests without an answer. Each is one waiting client; beyond it the supervisor is overloaded.
_WAITING_MAX = 5_000
# When a refusal that passes says no time of its own.
_LATER_SECONDS = 5.0

_STATUS = {
    "invalid": 400,
    "unknown": 404,
    "conflict": 409,
    "full": 429,
    "unavailable": 503,
    "denied": 403,
    "internal": 500,
}
_Expected = TypeVar("_Expected")


class Subscriber(Protocol):
    """The receiver of a subscription. After `lost` the subscription is gone."""

    def take(self, number: int, answer: Answer, size_bytes: int) -> None: ...
    def lost(self, number: int) -> None: ...


class _Waiting:
    __slots__ = ("future", "number", "request")

    def __init__(self, number: int, request: Request) -> None:
        self.number = number
        self.request = request
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class SupervisorClient:
    def __init__(self, path: str) -> None:
        self._path = path
        self._decoder: Decoder[Answer] = Decoder(Answer)
        self._number = 0
        self._waiting: dict[int, _Waiting] = {}
        self._subscribers: dict[int, Subscriber] = {}
        # Subscriptions whose end could not be sent yet.
        self._unended: set[int] = set()
        self.is_up = False
        # Counts the sockets: libzmq may report a new connection of one that is about to be closed.
        self._generation = 0
        self._wire: Wire | None = None
        self._socket: LoopSocket | None = None
        # Called whenever a connection is up.
        self.connected: Callable[[], None] = lambda: None
        self._connect()

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = self._socket = None

    async def ask(
        self, request: Request, expected: type[_Expected], timeout_seconds: float = ANSWER_SECONDS
    ) -> _Expected:
        """Returns the answer. Raises HttpError when it is refused, and when none comes."""
        if not self.is_up:
            raise Unavailable()
        if len(self._waiting) >= _WAITING_MAX:
            raise Unavailable("too many requests wait for the supervisor")
        waiting = _Waiting(self._next(), request)
        self._waiting[waiting.number] = waiting
        try:
            self._send(waiting.number, request)
            async with asyncio.timeout(timeout_seconds):
                answer = await waiting.future
        except TimeoutError:
            raise Unavailable(f"the supervisor did not answer within {timeout_seconds:g} s") from None
        finally:
            self._waiting.pop(waiting.number, None)
        if isinstance(answer, Refused):
            raise refusal(answer)
        assert isinstance(answer, expected), type(answer).__name__
        return answer

    async def rows(self, request: Show | Queue) -> list[dict[str, Any]]:
        """Returns all rows of a table, page after page; for tables that are short."""
        rows: list[dict[str, Any]] = []
        while True:
            page = await self.ask(request, Table)
            rows += page.rows
            if not page.more:
                return rows
            request = msgspec.structs.replace(request, after=page.more)

    def subscribe(self, session: str | None, after: int | None, subscriber: Subscriber) -> int:
        """Starts a subscription and returns its number. Raises Unavailable when it cannot be sent."""
        if not self.is_up:
            raise Unavailable()
        number = self._next()
        self._send(number, Subscribe(session, after))
        self._subscribers[number] = subscriber
        return number

    def unsubscribe(self, number: int) -> None:
        """Ends a subscription. Where that cannot be sent now, it is sent when something comes of it."""
        if self._subscribers.pop(number, None) is not None and self.is_up:
            self._send_end(number)

    def _send_end(self, number: int) -> None:
        self._unended.discard(number)
        try:
            self._send(self._next(), Unsubscribe(number))
        except Unavailable:
            self._unended.add(number)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _send(self, number: int, request: Request) -> None:
        """Raises when the request cannot be sent. Nothing is queued by halves."""
        assert self._socket is not None
        try:
            frame = encode(request)
        except WireError as error:
            raise HttpError(400, error.fault, error.hint) from None
        if self._socket.send([number.to_bytes(8, "big"), frame]) is Sent.FULL:
            raise Unavailable("the supervisor reads too slowly")

    def _connect(self) -> None:
        self._wire = Wire()
        identity = f"gateway-{os.urandom(8).hex()}"
        changed = partial(self._changed, self._generation)
        self._socket = self._wire.watched_dealer(self._path, identity, self._receive, changed)

    def _changed(self, generation: int, is_up: bool) -> None:
        if generation != self._generation:
            return
        if is_up and not self.is_up:
            self.is_up = True
            self._send_kept()
            self.connected()
        elif not is_up and self.is_up:
            self.is_up = False
            self._generation += 1
            self._lose()
            # Not from inside the socket's own callback.
            asyncio.get_running_loop().call_soon(self._reconnect)

    def _reconnect(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._connect()

    def _lose(self) -> None:
        for number, waiting in list(self._waiting.items()):
            if not isinstance(waiting.request, Submit | Retry | Begin) and not waiting.future.done():
                del self._waiting[number]
                waiting.future.set_exception(Unavailable("the supervisor was lost before it answered"))
        self._unended.clear()
        subscribers, self._subscribers = self._subscribers, {}
        for number, subscriber in subscribers.items():
            subscriber.lost(number)

    def _send_kept(self) -> None:
        """Sends the requests with a key again, under new numbers; one that cannot be sent fails alone."""
        kept, self._waiting = self._waiting, {}
        for waiting in kept.values():
            waiting.number = self._next()
            self._waiting[waiting.number] = waiting
            try:
                self._send(waiting.number, waiting.request)
            except HttpError as error:
                if not waiting.future.done():
                    waiting.future.set_exception(error)

    def _receive(self, parts: list[bytes]) -> None:
        number, frame = int.from_bytes(parts[0], "big"), parts[-1]
        subscriber = self._subscribers.get(number)
        waiting = self._waiting.get(number)
        if subscriber is not None:
            subscriber.take(number, self._decoder.decode(frame), len(frame))
        elif waiting is not None and not waiting.future.done():
            waiting.future.set_result(self._decoder.decode(frame))
        elif number in self._unended:
            self._send_end(number)


def refusal(refused: Refused) -> HttpError:
    """Returns the error with which a refused request is answered."""
    again = refused.retry_after_seconds
    if again is None and refused.code in ("full", "unavailable"):
        again = _LATER_SECONDS
    return HttpError(_STATUS[refused.code], refused.error, refused.hint, retry_after_seconds=again)
