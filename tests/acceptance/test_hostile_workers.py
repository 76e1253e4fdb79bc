"""Frames that no honest worker sends: that worker is ended by name, and the service lives."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from bench.pretend import identity_of, pretend_service
from hermesctl.client import Client
from ipc.codec import Decoder, encode
from ipc.endpoints import Places
from ipc.messages import (
    Accepted,
    Assign,
    Event,
    Follow,
    Following,
    FromWorker,
    Hello,
    Ready,
    Show,
    Submit,
    Table,
    ToWorker,
)
from ipc.sockets import Wire
from tests.waiting import DEADLINE_SECONDS, until
from tests.wire_values import frame, out_of_bounds, structs

_decoder: Decoder[ToWorker] = Decoder(ToWorker)
# As often as a turn is tried.
_ATTEMPTS = 3


class PlayedWorker:
    """One incarnation of the only seat: it is ready at once, and says what the test wants."""

    def __init__(self, wire: Wire, places: Places, incarnation: int) -> None:
        self._socket = wire.blocking(places.frames, identity_of(incarnation))
        self._number = 0
        self.say(encode(Hello(1, 0, incarnation)))
        self.say(encode(Ready()))

    def say(self, body: bytes) -> None:
        self._number += 1
        self._socket.send([self._number.to_bytes(8), body])

    def assigned(self) -> Assign:
        while True:
            parts = self._socket.receive(DEADLINE_SECONDS)
            assert parts is not None, "no turn was given to it"
            message = _decoder.decode(parts[0])
            if isinstance(message, Assign):
                return message

    def close(self) -> None:
        self._socket.close()


def offences() -> Iterator[tuple[str, dict[str, Any]]]:
    for struct in structs(FromWorker):
        yield from out_of_bounds(struct)


def lost(client: Client) -> Iterator[str]:
    """Why each attempt was lost, in order."""
    follow = client.post(Follow("demo", 0))
    client.answer_to(follow, Following)
    while True:
        arrived = client.receive(DEADLINE_SECONDS)
        assert arrived is not None, "no further attempt was lost"
        if isinstance(arrived[1], Event) and arrived[1].type == "attempt.lost":
            yield arrived[1].fields["reason"]


def test_h13_a_worker_that_leaves_the_bounds_is_ended_by_name(tmp_path: Path) -> None:
    frames = list(offences())
    wire = Wire()
    with pretend_service(tmp_path / "home", 1) as (places, pid):
        client, watcher = Client(places), Client(places)
        for number in range(len(frames) // _ATTEMPTS + 1):
            client.ask(Submit("demo", "go", f"key-{number}", busy="queue"), Accepted)
        reasons = lost(watcher)
        for (path, message), incarnation in zip(frames, count(1), strict=False):
            worker = PlayedWorker(wire, places, incarnation)
            worker.assigned()
            worker.say(frame(message))
            reason = next(reasons)
            assert "it sent a frame that cannot be read" in reason
            assert path.rpartition(".")[2].partition("[")[0] in reason
            assert len(reason) < 300
            worker.close()
        until(lambda: client.ask(Show("status"), Table).rows[0]["pid"] == pid)
        client.close()
        watcher.close()
    wire.close()
    assert len(frames) > 50
