"""Frames that no longer count: each fence of them alone is enough, and nothing happens."""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.pretend import pretend_service
from hermesctl.client import Client
from ipc.codec import encode
from ipc.messages import (
    Accepted,
    Delta,
    Done,
    Finished,
    FromWorker,
    Hello,
    Interrupt,
    Kept,
    Ready,
    Show,
    Submit,
)
from ipc.places import Places
from ipc.sockets import Wire
from tests.acceptance import earlier_epoch
from tests.fuzz.at_workers import Played
from tests.service import Listener, Service
from tests.waiting import until
from tests.wire_values import frame, smallest, structs

# Every kind of frame that belongs to an attempt. Kept is no news of it but the answer to a question.
OF_ATTEMPTS = [
    struct
    for struct in structs(FromWorker)
    if struct is not Kept and {"turn", "attempt"} <= set(struct.__struct_fields__)
]
ONE_TURN = ["message.accepted", "turn.opened", "attempt.opened"]


class Stage:
    """A real supervisor, whose workers are played by the test."""

    def __init__(self, places: Places) -> None:
        self.client = Client(places)
        self._places = places
        self._wire = Wire()
        self._texts = itertools.count()

    def close(self) -> None:
        self.client.close()
        self._wire.close()

    def next_worker(self, after: int = 0) -> tuple[Played, int]:
        """The worker that is started after another one, and its incarnation."""

        def started() -> dict[str, Any] | None:
            rows = self.client.rows(Show("workers"))
            return next((row for row in rows if row["pid"] and row["incarnation"] > after), None)

        row = until(started)
        assert row is not None
        return Played(self._wire, self._places, row["seat"], row["incarnation"]), row["incarnation"]

    def begin(self, worker: Played, session: str, turn: str) -> None:
        """A message, and its turn is this worker's."""
        text = f"number {next(self._texts)}"
        self.client.ask(Submit(session, text, text), Accepted)
        until(lambda: worker.assigned(turn))


@contextmanager
def stage(home: Path, module: str = "bench.pretend") -> Iterator[Stage]:
    with pretend_service(home, 1, module=module) as (places, _), closing(Stage(places)) as made:
        yield made


def stale(struct: Any, **fields: Any) -> bytes:
    """The smallest frame of its kind, but for what is given."""
    return frame(smallest(struct) | fields)


def test_d7_frames_of_another_turn_attempt_or_process_change_nothing(tmp_path: Path) -> None:
    with stage(tmp_path / "home") as it:
        worker, incarnation = it.next_worker()
        listener = Listener(it.client, "demo", 0)
        it.begin(worker, "demo", "demo/1")
        worker.send(encode(Finished("demo/1", 1, "the first")))
        worker.send(encode(Ready()))
        listener.ending("demo/1")
        it.begin(worker, "demo", "demo/2")
        # All are sent by the process that has the turn, and each is wrong in one thing.
        for struct, (turn, attempt) in itertools.product(
            OF_ATTEMPTS, [("demo/1", 1), ("demo/3", 1), ("other/2", 1), ("demo/2", 2)]
        ):
            worker.send(stale(struct, turn=turn, attempt=attempt))
        until(worker.all_decided)
        worker.send(encode(Delta("demo", "demo/2", 1, 0, "the second")))
        worker.send(encode(Finished("demo/2", 1, "the second")))
        worker.send(encode(Ready()))
        assert listener.ending("demo/2").fields["text"] == "the second"
        it.begin(worker, "demo", "demo/3")
        it.client.ask(Interrupt("demo", "test"), Done)
        # Its process is gone, and what it had sent before arrives now: the turn and the attempt are right.
        successor, _ = it.next_worker(incarnation)
        it.begin(successor, "demo", "demo/4")
        for struct in OF_ATTEMPTS:
            worker.send(stale(struct, turn="demo/4", attempt=1))
        successor.send(encode(Finished("demo/4", 1, "the fourth")))
        assert listener.ending("demo/4").fields["text"] == "the fourth"
        assert listener.words == "the second"
        assert listener.notes == []
        done = [*ONE_TURN, "turn.done"]
        assert listener.types() == [*done, *done, *ONE_TURN, "turn.interrupted", *done]
    assert len(OF_ATTEMPTS) >= 8


def test_d7_frames_of_another_epoch_change_nothing(tmp_path: Path) -> None:
    session, turn = earlier_epoch.SESSION, f"{earlier_epoch.SESSION}/1"
    with stage(tmp_path / "home", "tests.acceptance.earlier_epoch") as it:
        worker, _ = it.next_worker()
        listener = Listener(it.client, session, 0)
        it.begin(worker, session, turn)
        for struct in OF_ATTEMPTS:
            worker.send(stale(struct, turn=turn, attempt=1))
        until(worker.all_decided)
        it.client.ask(Interrupt(session, "test"), Done)
        assert listener.ending(turn).fields["partial"] == ""
        assert listener.types() == [*ONE_TURN, "turn.interrupted"]
        assert (listener.words, listener.notes) == ("", [])


def test_d7_what_strangers_send_changes_nothing(service: Service) -> None:
    """No other process has the link of a worker: what forges its frames gets at most a client's socket."""
    service.say("demo", "[[slow interval=0.05 count=400]] go")
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    sockets = [path for path in service.places.runtime.rglob("*") if path.is_socket()]
    known = {service.places.control, service.places.gateway, service.places.services}
    assert {str(path) for path in sockets} <= known
    with closing(Wire()) as wire:
        for path, identity in itertools.product(sockets, ("hermesctl-0", "worker-1", "1")):
            stranger = wire.blocking(str(path), identity)
            forged = [
                Hello(1, 0, 1),
                Delta("demo", "demo/1", 1, 0, "from the dead"),
                Finished("demo/1", 1, "a forgery"),
            ]
            for number, message in enumerate(forged, start=1):
                stranger.send([number.to_bytes(8, "big"), encode(message)])
        service.interrupt("demo")
        assert listener.ending("demo/1").type == "turn.interrupted"
    assert "from the dead" not in listener.words
    assert listener.types() == [*ONE_TURN, "turn.interrupted"]
