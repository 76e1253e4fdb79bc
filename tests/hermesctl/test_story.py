"""The story of a turn: what is left out of it unless texts are asked for, and its last sentence."""

from typing import Any

import pytest

from hermesctl.question_prompt import question_lines
from hermesctl.story import sentences, without_texts


def test_no_text_of_a_person_or_an_agent_is_left() -> None:
    row = {
        "type": "x",
        "text": "abc",
        "partial": "ab",
        "summary": "cat it",
        "choices": ["secret"],
        "ms": 3,
    }
    shown = without_texts(row)
    assert shown == {
        "type": "x", "text": "(3 characters)", "partial": "(2 characters)", "summary": "(6 characters)",
        "ms": 3,
    }  # fmt: skip


def test_an_event_of_a_later_version_is_told_without_its_texts() -> None:
    event = {"type": "new.kind", "at": 1.0, "seq": 1, "session": "demo", "text": "secret", "number": 4}
    first, _ = sentences([{"id": "m_1", "state": "waiting"}, event])
    assert first.endswith("new.kind number=4")


@pytest.mark.parametrize(("attempts", "told"), [(0, ""), (1, ""), (2, " after 2 attempts")])
def test_only_further_attempts_are_told(attempts: int, told: str) -> None:
    summary = {"kind": "turn", "id": "demo/1", "state": "done", "attempts": attempts}
    assert list(sentences([summary])) == [f"turn demo/1 is done{told}"]


@pytest.mark.parametrize("choices", [["yes", "no"], ["yes", "no", "always"]])
def test_always_is_offered_where_it_is_a_choice(choices: list[str]) -> None:
    fields: dict[str, Any] = {"question": "demo/1#1", "turn": "demo/1", "kind": "approve", "text": "May I?"}
    *_, ways = question_lines({**fields, "choices": choices}, False)
    assert ("hermesctl answer 'demo/1#1' always" in ways) == ("always" in choices)
