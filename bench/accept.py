"""From a client's Submit to the worker's Assign, beside a raw hop, commit and hop of the same size."""

import tempfile
import time
from functools import partial
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from bench.limits import raw_limit
from bench.pretend import line_of, pretend_service
from ipc.codec import Decoder, encode
from ipc.messages import Ack, Assign, Finished, FromWorker, Hello, Ready, Submit, ToWorker
from ipc.places import Places
from ipc.sockets import BlockingSocket, Wire
from tests.waiting import DEADLINE_SECONDS

TITLE = "A message on its way, Submit to Assign, beside a bare hop, commit and hop"
ROUNDS = 1000
_WARM_UP = 50
_TEXT = "What would it take to get this done by the end of the day? " * 4
_decoder: Decoder[ToWorker] = Decoder(ToWorker)


class Played:
    """A worker that the benchmark plays. It serves one session: incarnation N gets the Nth message."""

    def __init__(self, wire: Wire, places: Places, incarnation: int) -> None:
        self.socket = wire.blocking(line_of(places, incarnation), "worker")
        self._frame = 0
        self.post(Hello(1, (incarnation - 1) % 2, incarnation))
        self.rest()

    def rest(self) -> None:
        """Ready, and known to be."""
        self.post(Ready())
        while _decoder.decode(receive(self.socket)[-1]) != Ack(self._frame):
            pass

    def post(self, message: FromWorker) -> None:
        self._frame += 1
        self.socket.send([self._frame.to_bytes(8), encode(message)])


class Ours:
    """The supervisor with one busy seat and one spare, both played here."""

    def __init__(self, wire: Wire, places: Places) -> None:
        self._client = wire.blocking(places.control, "bench-client")
        self._next = partial(Played, wire, places)
        self._asked = 0
        self._workers = [self._next(1), self._next(2)]
        self._idle: Played | None = None

    def once(self) -> float:
        """Milliseconds until the worker has the turn; the turn is then finished and all is at rest again."""
        self._asked += 1
        number = self._asked.to_bytes(8)
        request = encode(Submit(f"session-{self._asked}", _TEXT, f"key-{self._asked}"))
        worker = self._workers.pop(0)
        began = time.perf_counter()
        self._client.send([number, request])
        while not isinstance(message := _decoder.decode(receive(worker.socket)[-1]), Assign):
            pass
        spent = time.perf_counter() - began
        worker.post(Finished(message.turn, message.attempt, "It is done."))
        worker.rest()
        receive(self._client)
        if self._idle is not None:  # it was killed to make room for the next worker
            self._idle.socket.close()
            self._workers.append(self._next(self._asked + 1))
        self._idle = worker
        return spent * 1000


class Raw:
    """The limit: nothing but the hops and the commit."""

    def __init__(self, wire: Wire, clients: str, workers: str) -> None:
        self._client = wire.blocking(clients, "bench-client")
        self._worker = wire.blocking(workers, "bench-worker")
        self._worker.send([b"here"])
        self._asked = 0

    def once(self) -> float:
        self._asked += 1
        request = encode(Submit(f"session-{self._asked}", _TEXT, f"key-{self._asked}"))
        began = time.perf_counter()
        self._client.send([self._asked.to_bytes(8), request])
        receive(self._worker)
        return (time.perf_counter() - began) * 1000


def receive(socket: BlockingSocket) -> list[bytes]:
    parts = socket.receive(DEADLINE_SECONDS)
    assert parts is not None, "nothing arrived"
    return parts


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        home, wire = Path(folder), Wire()
        with (
            pretend_service(home / "ours", 1, spares=1) as (places, _),
            raw_limit("accept", home / "raw") as (a, b, _),
        ):
            ours, raw = Ours(wire, places), Raw(wire, a, b)
            pairs = [(ours.once(), raw.once()) for _ in range(rounds + _WARM_UP)][_WARM_UP:]
        wire.close()
    times = ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [Outcome("accepted to assigned", *times, "ms", "at most", 1.5)]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
