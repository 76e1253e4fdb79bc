"""From an accepted interrupt to the empty cell, the next attempt and its first word, beside the raw limit.

Ours is the whole service as a client sees it: a message interrupts a turn whose victim idles, spins in C, is
blocked or holds 500 MB, with a warm spare and without one. The limit is the bare act in one process: SIGKILL
through a pidfd until it is dead, one durable row, one round trip to a warm process. Its victim is one process
as warm as a worker; ours is a cell with a worker and the command that the worker runs. Both take turns.
"""

import contextlib
import os
import select
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from bench.limits import echoing
from bench.report import percentile
from hermesctl.client import Client
from ipc.messages import Accepted, Delta, Event, Submit, Subscribe, Subscribed
from ipc.sockets import Wire
from tests.acceptance.sight import shell
from tests.fake_model import FakeModel
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

TITLE = (
    "An interrupt, accepted to cell empty, next attempt and first word, beside a bare kill, commit and hop"
)
ROUNDS = 25
_WARM_UP = 2
_IDLE = "idle"
# What a victim does before and after it says that it is there.
VICTIMS = {
    _IDLE: ("", "signal.pause()"),
    "spinning": ("", "sum(range(10**15))"),
    "blocked": ("", "os.read(os.pipe()[0], 1)"),
    "500 MB": ("hoard = bytearray(b'x') * (500 << 20)", "signal.pause()"),
}
_WITH_A_SPARE = "count = 1\nspares = 1"
_WITHOUT = "count = 1\nspares = 0"
# A person does not notice less than this, however busy the machine.
_ASSIGNED_MS_MAX = 250.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Milliseconds after the interrupt was accepted, as the client was told."""

    empty: float
    assigned: float
    spoken: float
    # Of the first, what the proof says that the kill took.
    killed: float


class AtWorst(Outcome):
    """The same series by their bad ends."""

    @property
    def ratio(self) -> float:
        return percentile(self.ours, 0.99) / percentile(self.limit, 0.99)


def victim(name: str, mark: Path) -> str:
    before, after = VICTIMS[name]
    lines = ("import os, signal", before, f"open({str(mark)!r}, 'w').close()", after)
    return "\n".join(line for line in lines if line)


class Ours:
    """One service; every round is a session of its own."""

    def __init__(self, service: Service, marks: Path) -> None:
        self._service = service
        self._marks = marks
        self._rounds = 0

    def once(self, name: str) -> Seen:
        self._rounds += 1
        session, mark = f"{name}-{self._rounds}", self._marks / f"{self._service.home.name}-{self._rounds}"
        # Every seat has its worker, and the one of the last round has ended.
        until(lambda: {row["state"] for row in self._service.show("workers")} == {"idle"})
        client = Client(self._service.places)
        try:
            follow = client.post(Subscribe(session, 0))
            client.answer_to(follow, Subscribed)
            command = shell(f"exec {sys.executable} -c {shlex.quote(victim(name, mark))}")
            self._service.say(session, "[[stall tokens=1]]" if name == _IDLE else command)
            if name == _IDLE:
                client.answer_to(follow, Delta)
            else:
                until(mark.exists)
            interrupt = client.post(Submit(session, "Go on.", os.urandom(8).hex(), busy="interrupt"))
            client.answer_to(interrupt, Accepted)
            accepted = time.perf_counter()
            return told(client, accepted, f"{session}/2")
        finally:
            client.close()


def told(client: Client, accepted: float, second: str) -> Seen:
    """Listens until the second turn has ended."""
    seen: dict[str, float] = {}
    while arrived := client.receive(DEADLINE_SECONDS):
        now = (time.perf_counter() - accepted) * 1000
        match arrived[1]:
            case Event(type="turn.interrupted", fields=fields):
                assert fields["killed"]["all_dead"], fields
                seen |= {"empty": now, "killed": fields["killed"]["ms"]}
            case Event(type="attempt.opened", fields={"turn": turn}) if turn == second:
                seen["assigned"] = now
            case Delta(turn=turn) if turn == second:
                seen.setdefault("spoken", now)
            case Event(type="turn.done"):
                break
    return Seen(**seen)


class Raw:
    """The limit: nothing but the kill, the row and the round trip."""

    def __init__(self, folder: Path, wire: Wire, path: str) -> None:
        self._marks = folder
        self._victims = subprocess.Popen(
            [sys.executable, "-m", "bench.limits", "victims"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._rounds = 0
        self._warm = wire.blocking(path, "bench")
        self._journal = sqlite3.connect(folder / "raw.db", isolation_level=None)
        self._journal.execute("PRAGMA journal_mode = WAL")
        self._journal.execute("PRAGMA synchronous = FULL")
        self._journal.execute("CREATE TABLE turn (id INTEGER PRIMARY KEY, body BLOB)")

    def once(self, name: str) -> float:
        self._rounds += 1
        mark = self._marks / f"raw-{self._rounds}"
        pidfd = os.pidfd_open(self._start(victim(name, mark)))
        until(mark.exists)
        began = time.perf_counter()
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [])
        self._journal.execute("INSERT INTO turn (body) VALUES (?)", (b"x" * 200,))
        self._warm.send([b"x" * 200])
        assert self._warm.receive(DEADLINE_SECONDS) is not None
        spent = time.perf_counter() - began
        os.close(pidfd)
        return spent * 1000

    def close(self) -> None:
        self._journal.close()
        self._victims.communicate(timeout=DEADLINE_SECONDS)

    def _start(self, program: str) -> int:
        assert self._victims.stdin is not None
        assert self._victims.stdout is not None
        file = self._marks / f"raw-{self._rounds}.py"
        file.write_text(program)
        self._victims.stdin.write(f"{file}\n")
        self._victims.stdin.flush()
        return int(self._victims.stdout.readline())


class Series:
    """What was seen of one victim, in turns."""

    def __init__(self) -> None:
        self.with_spare: list[Seen] = []
        self.without: list[Seen] = []
        self.limit: list[float] = []

    def outcomes(self, name: str) -> list[Outcome]:
        rows: list[Outcome] = []
        for what, seen, goal in (("a spare", self.with_spare, 1.5), ("no spare", self.without, 3.5)):
            empty, assigned = [each.empty for each in seen], [each.assigned for each in seen]
            spoken, killed = [each.spoken for each in seen], [each.killed for each in seen]
            rows += [
                Outcome(f"{name}, {what}: the kill itself", killed, self.limit, "ms", "at most", None),
                Outcome(f"{name}, {what}: cell empty", empty, self.limit, "ms", "at most", 1.5),
                Outcome(
                    f"{name}, {what}: next attempt assigned", assigned, self.limit, "ms", "at most", goal
                ),
                Outcome(f"{name}, {what}: its first word", spoken, self.limit, "ms", "at most", None),
            ]
        empty, assigned = ([each.empty for each in self.with_spare], [e.assigned for e in self.with_spare])
        return [
            *rows,
            AtWorst(f"{name}, a spare: cell empty, p99", empty, self.limit, "ms", "at most", 3),
            AtWorst(f"{name}, a spare: next attempt, p99", assigned, self.limit, "ms", "at most", 3),
        ]


@contextlib.contextmanager
def load() -> Iterator[None]:
    """A process for every processor that never rests."""
    spinners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


@contextlib.contextmanager
def stage(home: Path) -> Iterator[tuple[Ours, Ours, Raw]]:
    """Both services and the limit, side by side; who is not asked rests."""
    wire = Wire()
    marks = home / "marks"
    marks.mkdir()
    marks.chmod(0o777)
    sandbox = f'write = ["{marks}"]'
    with (
        FakeModel() as model,
        Service(home / "spare", settings_for(model, workers=_WITH_A_SPARE, sandbox=sandbox)) as with_spare,
        Service(home / "none", settings_for(model, workers=_WITHOUT, sandbox=sandbox)) as without,
        echoing(home / "echo.sock") as path,
    ):
        raw = Raw(marks, wire, path)
        yield Ours(with_spare, marks), Ours(without, marks), raw
        raw.close()
        wire.close()


def measure(rounds: int) -> list[Outcome]:
    series = {name: Series() for name in VICTIMS}
    loaded: list[Seen] = []
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as (with_spare, without, raw):
        for number in range(rounds + _WARM_UP):
            for name, seen in series.items() if number >= _WARM_UP else [(_IDLE, Series())]:
                seen.with_spare.append(with_spare.once(name))
                seen.limit.append(raw.once(name))
                seen.without.append(without.once(name))
        with load():
            for _ in range(rounds):
                loaded.append(with_spare.once("blocked"))
    worst = max(each.assigned for each in loaded)
    outcomes = [outcome for name, seen in series.items() for outcome in seen.outcomes(name)]
    within = Outcome("loaded machine, a spare: worst", [worst], [_ASSIGNED_MS_MAX], "ms", "at most", 1)
    return [*outcomes, within]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
