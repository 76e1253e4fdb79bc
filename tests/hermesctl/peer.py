"""The supervisor's side of the control protocol, played from a script on a real socket in a thread."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ipc.codec import Decoder, encode
from ipc.messages import Answer, Event, Request, Show, Table
from ipc.places import Places, find_places, make_private, remove_stand_in
from ipc.server import Server

# Nothing here takes a second; a test that waits this long has failed.
DEADLINE_SECONDS = 20.0


class Peer:
    """Answers each request as `reply` says; `say` sends more under the number of an earlier request."""

    def __init__(self, home: Path, reply: Callable[["Peer", Request], list[Answer]]) -> None:
        self.places: Places = find_places(str(home))
        self._reply = reply
        self._decoder: Decoder[Request] = Decoder(Request)
        self._requests: list[tuple[bytes, bytes, Request]] = []
        self._arrived = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def open(self) -> "Peer":
        make_private(self.places.runtime)
        self._thread.start()
        assert self._opened.wait(DEADLINE_SECONDS)
        return self

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()
        remove_stand_in(self.places.runtime)

    def wait_for(self, kind: type, count: int = 1) -> Any:
        """The `count`-th request of a kind, once it has arrived."""

        def found() -> list[Request]:
            return [request for _, _, request in self._requests if isinstance(request, kind)]

        with self._arrived:
            assert self._arrived.wait_for(lambda: len(found()) >= count, DEADLINE_SECONDS), kind
            return found()[count - 1]

    def requests(self, kind: type) -> list[Any]:
        with self._arrived:
            return [request for _, _, request in self._requests if isinstance(request, kind)]

    def say(self, kind: type, *answers: Answer) -> None:
        """More answers to the latest request of a kind, as a feed gives them."""
        self.wait_for(kind)
        self._loop.call_soon_threadsafe(self._say_now, kind, answers)

    def _say_now(self, kind: type, answers: tuple[Answer, ...]) -> None:
        asked = [(who, number) for who, number, request in self._requests if isinstance(request, kind)]
        who, number = asked[-1]
        for answer in answers:
            self._socket.send([who, number, encode(answer)])

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._bind())
        # Told from within `run_forever`: a stop that comes before it would be lost.
        self._loop.call_soon(self._opened.set)
        self._loop.run_forever()
        self._socket.close()
        self._loop.close()

    async def _bind(self) -> None:
        self._socket = Server(self.places.control, self._receive)

    def _receive(self, parts: list[bytes]) -> None:
        who, number, frame = parts
        request = self._decoder.decode(frame)
        with self._arrived:
            self._requests.append((who, number, request))
            self._arrived.notify_all()
        for answer in self._reply(self, request):
            self._socket.send([who, number, encode(answer)])


@contextlib.contextmanager
def opened(home: Path, reply: Callable[[Peer, Request], list[Answer]]) -> Iterator[Peer]:
    peer = Peer(home, reply).open()
    try:
        yield peer
    finally:
        peer.close()


def tables(**rows: list[dict[str, Any]]) -> Callable[[Peer, Request], list[Answer]]:
    """Answers every Show with the rows under its name."""

    def reply(peer: Peer, request: Request) -> list[Answer]:
        assert isinstance(request, Show)
        return [Table(tuple(rows.get(request.what, [])))]

    return reply


class Story:
    """Writes a session's events with gapless seqs."""

    def __init__(self, session: str = "demo", seq: int = 0) -> None:
        self.session = session
        self.seq = seq

    def event(self, type: str, **fields: Any) -> Event:
        self.seq += 1
        return Event(self.seq, self.session, type, 1731700000.1 + self.seq, fields)
