"""The transition tables in the core's docstrings are what the stories do: no row more, no row less.

Turns, attempts and messages are observed in a real journal, into which the records of every story are written
one by one. Workers are not durable: the state of each is observed where it is assigned.
"""

import inspect
import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from supervisor.core import inbox, pool, turns
from supervisor.core.records import Record
from supervisor.core.state import Worker
from supervisor.journal.journal import connect
from supervisor.journal.migrate import migrate
from supervisor.journal.writer import Writer
from tests.core.story import played
from tests.world import World

# What was there before, what changed it, what is there now.
Transition = tuple[str, str, str]

_STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))
_NONE = "-"
_STATES = {
    "turn": "SELECT id, state FROM turns WHERE session = ?",
    "attempt": "SELECT turn || '#' || attempts.number, attempts.state FROM attempts JOIN turns ON id = turn "
    "WHERE session = ?",
    "message": "SELECT id, state FROM messages WHERE session = ?",
}


def _table(module: ModuleType, noun: str) -> set[Transition]:
    """The rows of the table with this noun in its first column; a cell may name several states."""
    lines = iter((inspect.getdoc(module) or "").splitlines())
    for line in lines:
        if line.startswith(f"| {noun} |"):
            break
    assert next(lines).startswith("| --- |"), f"{module.__name__} has no table for {noun}"
    rows: list[Transition] = []
    for line in lines:
        if not line.startswith("|"):
            break
        before, causes, after = [re.findall(r"[\w.-]+", cell) for cell in line.strip("|").split("|")[:3]]
        rows += [(state, cause, next_state) for state in before for cause in causes for next_state in after]
    assert len(rows) == len(set(rows)), f"a row of the table for {noun} stands twice"
    return set(rows)


@cache
def _empty() -> sqlite3.Connection:
    """A journal as it begins: a copy costs a tenth of the migration."""
    connection = connect(":memory:")
    migrate(connection, "in memory")
    return connection


def _recorded(world: World) -> Iterator[tuple[str, Transition]]:
    """What each record of a story changes in the journal."""
    connection = connect(":memory:")
    _empty().backup(connection)
    writer = Writer(connection, "in memory")

    def states(noun: str, record: Record) -> dict[str, str]:
        return dict(connection.execute(_STATES[noun], (record.session,)).fetchall())

    for record in (record for step in world.steps for record in step.decision.records):
        before = {noun: states(noun, record) for noun in _STATES}
        writer.write([record])
        for noun, old in before.items():
            for key, state in states(noun, record).items():
                if old.get(key) != state:
                    yield noun, (old.get(key, _NONE), type(record).__name__, state)
    connection.close()


class _Watched:
    """In the place of a slot: keeps which function changed it, from what to what."""

    def __init__(self, slot: Any) -> None:
        self._slot = slot
        self.seen: set[Transition] = set()

    def __get__(self, worker: Any, owner: Any) -> Any:
        return self if worker is None else self._slot.__get__(worker, owner)

    def __set__(self, worker: Any, state: str) -> None:
        before = getattr(worker, "state", _NONE)
        self._slot.__set__(worker, state)
        if before != state:
            self.seen.add((str(before), _caller(inspect.currentframe()), str(state)))


def _caller(frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_name in ("__set__", "__init__"):
        frame = frame.f_back
    assert frame is not None
    return f"{frame.f_globals['__name__'].rpartition('.')[2]}.{frame.f_code.co_name}"


@cache
def _observed() -> dict[str, set[Transition]]:
    found: dict[str, set[Transition]] = {noun: set() for noun in _STATES}
    with pytest.MonkeyPatch.context() as patch:
        watched = _Watched(vars(Worker)["state"])
        patch.setattr(Worker, "state", watched)
        for path in _STORIES:
            _, world = played(path.read_text())
            for noun, transition in _recorded(world):
                found[noun].add(transition)
    return found | {"worker": watched.seen}


@pytest.mark.parametrize(
    ("module", "noun"),
    [(turns, "turn"), (turns, "attempt"), (inbox, "message"), (pool, "worker")],
    ids=lambda value: value if isinstance(value, str) else value.__name__.rpartition(".")[2],
)
def test_the_table_has_every_transition_and_no_other(module: ModuleType, noun: str) -> None:
    assert _table(module, noun) == _observed()[noun]
