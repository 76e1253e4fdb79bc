"""Frames of workers, which are played here, at a real supervisor: any that the types allow, and changed ones.

A worker that leaves the protocol is killed, and the next one is played in its place. Every frame is said by a
worker that has a turn, so that it is not an echo before anybody looks at it.
"""

import os
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from hypothesis import strategies as st

from bench.pretend import line_of
from hermesctl.client import Client
from ipc.admin_messages import Reload
from ipc.codec import Decoder, encode
from ipc.messages import Accepted, Ack, Assign, FromWorker, Hello, Ready, Show, Submit, Table, ToWorker
from ipc.places import Places
from ipc.sockets import Wire
from tests.fuzz.mutations import mutated
from tests.waiting import until
from tests.wire_strategies import messages
from tests.wire_values import frame, smallest, structs

# Stands for the turn that runs, so that frames pass the fence.
TURN = "the turn that runs"
_decoder: Decoder[ToWorker] = Decoder(ToWorker)


def frames() -> st.SearchStrategy[Any]:
    """Any frame; many of them about TURN."""
    return st.one_of(*(messages(struct, [TURN, TURN, "c1", "hello"]) for struct in structs(FromWorker)))


class Played:
    """One worker process that is none."""

    def __init__(self, wire: Wire, places: Places, seat: int, incarnation: int) -> None:
        self._socket = wire.blocking(line_of(places, incarnation), "worker")
        self._number = self._acknowledged = 0
        self._assign: Assign | None = None
        self.send(encode(Hello(1, seat, incarnation)))
        self.send(encode(Ready()))

    def send(self, body: bytes) -> None:
        self._number += 1
        self._socket.send([self._number.to_bytes(8), body])

    def assigned(self, turn: str) -> Assign | None:
        """The latest Assign, once it is the one of this turn."""
        self._read()
        return self._assign if self._assign is not None and self._assign.turn == turn else None

    def all_decided(self) -> bool:
        """Whether every frame so far was decided: an acknowledgement follows the commit."""
        self._read()
        return self._acknowledged == self._number

    def _read(self) -> None:
        while (parts := self._socket.receive(0)) is not None:
            match _decoder.decode(parts[0]):
                case Assign() as assign:
                    self._assign = assign
                case Ack(frame=number):
                    self._acknowledged = number

    def close(self) -> None:
        self._socket.close()


class PlayedWorkers:
    """All workers of a service; the one with a turn says what is to be said."""

    def __init__(self, places: Places, pid: int) -> None:
        self._wire = Wire()
        self._places = places
        self._pid = pid
        self._client = Client(places)
        self._played: dict[int, Played] = {}
        self._said = 0
        self.killed = 0

    def __enter__(self) -> "PlayedWorkers":
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()
        self._wire.close()

    def say(self, message: Any) -> None:
        worker, assign = self._at_work()
        if getattr(message, "turn", "") == TURN:
            message = msgspec.structs.replace(message, turn=assign.turn, attempt=assign.attempt)
        worker.send(encode(message))

    def send(self, body: bytes) -> None:
        """Returns when the frame was read: a worker that is about to be killed for it says nothing more."""
        worker, _ = self._at_work()
        worker.send(body)
        until(lambda: worker.all_decided() or not self._is_alive(worker))

    def send_changed(self, seed: int, count: int) -> None:
        whole = [frame(smallest(struct)) for struct in structs(FromWorker)]
        for body in islice(mutated(Random(seed), whole), count):
            self.send(body)

    def check_alive(self) -> None:
        """The same process, and no defect of ours on the way."""
        (status,) = self._client.rows(Show("status"))
        assert status["pid"] == self._pid
        rows = self._client.rows(Show("metrics"))
        (row,) = [row for row in rows if row["name"] == "hermes_contained_total"]
        assert [each for each in row["samples"] if each["value"]] == []

    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _at_work(self) -> tuple[Played, Assign]:
        found = until(self._with_a_turn)
        assert found is not None
        return found

    def _with_a_turn(self) -> tuple[Played, Assign] | None:
        """A worker that was given a turn; None while there is none yet."""
        rows = list(self._client.rows(Show("workers")))
        self._bury({row["incarnation"] for row in rows})
        for row in rows:
            # Before it has a pid its name is not known, and what it says is an echo.
            if row["incarnation"] not in self._played and row["pid"] is not None:
                played = Played(self._wire, self._places, row["seat"], row["incarnation"])
                self._played[row["incarnation"]] = played
        for row in rows:
            worker = self._played.get(row["incarnation"])
            if worker is None or row["state"] != "busy":
                continue
            if row["turn"] is None:
                worker.send(encode(Ready()))
            elif (assign := worker.assigned(row["turn"])) is not None:
                return worker, assign
        (status,) = self._client.rows(Show("status"))
        if status["outages"]:
            # A worker has said that its model is away, and every turn waits; a reload forgets it.
            self._client.ask(Reload(), Table)
        elif all(row["state"] == "idle" for row in rows):
            self._said += 1
            self._client.ask(Submit(f"s{self._said}", "hello", "key"), Accepted)
        return None

    def _is_alive(self, worker: Played) -> bool:
        self._bury({row["incarnation"] for row in self._client.rows(Show("workers"))})
        return worker in self._played.values()

    def _bury(self, alive: set[int]) -> None:
        for incarnation in self._played.keys() - alive:
            self._played.pop(incarnation).close()
            self.killed += 1
