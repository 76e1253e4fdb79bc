"""The supervisor's loop while subscriptions that are far behind come back at once, beside an idle loop.

One process subscribes five hundred times to a session of 1,280 events, from its first one, and reads all of
them. This process measures meanwhile how long a small request takes on a connection of its own: that is the
lag of the loop, and two hops. The limit is the same request to the same supervisor at rest.
"""

import multiprocessing
import tempfile
import time
from multiprocessing.synchronize import Event as Signal
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from bench.pretend import pretend_service
from ipc.codec import Decoder, encode
from ipc.messages import Answer, Done, Event, Subscribe, Unsubscribe
from ipc.places import find_places, make_private
from ipc.sockets import BlockingSocket, Wire
from supervisor.core.records import MessageAccepted, MessageDropped
from supervisor.journal.journal import Journal
from tests.waiting import DEADLINE_SECONDS

TITLE = "A small request while 500 subscriptions of 1,280 events catch up, beside an idle supervisor"
ROUNDS = 3
_SUBSCRIPTIONS, _EVENTS = 500, 1280
_IDLE_REQUESTS = 2000
_SESSION = "long"


def _fill(home: Path) -> None:
    """Messages that were dropped: events without open work."""
    places = find_places(str(home))
    make_private(places.state)
    journal = Journal.open(places.journal, places.lock)
    for number in range(1, _EVENTS, 2):
        id, at = f"m_{number}", time.time()
        told = MessageAccepted(
            session=_SESSION,
            at=at,
            seq=number,
            message=id,
            key=id,
            kind="text",
            text="words " * 20,
            busy="queue",
        )
        dropped = MessageDropped(session=_SESSION, at=at, seq=number + 1, message=id, by="bench")
        journal.commit_now([told, dropped])
    journal.close()


def _read(path: str, begun: Signal, over: Signal) -> None:
    """The clients that come back; every seq of each subscription is compared with the next one."""
    wire, decoder = Wire(), Decoder[Answer](Answer)
    socket = wire.blocking(path, "bench-readers")
    for number in range(1, _SUBSCRIPTIONS + 1):
        socket.send([number.to_bytes(8), encode(Subscribe(_SESSION, 0))])
    begun.set()
    seqs = dict.fromkeys((number.to_bytes(8) for number in range(1, _SUBSCRIPTIONS + 1)), 0)
    left = _SUBSCRIPTIONS * _EVENTS
    while left:
        parts = socket.receive(DEADLINE_SECONDS)
        assert parts is not None, "the supervisor sends no more"
        if isinstance(answer := decoder.decode(parts[1]), Event):
            assert answer.seq == seqs[parts[0]] + 1, "a gap or a repeat"
            seqs[parts[0]] = answer.seq
            left -= 1
    over.set()
    wire.close()


def _request(socket: BlockingSocket, decoder: Decoder[Answer]) -> float:
    """Milliseconds of one request that does nothing."""
    began = time.perf_counter()
    socket.send([(1).to_bytes(8), encode(Unsubscribe(0))])
    parts = socket.receive(DEADLINE_SECONDS)
    assert parts is not None
    assert isinstance(decoder.decode(parts[1]), Done)
    return (time.perf_counter() - began) * 1000


def measure(rounds: int) -> list[Outcome]:
    ours: list[float] = []
    idle: list[float] = []
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        _fill(home)
        with pretend_service(home, seats=1) as (places, _):
            wire, decoder = Wire(), Decoder[Answer](Answer)
            socket = wire.blocking(places.control, "bench-client")
            for _ in range(rounds):
                idle += [_request(socket, decoder) for _ in range(_IDLE_REQUESTS)]
                begun, over = context.Event(), context.Event()
                readers = context.Process(target=_read, args=(places.control, begun, over))
                readers.start()
                begun.wait(DEADLINE_SECONDS)
                while readers.is_alive() and not over.is_set():
                    ours.append(_request(socket, decoder))
                readers.join(DEADLINE_SECONDS)
                assert readers.exitcode == 0, "the readers failed"
            wire.close()
    return [
        Outcome("request while others catch up", ours, idle, "ms", "at most", None),
        Outcome("the longest of them", [max(ours)], [max(idle)], "ms", "at most", None),
    ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
