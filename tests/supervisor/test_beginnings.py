"""The turns with which a session begins: the newest of a request that fit, or those of another session."""

import pytest

from ipc.messages import Begin, Exchange, Refused
from supervisor.clients.beginnings import beginning
from supervisor.core.events import BeginAsked
from supervisor.journal.history import TurnPast
from supervisor.journal.reader import AskedOf
from tests.memory_journal import MemoryJournal

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("count", "characters", "kept"), [(3, 10, 3), (250, 10, 200), (6, MIB // 4, 3), (2, 2 * MIB, 0)]
)
def test_the_newest_turns_that_fit_are_kept_in_their_order(count: int, characters: int, kept: int) -> None:
    turns = tuple(Exchange(f"question {number} {'x' * characters}", "answer") for number in range(count))
    asked = beginning(Begin("s", "k", turns), MemoryJournal())  # type: ignore[arg-type]
    assert isinstance(asked, BeginAsked)
    found = [int(turn.partition("question ")[2].split()[0]) for turn in asked.turns]
    assert found == list(range(count - kept, count))
    assert sum(len(turn.encode()) for turn in asked.turns) <= MIB


class Origin:
    """A journal with a session of three turns, of which two have ended."""

    def session_seq(self, session: str) -> int:
        return 9 if session == "origin" else 0

    def asked_of(self, turn: str) -> AskedOf | None:
        state = {"origin/1": "done", "origin/2": "interrupted", "origin/3": "running"}.get(turn)
        return AskedOf("origin", state, ("hello",), "", "") if state else None

    def history(self, session: str, before_turn: int, turns_max: int, bytes_max: int) -> list[TurnPast]:
        return [TurnPast(f"{session}/{number}", number, ("hello",), ()) for number in range(1, before_turn)]


@pytest.mark.parametrize("number", [1, 2])
def test_a_copy_has_all_turns_through_the_one_that_was_named(number: int) -> None:
    asked = beginning(Begin("copy", "k", from_session="origin", through_turn=number), Origin())
    assert isinstance(asked, BeginAsked)
    assert len(asked.turns) == number
    assert (asked.origin, asked.through) == ("origin", number)


@pytest.mark.parametrize(("number", "code"), [(3, "conflict"), (4, "unknown")])
def test_a_turn_that_has_not_ended_or_is_not_there_is_not_copied(number: int, code: str) -> None:
    refused = beginning(Begin("copy", "k", from_session="origin", through_turn=number), Origin())
    assert isinstance(refused, Refused)
    assert refused.code == code
