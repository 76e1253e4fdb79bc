"""Rows that belong to an attempt when it goes on or ends: its pieces of text, calls and questions."""

from dataclasses import replace
from typing import Any

import pytest

from supervisor.core.records import QuestionAnswered, QuestionAsked, Record
from supervisor.journal.journal import Journal
from tests.journal.test_fences import (
    DONE,
    LOST,
    RUNNING,
    SECOND,
    SPOKE,
    STOPPED,
    TOOL,
    TOOL_END,
    renumbered,
)

_OF_QUESTION: dict[str, Any] = {
    "session": "s",
    "turn": "s/1",
    "attempt": 1,
    "question": "s/1#1",
    "kind": "clarify",
    "choices": (),
    "call": "c",
}
ASKED = QuestionAsked(at=6.0, seq=6, number=1, text="which one?", hold=5, **_OF_QUESTION)
ANSWERED = QuestionAnswered(at=7.0, seq=7, text="that one", by="me", is_held=True, **_OF_QUESTION)
HOLDING = (*RUNNING, TOOL, replace(TOOL, seq=5, call="d"), ASKED)


def calls(journal: Journal) -> list[tuple[str, str]]:
    found = journal._writing.execute("SELECT call, state FROM tool_calls ORDER BY position")
    return [(call, state) for call, state in found]


def question(journal: Journal) -> str:
    (found,) = journal._writing.execute("SELECT state FROM questions")
    return str(found[0])


def test_the_calls_of_an_attempt_that_holds_for_an_answer_stay_open(journal: Journal) -> None:
    journal.commit_now(HOLDING)
    assert (question(journal), calls(journal)) == ("open", [("c", "started"), ("d", "started")])
    journal.commit_now([ANSWERED])
    assert (question(journal), calls(journal)) == ("answered", [("c", "started"), ("d", "started")])


@pytest.mark.parametrize("end", [STOPPED, renumbered(DONE, 7)])
def test_an_attempt_that_ends_while_it_holds_takes_its_question_back(journal: Journal, end: Record) -> None:
    journal.commit_now((*HOLDING, end))
    assert question(journal) == "withdrawn"


def test_a_call_whose_id_comes_again_ends_once(journal: Journal) -> None:
    journal.commit_now((*RUNNING, TOOL, renumbered(TOOL, 5), renumbered(TOOL_END, 6)))
    assert calls(journal) == [("c", "unknown"), ("c", "finished")]


def test_the_pieces_of_an_answer_go_when_it_is_whole_and_those_of_earlier_attempts_stay(
    journal: Journal,
) -> None:
    again = (LOST, SECOND, replace(SPOKE, attempt=2), replace(DONE, seq=6, attempt=2))
    journal.commit_now((*RUNNING, SPOKE, *again))
    assert journal._writing.execute("SELECT attempt FROM texts").fetchall() == [(1,)]
