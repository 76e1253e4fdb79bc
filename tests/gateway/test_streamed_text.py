"""The text of the open turn, for readers that join: what stands of it, and of no other turn or attempt."""

from typing import Any

from gateway.streamed_text import StreamedText
from ipc.messages import Delta, Event


def event(type: str, turn: str = "s/1", **fields: Any) -> Event:
    return Event(1, "s", type, 1.0, {"turn": turn, **fields})


def delta(offset: int, text: str, attempt: int = 1, turn: str = "s/1") -> Delta:
    return Delta("s", turn, attempt, offset, text)


def joined(*messages: Event | Delta) -> Delta | None:
    streamed = StreamedText()
    for message in messages:
        streamed.take(message)
    return streamed.delta("s")


def test_deltas_are_joined_and_what_comes_twice_is_there_once() -> None:
    assert joined() is None
    assert joined(delta(0, "one "), delta(4, "two")) == delta(0, "one two")
    assert joined(delta(0, "one "), delta(4, "two"), delta(4, "two three")) == delta(0, "one two three")


def test_a_turn_that_has_ended_has_no_text() -> None:
    for end in ("turn.done", "turn.failed", "turn.interrupted"):
        assert joined(delta(0, "one"), event(end)) is None
    assert joined(delta(0, "one"), event("tool.started")) == delta(0, "one")


def test_what_was_streamed_beyond_a_lost_attempt_is_void() -> None:
    lost = event("attempt.lost", offset=4)
    assert joined(delta(0, "one two"), lost) == delta(0, "one ")
    assert joined(delta(0, "one two"), lost, delta(4, "deux", 2)) == delta(0, "one deux", 2)
    assert joined(delta(0, "one two"), event("attempt.lost", offset=0)) is None
    other = event("attempt.lost", turn="s/2", offset=0)
    assert joined(delta(0, "one two"), other) == delta(0, "one two")


def test_behind_a_gap_and_in_the_next_turn_the_text_begins_again() -> None:
    assert joined(delta(0, "one"), delta(9, "far"), delta(12, " on")) == delta(9, "far on")
    assert joined(delta(9, "far"), delta(0, "one")) == delta(0, "one")
    assert joined(delta(0, "one"), delta(3, "two", turn="s/2")) == delta(3, "two", turn="s/2")
    # Nothing of it stands before the place where it begins.
    assert joined(delta(9, "far"), event("attempt.lost", offset=8)) is None
