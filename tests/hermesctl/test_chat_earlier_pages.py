"""Reading back in a chat: one page at a time, into its own session, to the beginning or the limit."""

from pathlib import Path

import pytest

from hermesctl.chat import conversation as bounds
from hermesctl.chat.conversation import Conversation
from hermesctl.chat.earlier_events import PAGE_EVENTS, page
from hermesctl.chat.scroll import View
from hermesctl.errors import CommandError
from ipc.messages import Answer, Event, Request, Subscribe, Subscribed
from ipc.places import find_places
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.test_chat_late_answers import Apart


@pytest.fixture
def bench(tmp_path: Path) -> Apart:
    """A chat that begins in the middle of its session."""
    bench = Apart(tmp_path)
    bench.story.seq = 500
    bench.happens("session.released")
    return bench


def events(first: int, count: int, session: str = "demo") -> list[Event]:
    story = Story(session, first - 1)
    return [story.event("session.released") for _ in range(count)]


def ended(bench: Apart, found: list[Event] | CommandError) -> None:
    _, then = bench.begun.pop(0)
    then(found)


def test_one_page_is_read_at_a_time_and_again_after_a_failure(bench: Apart) -> None:
    for _ in range(3):
        bench.controller.read_earlier()
    assert len(bench.begun) == 1
    ended(bench, CommandError("the supervisor did not answer", "try again", 6))
    assert "did not answer" in bench.notice
    bench.controller.read_earlier()
    ended(bench, events(101, 400))
    assert bench.controller.current.log.first_seq == 101
    bench.controller.read_earlier()
    assert len(bench.begun) == 1


def test_where_the_journal_was_pruned_is_the_beginning(bench: Apart) -> None:
    bench.controller.read_earlier()
    ended(bench, [])
    bench.controller.read_earlier()
    assert bench.begun == []


def test_a_page_goes_to_the_session_that_it_is_of(bench: Apart) -> None:
    bench.controller.read_earlier()
    bench.controller.switch("other")
    ended(bench, events(101, 400))
    assert bench.controller.current.log.first_seq == 0
    assert bench.controller.conversations["demo"].log.first_seq == 101


def test_a_page_ends_before_what_is_shown_and_is_empty_where_all_was_pruned(tmp_path: Path) -> None:
    kept = events(1, 600)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        assert isinstance(request, Subscribe)
        assert request.after is not None
        return [Subscribed(600), *(each for each in kept if each.seq > request.after)]

    places = find_places(str(tmp_path))
    with opened(tmp_path, reply) as peer:
        found = page(places, "demo", 500)
        assert [each.seq for each in found] == list(range(500 - PAGE_EVENTS, 500))
        assert [each.seq for each in page(places, "demo", 3)] == [1, 2]
        del kept[:520]
        assert page(places, "demo", 521) == []
        assert [each.after for each in peer.requests(Subscribe)] == [499 - PAGE_EVENTS, 0, 520 - PAGE_EVENTS]


def test_events_put_before_never_push_out_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "EVENTS_MAX", 6)
    conversation = Conversation("demo")
    for event in events(11, 4):
        conversation.take(event)
    assert not conversation.reaches_the_limit
    conversation.put_before(events(7, 4))
    assert conversation.reaches_the_limit
    # The page was on its way when the last event came.
    conversation.put_before(events(5, 4))
    log = conversation.log
    assert (log.first_seq, log.seq) == (9, 14)
    for event in events(15, 6):
        conversation.take(event)
    conversation.put_before([])
    assert (conversation.log.first_seq, conversation.log.seq) == (15, 20)


def test_a_turn_that_began_before_the_chat_is_whole_with_the_page_of_its_beginning() -> None:
    story = Story()
    first = [
        story.event("message.accepted", message="m_1", text="hello", kind="text", busy="queue"),
        story.event("turn.opened", turn="demo/1", messages=["m_1"]),
        story.event("tool.started", turn="demo/1", call="c1", name="shell", summary="ls"),
        story.event("tool.finished", turn="demo/1", call="c1", name="shell", ok=True, ms=5),
    ]
    conversation = Conversation("demo")
    conversation.take(story.event("turn.done", turn="demo/1", text="ok", usage={}))
    conversation.put_before(first)
    turn = conversation.log.turns["demo/1"]
    assert (turn.messages, [tool.state for _, tool in turn.tools()], turn.text) == (("m_1",), ["ok"], "ok")


def test_what_is_held_stays_held_with_an_earlier_page() -> None:
    conversation = Conversation("demo")
    for event in events(11, 4):
        conversation.take(event)
    conversation.log.take_queue([{"message": "m_1", "text": "early", "held": True}])
    conversation.put_before(events(7, 4))
    assert [each.id for each in conversation.log.waiting] == ["m_1"]
    assert conversation.log.is_held


class Reader:
    """A window of ten lines on a chat."""

    def __init__(self, bench: Apart) -> None:
        self.view = View(bench.controller, lambda: 0.0)

    @property
    def lines(self) -> list[str]:
        content = self.view.create_content(80, 10)
        return ["".join(part[1] for part in content.get_line(at)) for at in range(content.line_count)]


def test_a_person_who_reads_back_keeps_the_place_until_another_session_is_shown(bench: Apart) -> None:
    for number in range(30):
        bench.happens("message.dropped", message=f"m_{number}", by="me")
    story = Story(seq=470)
    earlier = [story.event("journal.repaired", lost=number) for number in range(30)]
    reader = Reader(bench)
    assert len(reader.lines) == 10
    reader.view.scroll(-5)
    before = reader.lines
    bench.happens("journal.repaired", lost=3)
    assert reader.lines == before
    bench.controller.read_earlier()
    ended(bench, earlier)
    assert reader.lines == before
    reader.view.scroll(-1000)
    assert reader.view.is_reading_back
    bench.controller.switch("other")
    assert reader.lines is not None
    assert not reader.view.is_reading_back


def test_the_top_of_a_chat_asks_for_a_page_and_its_end_is_followed_again(bench: Apart) -> None:
    for number in range(30):
        bench.happens("message.dropped", message=f"m_{number}", by="me")
    reader = Reader(bench)
    newest = reader.lines
    reader.view.scroll(-3)
    assert bench.begun == []
    reader.view.scroll(-1000)
    assert len(bench.begun) == 1
    reader.view.scroll(1000)
    assert not reader.view.is_reading_back
    assert reader.lines == newest
