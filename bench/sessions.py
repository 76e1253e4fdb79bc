"""A host with 100, 1,000 and 10,000 sessions at rest, then 500 active: start, status and send, and memory.

The supervisor is the real one on a real journal; its workers are played here, so that what grows is ours.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from bench.accept import Ours, receive
from bench.goals import Outcome, rounds_asked, tell
from bench.pretend import pretend_service
from bench.report import table
from ipc.codec import Decoder, encode
from ipc.messages import Answer, Show, Submit, Table
from ipc.places import Places
from ipc.sockets import Wire

# The smallest fills a page of `sessions`, so that all show as many rows.
SIZES = (100, 1_000, 10_000)
ACTIVE = 500
TITLE = f"A host with many sessions, beside one with {SIZES[0]}"
ROUNDS = 100
STARTS = 3
GOAL = 1.5
_decoder: Decoder[Answer] = Decoder(Answer)
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Host:
    """One supervisor, its workers, and a person who looks and sends."""

    def __init__(self, wire: Wire, places: Places, pid: int) -> None:
        self._worker = Ours(wire, places)
        self._person = wire.blocking(places.control, "bench-person")
        self._pid = pid
        self._asked = 0

    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self._pid}/statm").read_text().split()[1]) * _PAGE_BYTES

    def send(self) -> float:
        """Milliseconds until the worker has the turn of a new session; then the session is at rest."""
        return self._worker.once()

    def look(self, what: Literal["status", "sessions"]) -> tuple[dict[str, Any], ...]:
        """The rows of a table."""
        answer = self._answer(Show(what))
        assert isinstance(answer, Table)
        return answer.rows

    def status(self) -> float:
        return self._ask(Show("status"))

    def sessions(self) -> float:
        return self._ask(Show("sessions"))

    def accept(self, session: str) -> float:
        """Milliseconds until a message is accepted that nobody answers."""
        return self._ask(Submit(session, "What is the time?", f"key of {session}"))

    def _ask(self, request: Show | Submit) -> float:
        began = time.perf_counter()
        self._answer(request)
        return (time.perf_counter() - began) * 1000

    def _answer(self, request: Show | Submit) -> Answer:
        self._asked += 1
        self._person.send([self._asked.to_bytes(8), encode(request)])
        return _decoder.decode(receive(self._person)[-1])


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        found = _measure_living(Path(folder), rounds)
        starts = _starts(Path(folder))
    few = SIZES[0]
    return found + [
        Outcome(f"start, {size:,} at rest", starts[size], starts[few], "ms", "at most", GOAL)
        for size in SIZES[1:]
    ]


def _measure_living(folder: Path, rounds: int) -> list[Outcome]:
    with _hosts(folder) as hosts:
        acts: dict[str, Callable[[Host], float]] = {
            "send": Host.send,
            "status": Host.status,
            "sessions": Host.sessions,
        }
        times: dict[tuple[str, int], list[float]] = {(act, size): [] for act in acts for size in SIZES}
        for _ in range(rounds):
            for act, run in acts.items():
                for size, host in hosts.items():
                    times[act, size].append(run(host))
        quiet = [hosts[SIZES[-1]].status() for _ in range(rounds)]
        _tell_memory(hosts)
        crowded = [hosts[SIZES[-1]].status() for _ in range(rounds)]
    few = SIZES[0]
    found = [
        Outcome(f"{act}, {size:,} at rest", times[act, size], times[act, few], "ms", "at most", GOAL)
        for act in acts
        for size in SIZES[1:]
    ]
    found.append(Outcome(f"status, {ACTIVE} active", crowded, quiet, "ms", "at most", GOAL))
    return found


@contextlib.contextmanager
def _hosts(folder: Path) -> Iterator[dict[int, Host]]:
    """All at once, so that every round sees the same machine."""
    wire = Wire()
    with contextlib.ExitStack() as stack:
        hosts = {}
        for size in SIZES:
            host = Host(wire, *stack.enter_context(pretend_service(folder / str(size), 1, spares=1)))
            before = host.memory_bytes()
            for _ in range(size):
                host.send()
            hosts[size] = host
            grown = host.memory_bytes() - before
            print(f"{size:,} sessions came to rest: {grown / size / 1024:.2f} KiB of memory each")
        yield hosts
        wire.close()


def _tell_memory(hosts: dict[int, Host]) -> None:
    host = hosts[SIZES[-1]]
    before = host.memory_bytes()
    for number in range(ACTIVE):
        host.accept(f"active-{number}")
    grown = (host.memory_bytes() - before) / ACTIVE / 1024
    rows = [
        ["", "MiB", "KiB each"],
        [f"{SIZES[-1]:,} at rest", f"{before / 2**20:.1f}", ""],
        [f"and {ACTIVE} active", f"{host.memory_bytes() / 2**20:.1f}", f"{grown:.1f}"],
    ]
    table("Memory of the supervisor", rows)


def _starts(folder: Path) -> dict[int, list[float]]:
    """Milliseconds from the start of the process to its open door, on the journals the hosts have left."""
    found: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(STARTS):
        for size, times in found.items():
            began = time.perf_counter()
            with pretend_service(folder / str(size), 1, spares=1):
                times.append((time.perf_counter() - began) * 1000)
    return found


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
