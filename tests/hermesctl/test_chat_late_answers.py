"""The chat when answers come late, twice or not at all, and when another session is shown meanwhile."""

from pathlib import Path

import pytest

from hermesctl.chat.connection import Answered, Connected, Disconnected
from hermesctl.chat.controller import OUTGOING_MAX, Then, Work
from ipc.messages import Accepted, Answer, Done, Interrupt, Queue, Refused, Show, Submit, Table
from tests.hermesctl.test_chat_controller import Bench


class Apart(Bench):
    """Work beside the loop ends when the test says so."""

    def __init__(self, home: Path) -> None:
        self.begun: list[tuple[Work, Then]] = []
        super().__init__(home)

    def _run_apart(self, work: Work, then: Then) -> None:
        self.begun.append((work, then))

    def ends(self) -> None:
        work, then = self.begun.pop(0)
        then(work())


@pytest.fixture
def bench(tmp_path: Path) -> Apart:
    return Apart(tmp_path)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "note.ogg"
    path.write_bytes(b"sound")
    return path


def clips(bench: Bench) -> list[Path]:
    return list(bench.controller.places.clips.iterdir())


def test_an_answer_that_comes_twice_counts_once(bench: Apart) -> None:
    answers: list[Answer] = []
    bench.controller.ask(Queue("demo", "clear"), answers.append)
    for _ in range(2):
        bench.answers(Done())
    assert answers == [Done()]


def test_the_pages_of_a_table_are_read_until_there_is_enough(bench: Apart) -> None:
    answers: list[Answer] = []
    bench.controller.ask(Show("questions", limit=4), answers.append)
    bench.answers(Table(({"row": 1}, {"row": 2}), "two"))
    assert bench.posted[-1][1] == Show("questions", limit=4, after="two")
    assert answers == []
    bench.answers(Table(({"row": 3}, {"row": 4}), "four"))
    assert answers == [Table(tuple({"row": number} for number in range(1, 5)), "four")]
    assert len(bench.posted) == 2


def test_a_message_whose_event_comes_before_its_answer_does_not_wait_below(bench: Apart) -> None:
    bench.controller.enter("hello")
    bench.runs()
    bench.answers(Accepted("m_1", 1))
    assert bench.controller.current.outgoing == []


def test_a_message_whose_event_was_never_read_is_known_by_the_queue(bench: Apart) -> None:
    bench.controller.enter("hello")
    bench.answers(Accepted("m_1", 1))
    bench.controller.handle(Connected("demo"))
    asked = next(ticket for ticket, request in bench.posted if request == Queue("demo"))
    bench.controller.handle(Answered(asked, Table(({"message": "m_1", "text": "hello"},))))
    assert bench.controller.current.outgoing == []


def test_a_message_that_is_refused_after_a_change_of_session_is_removed_from_its_own(bench: Apart) -> None:
    bench.controller.enter("hello")
    sent = bench.posted[-1][0]
    bench.controller.switch("other")
    bench.controller.enter("hello")
    bench.controller.handle(Answered(sent, Refused("the queue is full", "wait")))
    assert "“hello” was not taken" in bench.notice
    assert [len(each.outgoing) for each in bench.controller.conversations.values()] == [0, 1]


def test_an_interrupt_without_effect_can_be_asked_for_again(bench: Apart) -> None:
    bench.runs()
    assert bench.controller.interrupt()
    bench.answers(Refused("the journal is full", "free space"))
    assert bench.controller.interrupt()
    # The next one is lost with the supervisor.
    bench.controller.handle(Disconnected())
    posted = len(bench.posted)
    assert not bench.controller.interrupt(again=True)
    assert len(bench.posted) == posted
    bench.controller.handle(Connected("demo"))
    assert bench.controller.interrupt()


def test_the_queue_can_be_emptied_while_the_turn_is_being_interrupted(bench: Apart) -> None:
    bench.runs()
    assert bench.controller.interrupt()
    assert bench.controller.interrupt(drop=True)
    assert bench.last(Interrupt).drop


def test_a_clip_is_not_sent_to_the_session_that_a_person_has_gone_to(bench: Apart, sound: Path) -> None:
    bench.controller.enter(f"/voice {sound}")
    bench.controller.switch("other")
    bench.ends()
    assert "was not sent\nhint: say /voice in demo again" in bench.notice
    assert clips(bench) == [] == [each for _, each in bench.posted if isinstance(each, Submit)]


def test_a_clip_for_which_too_many_messages_wait_is_not_kept(bench: Apart, sound: Path) -> None:
    bench.controller.enter(f"/voice {sound}")
    assert all(bench.controller.enter("x") for _ in range(OUTGOING_MAX))
    bench.ends()
    assert "on their way" in bench.notice
    assert clips(bench) == []


def test_messages_of_every_session_are_missed_at_the_end_and_each_time_anew(bench: Apart) -> None:
    bench.controller.enter("hello")
    bench.controller.switch("other")
    assert bench.controller.unsent == ["hello"]
    bench.controller.leave()
    assert "1 not accepted yet" in bench.notice
    bench.controller.enter("more")
    bench.controller.leave()
    assert "2 not accepted yet" in bench.notice
    assert not bench.controller.is_leaving


def test_what_was_read_before_a_change_of_session_is_no_news_there(bench: Apart) -> None:
    bench.controller.poll(100.0)
    bench.answers(Table(({"session": "demo", "seq": 0},)))
    bench.runs()
    bench.controller.switch("other")
    bench.controller.poll(200.0)
    bench.answers(Table(({"session": "demo", "seq": 3},)))
    assert bench.controller.unread == []


def test_nothing_is_asked_at_intervals_while_the_supervisor_is_away(bench: Apart) -> None:
    bench.controller.handle(Disconnected())
    bench.controller.poll(100.0)
    assert bench.posted == []
    bench.controller.handle(Connected("demo"))
    bench.controller.poll(100.0)
    assert bench.last(Show).what == "sessions"


def test_a_connection_asks_about_the_session_that_it_reads(bench: Apart) -> None:
    bench.controller.switch("other")
    bench.controller.switch("third")
    bench.controller.handle(Connected("other"))
    assert bench.last(Queue) == Queue("other")
