"""A start on a journal of 1,000, 10,000 and 100,000 ended turns with 200 open ones, beside opening it raw.

Ours is the whole service, from its start until its doors are open. The raw side opens the file and selects
the open rows. What a start costs on an empty journal (an interpreter, imports, sockets, the count of a new
life) is the constant: with any history a start may take that and twice the raw time. What it does with its
journal alone (lock, look, open, begin a life, load, recover) is timed too, to explain the rest.
"""

import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.goals import Outcome, rounds_asked, tell
from bench.pretend import SETTINGS
from ipc.places import find_places, is_listening, make_private
from supervisor.core.decide import decide
from supervisor.core.events import Recovered
from supervisor.core.policy import Policy
from supervisor.core.records import AttemptOpened, MessageAccepted, Record, TurnDone, TurnOpened
from supervisor.core.state import Who
from supervisor.journal.journal import Journal
from tests.waiting import DEADLINE_SECONDS, until

TITLE = "A start on a long history with 200 open turns, beside opening the file and selecting them"
ROUNDS = 7
HISTORIES = (1_000, 10_000, 100_000)
_OPEN_TURNS = 200
_TURNS_A_SESSION = 100
_TURNS_A_COMMIT = 500
# A message and an answer of this many characters make 100,000 turns a journal of more than 200 MB.
_TEXT = "It is a long story, and every word of it is kept twice. " * 7
_OPEN_ROWS = """
    SELECT turns.*, messages.* FROM turns JOIN messages ON messages.id = turns.messages ->> 0
    WHERE turns.state IN ('queued', 'running', 'asking')"""


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        homes = {turns: _made(Path(folder) / str(turns), turns) for turns in (0, *HISTORIES)}
        sizes = {turns: find_places(str(home)).journal.stat().st_size for turns, home in homes.items()}
        print(
            " · ".join(f"{turns:,} turns {size / 1e6:,.0f} MB" for turns, size in sizes.items()), flush=True
        )
        rows = [
            {turns: (_recover(home), _raw(home), _start(home)) for turns, home in homes.items()}
            for _ in range(rounds)
        ]
    ours, raw, whole = ({turns: [row[turns][each] for row in rows] for turns in homes} for each in range(3))
    allowed = {
        turns: [empty + 2 * bare for empty, bare in zip(whole[0], raw[turns], strict=True)]
        for turns in HISTORIES
    }
    return [
        *(
            Outcome(f"whole start, {turns:,} turns", whole[turns], allowed[turns], "ms", "at most", 1.0)
            for turns in HISTORIES
        ),
        *(
            Outcome(
                f"of it load and recover, {turns:,} turns", ours[turns], raw[turns], "ms", "at most", None
            )
            for turns in HISTORIES
        ),
    ]


def _recover(home: Path) -> float:
    places = find_places(str(home))
    began = time.perf_counter()
    journal = Journal.open(places.journal, places.lock)
    state = journal.load(Policy())
    decide(state, Recovered(), time.time())
    spent = time.perf_counter() - began
    journal.close()
    assert len(state.sessions) == (_OPEN_TURNS if home.name != "0" else 0)
    return spent * 1000


def _start(home: Path) -> float:
    """Milliseconds from the order to start until the doors are open."""
    places = find_places(str(home))
    with (home / "supervisor.log").open("ab") as log:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "bench.pretend", str(home)], stdout=log, stderr=log)
        try:
            until(lambda: is_listening(places.control))
            return (time.perf_counter() - began) * 1000
        finally:
            # Killed, so that its open turns are open for the next start too.
            process.kill()
            process.wait(DEADLINE_SECONDS)


def _raw(home: Path) -> float:
    began = time.perf_counter()
    with closing(sqlite3.connect(find_places(str(home)).journal)) as connection:
        connection.execute(_OPEN_ROWS).fetchall()
    return (time.perf_counter() - began) * 1000


def _made(home: Path, turns: int) -> Path:
    """A home whose journal was written by our own statements, many turns a commit."""
    home.mkdir()
    (home / "hermes.toml").write_text(SETTINGS.format(seats=1))
    places = find_places(str(home))
    make_private(places.state)
    with closing(Journal.open(places.journal, places.lock)) as journal:
        batch: list[Record] = []
        for index in range(turns):
            batch += _turn(f"past-{index // _TURNS_A_SESSION}", index % _TURNS_A_SESSION + 1)
            if len(batch) >= 4 * _TURNS_A_COMMIT:
                journal.commit_now(batch)
                batch = []
        for index in range(_OPEN_TURNS if turns else 0):
            batch += list(_turn(f"open-{index}", 1))[:2]
        if batch:
            journal.commit_now(batch)
    return home


def _turn(session: str, number: int) -> Iterator[Record]:
    at, seq, turn = time.time(), 4 * (number - 1), f"{session}/{number}"
    message = f"m_{session}_{number}"
    yield MessageAccepted(
        session=session,
        at=at,
        seq=seq + 1,
        message=message,
        key=message,
        kind="text",
        text=_TEXT,
        busy="queue",
    )
    yield TurnOpened(session=session, at=at, seq=seq + 2, turn=turn, number=number, messages=(message,))
    yield AttemptOpened(session=session, at=at, seq=seq + 3, turn=turn, attempt=1, who=Who(1, 0, 1), pid=1)
    yield TurnDone(
        session=session,
        at=at,
        seq=seq + 4,
        turn=turn,
        attempt=1,
        text=_TEXT,
        input_tokens=100,
        output_tokens=100,
    )


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
