"""The answer to a message as steps, and a response as numbered events: live, from the journal, resumed."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.openai.answer_steps import AnswerSteps, Asked, End, Lost, Piece, Step
from gateway.openai.response_events import BLOCK, ResponseEvent, ResponseStream
from ipc.messages import Delta, Event

Item = Event | Delta


class Told:
    """The events of a session in which `m` is answered by the turn `s/1`."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._seq = 0

    def event(self, type: str, **fields: Any) -> None:
        self._seq += 1
        self.items.append(Event(self._seq, "s", type, float(self._seq), fields))

    def delta(self, offset: int, text: str, turn: str = "s/1") -> None:
        self.items.append(Delta("s", turn, 1, offset, text))

    def durable(self) -> list[Item]:
        return [item for item in self.items if isinstance(item, Event)]


def opened() -> Told:
    told = Told()
    told.event("message.accepted", message="m", text="hello")
    told.event("turn.opened", turn="s/1", messages=["m"])
    return told


def steps_of(items: list[Item], message: str = "m", recorded: str = "") -> list[Step]:
    """`recorded` is the text that the journal has of the turn."""
    steps, found = AnswerSteps(message), []
    for item in items:
        for step in steps.take(item):
            if isinstance(step, Asked | Lost) and steps.lacks(step):
                found += steps.fill(recorded, step.offset)
            found.append(step)
    return found


def text_of(steps: list[Step]) -> str:
    return "".join(step.text for step in steps if isinstance(step, Piece))


def test_pieces_come_once_and_the_end_brings_what_is_missing() -> None:
    told = opened()
    told.delta(0, "one ")
    told.delta(0, "one two ")
    told.delta(20, "behind a gap")
    told.delta(0, "of another turn", turn="s/9")
    told.event("turn.done", turn="s/1", text="one two three", finish="stop")
    steps = steps_of(told.items)
    assert [step.text for step in steps if isinstance(step, Piece)] == ["one ", "two ", "three"]
    assert isinstance(steps[-1], End)
    assert text_of(steps_of(told.durable())) == "one two three"


def test_after_a_loss_the_text_continues_where_it_stands() -> None:
    told = opened()
    told.delta(0, "one two")
    told.event("attempt.lost", turn="s/1", offset=4, reason="killed")
    told.delta(4, "deux")
    told.event("turn.done", turn="s/1", text="one deux")
    assert steps_of(told.items)[:3] == [Piece("one two", 0), Lost(4), Piece("deux", 4)]


def test_the_answer_to_a_question_begins_behind_the_text_before_it() -> None:
    told = opened()
    told.delta(0, "well")
    told.event("question.asked", turn="s/1", question="s/1#1", text="Which?", choices=["a"], offset=4)
    told.event("message.accepted", message="m2", text="a")
    told.event("question.answered", turn="s/1", question="s/1#1", message="m2", text="a", offset=4)
    told.delta(4, " done")
    told.event("turn.done", turn="s/1", text="well done")
    assert steps_of(told.items)[:2] == [Piece("well", 0), Asked("Which?\n- a", 4)]
    assert text_of(steps_of(told.items, "m2")) == " done"
    assert text_of(steps_of(told.durable(), "m2")) == " done"


def test_a_turn_that_names_its_message_again_does_not_begin_again() -> None:
    told = opened()
    told.delta(0, "one ")
    told.event("turn.joined", turn="s/1", messages=["m", "m2"])
    told.delta(4, "two")
    told.event("turn.done", turn="s/1", text="one two")
    assert text_of(steps_of(told.items)) == "one two"


def test_what_was_lost_before_an_answer_began_is_none_of_it() -> None:
    told = opened()
    told.delta(0, "one two")
    told.event("turn.steered", turn="s/1", message="m2")
    told.event("attempt.lost", turn="s/1", offset=3)
    told.delta(3, " and three")
    told.event("turn.done", turn="s/1", text="one and three")
    steps = steps_of(told.items, "m2")
    assert steps[0] == Lost(7)
    assert text_of(steps) == " three"


