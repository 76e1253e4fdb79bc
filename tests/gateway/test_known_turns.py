"""What the gateway remembers of sessions: the same as the journal has, whatever happens between two looks."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.openai import known_turns
from gateway.openai.conversation_rule import Branch
from gateway.openai.known_turns import TURNS_MAX, KnownTurns
from ipc.messages import Show, Table


class Journal:
    """The table `history` of one session, in pages, as the supervisor answers for it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.number = 0
        self.rows_read = 0

    def add(self, state: str = "done", is_past: bool = False) -> None:
        self.end_open()
        self.number += not is_past
        turn = "" if is_past else f"s/{self.number}"
        text = f"text {self.number}"
        self.rows.append({"turn": turn, "state": state, "messages": [{"text": "x"}], "text": text})

    def end_open(self) -> None:
        if self.rows and self.rows[-1]["state"] == "running":
            self.rows[-1] = self.rows[-1] | {"state": "interrupted", "text": "longer"}

    async def ask(self, request: Show, kind: type[Table]) -> Table:
        newest_first = self.rows[::-1]
        begin = int(request.after or 0)
        page = newest_first[begin : begin + request.limit]
        self.rows_read += len(page)
        end = begin + len(page)
        return kind(tuple(page), str(end) if end < len(newest_first) else "")


def look(turns: KnownTurns) -> Branch | None:
    return asyncio.run(turns.of("s"))


def fresh(journal: Journal) -> Branch | None:
    return look(KnownTurns(journal))  # type: ignore[arg-type]


_STEPS = st.lists(
    st.sampled_from(["done", "failed", "running", "prune", "forget", "many", "look"]), max_size=20
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 3), _STEPS)
def test_what_is_remembered_is_what_the_journal_has(past: int, steps: list[str]) -> None:
    """Of pruned turns it may have more: those that were read before."""
    journal = Journal()
    turns = KnownTurns(journal)  # type: ignore[arg-type]
    for _ in range(past):
        journal.add("past", is_past=True)
    for step in steps:
        match step:
            case "prune":
                journal.rows = journal.rows[1:] if journal.number else journal.rows
            case "forget":
                journal.rows, journal.number = [], journal.number
            case "many":
                for _ in range(60):
                    journal.add()
            case "look":
                pass
            case state:
                journal.add(state)
        if step != "done":
            assert_agrees(look(turns), fresh(journal))


def assert_agrees(found: Branch | None, wanted: Branch | None) -> None:
    if found is None or wanted is None:
        assert found == wanted
        return
    assert len(found.turns) <= TURNS_MAX
    assert found.turns[-len(wanted.turns) :] == wanted.turns
    assert not wanted.is_whole or found.is_whole or len(found.turns) > len(wanted.turns)


def test_a_long_session_is_read_once() -> None:
    journal = Journal()
    turns = KnownTurns(journal)  # type: ignore[arg-type]
    for _ in range(150):
        journal.add()
    first = look(turns)
    assert first is not None
    assert (len(first.turns), first.is_whole, journal.rows_read) == (150, True, 150)
    journal.add("running")
    look(turns)
    look(turns)
    assert journal.rows_read <= 150 + 2 * 4


def test_of_many_sessions_those_are_kept_that_were_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    turns = KnownTurns(journal)  # type: ignore[arg-type]
    journal.add()
    # One message and one text.
    monkeypatch.setattr(known_turns, "_KEPT_CHARACTERS_MAX", 2 * len("x" + "text 1"))
    for session in ("a", "b", "a", "c"):
        asyncio.run(turns.of(session))
    assert list(turns._kept) == ["a", "c"]
    # One whose turns are gone makes room.
    journal.rows = []
    assert asyncio.run(turns.of("a")) is None
    assert list(turns._kept) == ["c"]
    assert turns._characters == len("x" + "text 1")
