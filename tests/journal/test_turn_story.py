"""The story of a turn or a message from the events of its session: where it begins, pauses and ends."""

from collections.abc import Sequence
from typing import Any

from ipc.messages import Event
from supervisor.journal.turn_story import events

_NOISE = 6_000


class Feed:
    """Events of a session by their type and fields; `read` are the pages that were read, by their place."""

    def __init__(self, *told: tuple[str, dict[str, Any]]) -> None:
        self._events = [Event(seq, "demo", kind, 0.0, fields) for seq, (kind, fields) in enumerate(told, 1)]
        self.read: list[int] = []

    def page(self, session: str, after: int, limit: int) -> Sequence[Event]:
        self.read.append(after)
        return self._events[after : after + limit]

    def story(self, messages: set[str], turn: str = "", after: int = 0) -> list[str | int]:
        """The types of its events, or the seq where it pauses."""
        found = events("demo", after, messages, turn, self.page)
        return [seq if row is None else row["type"] for row, seq in found]


ACCEPTED = ("message.accepted", {"message": "m_1"})
DROPPED = ("message.dropped", {"message": "m_1"})
OTHER = ("tool.started", {"turn": "demo/7"})


def test_the_story_of_a_message_without_a_turn_ends_with_the_message() -> None:
    feed = Feed(ACCEPTED, ("message.dropped", {"message": "m_2"}), DROPPED, *[OTHER] * _NOISE)
    assert feed.story({"m_1"}) == ["message.accepted", "message.dropped"]
    assert feed.read == [0]


def test_the_end_of_one_message_is_not_that_of_its_turn() -> None:
    turn = {"turn": "demo/1"}
    feed = Feed(ACCEPTED, DROPPED, ("turn.opened", turn), OTHER, ("turn.done", turn), ("turn.noted", turn))
    assert feed.story({"m_1", "m_2"}, "demo/1") == [ACCEPTED[0], DROPPED[0], "turn.opened", "turn.done"]


def test_a_story_pauses_after_five_thousand_events_and_goes_on_there() -> None:
    feed = Feed(ACCEPTED, *[OTHER] * _NOISE, DROPPED)
    assert feed.story({"m_1"}) == ["message.accepted", 5_000]
    assert feed.story({"m_1"}, after=5_000) == ["message.dropped"]