def test_a_message_may_end_without_a_turn_or_in_the_middle() -> None:
    told = Told()
    told.event("message.accepted", message="m", text="x")
    told.event("message.dropped", message="m", by="anna")
    (end,) = steps_of(told.items)
    assert isinstance(end, End)
    assert end.outcome == "given up"
    cut = opened()
    cut.event("turn.interrupted", turn="s/1", by="anna", partial="half", killed={"all_dead": True})
    steps = steps_of(cut.items)
    assert steps[0] == Piece("half", 0)
    response = ResponseStream("resp_1", {})
    for step in steps:
        response.take(step)
    shown = response.response()
    assert (shown["status"], shown["killed"]) == ("cancelled", {"all_dead": True})
    assert [item["status"] for item in shown["output"]] == ["incomplete"]


def events_of(items: list[Item], after: int = -1) -> list[ResponseEvent]:
    response = ResponseStream("resp_1", {"model": "x"}, after=after)
    events = response.begin()
    recorded = items[-1].fields["text"] if isinstance(items[-1], Event) else ""
    for step in steps_of(items, recorded=recorded):
        events += response.take(step)
    return events


@st.composite
def turns(draw: st.DrawFn) -> Told:
    """A turn of several attempts, whose texts are streamed in pieces and recorded up to some place."""
    told, stands = opened(), ""
    for attempt in range(draw(st.integers(1, 4))):
        text = draw(st.text("abc 🙂", max_size=8))
        at = 0
        while at < len(text):
            size = draw(st.integers(1, 4))
            told.delta(len(stands) + at, text[at : at + size])
            at += size
        if attempt < 3 and draw(st.booleans()):
            kept = draw(st.integers(0, len(text)))
            stands += text[:kept]
            told.event("attempt.lost", turn="s/1", offset=len(stands), reason="killed")
        else:
            stands += text
            break
    told.event("turn.done", turn="s/1", text=stands, finish="stop", usage={"input_tokens": 1})
    return told


def rebuilt(events: list[ResponseEvent]) -> str:
    """What a client has that takes an item as done says it is."""
    items: dict[int, str] = {}
    for event in events:
        index = event.fields.get("output_index", 0)
        if event.type == "response.output_text.delta":
            items[index] = items.get(index, "") + event.fields["delta"]
        elif event.type == "response.output_text.done":
            items[index] = event.fields["text"]
    return "".join(items.values())


@settings(max_examples=200, deadline=None)
@given(turns(), st.data())
def test_a_stream_resumes_anywhere_by_whatever_it_is_made_of(told: Told, data: st.DataObject) -> None:
    """Numbers grow, and a stream made of the journal alone continues one that was made of deltas."""
    live, stored = events_of(told.items), events_of(told.durable())
    whole = live[-1].fields["response"]["output"]
    text = told.items[-1].fields["text"]  # type: ignore[union-attr]
    assert "".join(item["content"][0]["text"] for item in whole) == text
    for events in (live, stored):
        numbers = [event.number for event in events]
        assert numbers == sorted(set(numbers))
        assert rebuilt(events) == text
        assert events[-1].type == "response.completed"
    cut = data.draw(st.integers(0, len(live) - 1))
    again = events_of(told.durable(), live[cut].number)
    rest = [left for event in again if (left := event.after(live[cut].number)) is not None]
    assert rebuilt([*live[: cut + 1], *rest]) == text
    assert not rest or rest[0].number > live[cut].number


def test_a_delta_is_cut_where_the_client_has_read_to() -> None:
    delta = ResponseEvent(BLOCK + 10 + 8, "response.output_text.delta", {"delta": "efgh"})
    assert delta.after(BLOCK + 10 + 8) is None
    assert delta.after(BLOCK + 10 + 4) is delta
    left = delta.after(BLOCK + 10 + 6)
    assert left is not None
    assert left.fields["delta"] == "gh"
