"""The turns of a request with which a session begins: the newest that fit, in their order."""

import pytest

from ipc.messages import Begin, Exchange
from supervisor.clients.beginnings import beginning
from supervisor.core.events import BeginAsked
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
