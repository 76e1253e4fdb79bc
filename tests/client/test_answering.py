"""The turn that answers a message, told from events alone."""

from typing import Any

import pytest

from client.answering import Answering, Outcome, outcome, why_given_up
from ipc.messages import Delta, Event


def event(type: str, **fields: Any) -> Event:
    return Event(1, "demo", type, 0.0, fields)


@pytest.mark.parametrize(
    "taken",
    [
        event("turn.opened", turn="demo/2", messages=["m_other", "m_mine"]),
        event("turn.joined", turn="demo/2", messages=["m_mine"]),
        event("turn.steered", turn="demo/2", message="m_mine"),
        event("question.answered", turn="demo/2", message="m_mine"),
    ],
    ids=lambda taken: str(taken.type),
)
def test_the_event_that_takes_a_message_names_its_turn(taken: Event) -> None:
    answering = Answering("m_mine")
    assert not answering.take(event("tool.started", turn="demo/2"))
    assert answering.take(taken)
    assert answering.turn == "demo/2"
    assert answering.take(event("tool.started", turn="demo/2"))
    assert not answering.take(event("turn.done", turn="demo/1"))


def test_an_event_that_names_the_message_takes_it_nowhere_by_itself() -> None:
    answering = Answering("m_mine")
    assert answering.take(event("message.accepted", message="m_mine"))
    assert answering.turn is None


def test_events_of_other_messages_are_not_its_own() -> None:
    answering = Answering("m_mine")
    assert not answering.take(event("turn.opened", turn="demo/1", messages=["m_other"]))
    assert not answering.take(event("session.held"))
    assert answering.turn is None


def test_an_answer_begins_where_the_turn_had_arrived() -> None:
    answering = Answering("m_mine")
    assert not answering.take_delta(Delta("demo", "demo/1", 1, 10, "four"))
    assert answering.take(event("turn.steered", turn="demo/1", message="m_mine"))
    assert answering.begins_at == 14
    assert answering.take_delta(Delta("demo", "demo/1", 1, 14, "more"))


def test_a_turn_that_names_its_message_again_answers_from_the_same_place() -> None:
    answering = Answering("m_mine")
    answering.take_delta(Delta("demo", "demo/1", 1, 0, "four"))
    answering.take(event("turn.steered", turn="demo/1", message="m_mine"))
    answering.take_delta(Delta("demo", "demo/1", 1, 4, " more"))
    assert answering.take(event("turn.joined", turn="demo/1", messages=["m_mine", "m_other"]))
    assert (answering.turn, answering.begins_at) == ("demo/1", 4)


def test_a_message_that_a_second_turn_takes_follows_that_one() -> None:
    answering = Answering("m_mine")
    answering.take(event("turn.steered", turn="demo/1", message="m_mine"))
    answering.take(event("turn.opened", turn="demo/2", messages=["m_mine"]))
    assert answering.turn == "demo/2"
    assert answering.begins_at == 0


@pytest.mark.parametrize(
    ("type", "end"),
    [
        ("turn.done", "done"),
        ("turn.interrupted", "interrupted"),
        ("turn.failed", "failed"),
        ("message.dropped", "given up"),
        ("message.refused", "given up"),
        ("transcript.failed", "given up"),
        ("attempt.lost", None),
    ],
)
def test_few_events_end_a_message(type: str, end: Outcome | None) -> None:
    assert outcome(event(type)) == end


def test_a_message_that_was_given_up_has_a_reason() -> None:
    assert why_given_up({"reason": "no words", "hint": "speak"}) == ("no words", "speak")
    assert why_given_up({"error": "full"}) == ("full", "send it again")
    assert why_given_up({"by": "anna"}) == ("dropped by anna", "send it again")
