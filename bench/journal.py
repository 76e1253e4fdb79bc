"""Messages accepted through the whole service by 1, 8 and 64 senders at once, beside raw SQLite commits.

The raw side commits rows of the same size with `synchronous=FULL`, one a transaction and as many as there are
senders; both sides take turns within one run. The workers are played here and never finish: accepting is all
that is measured.
"""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.accept import receive
from bench.goals import Outcome, rounds_asked, tell
from bench.pretend import pretend_service
from ipc.codec import Decoder, encode
from ipc.messages import Accepted, Answer, Submit
from ipc.sockets import BlockingSocket, Wire

TITLE = "Messages accepted, 1, 8 and 64 senders at once, beside raw commits of the same bytes"
ROUNDS = 300
SENDERS = (1, 8, 64)
_WARM_UP = 20
# Messages that one session is given: some wait, as under load, and none has a long queue.
_A_SESSION_MAX = 10
_TEXT = "What would it take to get this done by the end of the day? " * 4
# Goals: what one sender waits for, and how much more many get through than one commit for each would.
_ONE_SENDER_GOAL = 1.5
_MANY_SENDERS_GOAL = 5.0


class Senders:
    """So many clients, each of which sends its next message when the last one is accepted."""

    def __init__(self, wire: Wire, control: str, count: int) -> None:
        self._sockets = [wire.blocking(control, f"bench-{count}-{each}") for each in range(count)]
        self._decoder: Decoder[Answer] = Decoder(Answer)
        self._sent = 0
        self._name = count

    def round(self) -> float:
        """Seconds until every one of them has been told that its message is durable."""
        self._sent += 1
        number = self._sent.to_bytes(8)
        requests = [
            encode(
                Submit(
                    f"bench-{self._name}-{each}-{self._sent // _A_SESSION_MAX}",
                    _TEXT,
                    str(self._sent),
                    busy="queue",
                )
            )
            for each in range(len(self._sockets))
        ]
        began = time.perf_counter()
        for socket, request in zip(self._sockets, requests, strict=True):
            socket.send([number, request])
        answers = [self._answer(socket) for socket in self._sockets]
        spent = time.perf_counter() - began
        assert all(isinstance(answer, Accepted) for answer in answers), answers
        return spent

    def _answer(self, socket: BlockingSocket) -> Answer:
        return self._decoder.decode(receive(socket)[-1])


class Raw:
    """Rows of the same bytes, committed in this process by the same rules of durability."""

    def __init__(self, folder: Path) -> None:
        self._journal = sqlite3.connect(folder / "raw.db", isolation_level=None)
        self._journal.execute("PRAGMA journal_mode = WAL")
        self._journal.execute("PRAGMA synchronous = FULL")
        self._journal.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, key TEXT, text TEXT)")

    def commit(self, rows: int) -> float:
        began = time.perf_counter()
        self._journal.execute("BEGIN IMMEDIATE")
        self._journal.executemany("INSERT INTO message (key, text) VALUES (?, ?)", [("key", _TEXT)] * rows)
        self._journal.execute("COMMIT")
        return time.perf_counter() - began

    def close(self) -> None:
        self._journal.close()


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder, closing(Wire()) as wire:
        home = Path(folder)
        # One seat that is taken at once: everything after the first message waits, as under load.
        with pretend_service(home / "ours", 1) as (places, _), closing(Raw(home)) as raw:
            return [
                outcome
                for count in SENDERS
                for outcome in _outcomes(Senders(wire, places.control, count), raw, count, rounds)
            ]


def _outcomes(senders: Senders, raw: Raw, count: int, rounds: int) -> Iterator[Outcome]:
    times = [(senders.round(), raw.commit(1), raw.commit(count)) for _ in range(rounds + _WARM_UP)][_WARM_UP:]
    ours, alone, grouped = ([row[each] for row in times] for each in range(3))
    who = "1 sender" if count == 1 else f"{count} senders"
    if count == 1:
        latencies = [each * 1000 for each in ours], [each * 1000 for each in alone]
        yield Outcome(f"{who}: accepted", *latencies, "ms", "at most", _ONE_SENDER_GOAL)
        return
    rates = [count / each for each in ours], [1 / each for each in alone]
    goal = _MANY_SENDERS_GOAL if count == SENDERS[-1] else None
    yield Outcome(f"{who}: beside one commit a message", *rates, "messages/s", "at least", goal)
    yield Outcome(
        f"{who}: beside one commit for all",
        [each * 1000 for each in ours],
        [each * 1000 for each in grouped],
        "ms",
        "at most",
        None,
    )


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
