"""A turn of a chat in its second round: another attempt, another question, calls that have one name."""

import pytest

from hermesctl.chat.turn import Question, Tool
from ipc.messages import Noted
from tests.hermesctl.test_chat_session_log import Talk


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.accepts()
    talk.opens()
    return talk


def asks(talk: Talk, number: int) -> None:
    fields = {"turn": "demo/1", "question": f"demo/1#{number}", "kind": "clarify", "choices": []}
    talk.happens("question.asked", **fields, text=f"Which {number}?")


def answers(talk: Talk, number: int, text: str, **more: str) -> None:
    fields = {"turn": "demo/1", "question": f"demo/1#{number}", "text": text, "by": "me", **more}
    talk.happens("question.answered", **fields)


def test_each_question_of_a_turn_keeps_its_own_answer(talk: Talk) -> None:
    for number, text in ((1, "red"), (2, "blue")):
        asks(talk, number)
        answers(talk, number, text)
        talk.tries(number + 1)
    marks = [mark for _, mark in talk.turn.marks if isinstance(mark, Question)]
    assert [mark.answer for mark in marks] == ["red", "blue"]


def test_a_question_takes_the_place_of_no_call_that_has_ended(talk: Talk) -> None:
    talk.starts("c1")
    talk.happens("tool.finished", turn="demo/1", call="c1", name="shell", ok=True, ms=12)
    asks(talk, 1)
    assert "✔ shell  ls  12 ms" in talk.drawn()


def test_a_message_that_answers_a_question_waits_no_longer(talk: Talk) -> None:
    asks(talk, 1)
    talk.accepts("m_2", "red")
    assert [each.id for each in talk.log.waiting] == ["m_2"]
    answers(talk, 1, "red", message="m_2")
    assert talk.log.waiting == []


def test_two_calls_of_one_name_both_end(talk: Talk) -> None:
    for _ in range(2):
        talk.starts("c1")
    for _ in range(2):
        talk.happens("tool.finished", turn="demo/1", call="c1", name="shell", ok=True, ms=12)
    assert [mark.state for _, mark in talk.turn.marks if isinstance(mark, Tool)] == ["ok", "ok"]


def test_a_call_within_words_that_were_taken_back_stands_before_those_that_follow(talk: Talk) -> None:
    talk.speaks(0, "once only and never")
    talk.starts()
    talk.happens("attempt.lost", turn="demo/1", attempt=1, reason="the supervisor ended", offset=9)
    talk.tries(2)
    talk.speaks(9, ", and whole", attempt=2)
    drawn = talk.drawn()
    assert drawn.index("once only") < drawn.index("shell") < drawn.index(", and whole")


def test_words_that_were_shown_stay_when_the_record_of_an_interrupt_has_none(talk: Talk) -> None:
    talk.speaks(0, "half an answer")
    talk.happens("turn.interrupted", turn="demo/1", by="me", partial="", killed={})
    assert "half an answer" in talk.drawn()


def test_a_message_that_joins_a_turn_stands_below_the_first(talk: Talk) -> None:
    talk.accepts("m_2", "and this")
    talk.happens("turn.joined", turn="demo/1", messages=["m_2"])
    assert talk.turn.messages == ("m_1", "m_2")
    assert "❯ hello\n❯ and this" in talk.drawn()


def test_a_message_that_is_taken_back_stands_above_the_turn_that_runs(talk: Talk) -> None:
    talk.speaks(0, "half an")
    talk.accepts("m_2", "second")
    talk.happens("message.dropped", message="m_2", by="me")
    assert talk.log.items[-1] is talk.turn


def test_the_words_of_a_clip_are_not_shown_where_they_are_not_echoed() -> None:
    talk = Talk()
    talk.accepts("m_1", "", kind="voice")
    talk.happens("transcript.ready", message="m_1", text="a secret", echo=False)
    talk.opens("m_1")
    assert "❯ 🎙️ (clip)" in talk.drawn()
    assert "a secret" not in talk.drawn()


def test_the_note_of_a_clip_is_shown_while_it_waits(talk: Talk) -> None:
    talk.accepts("m_2", "", kind="voice")
    talk.conversation.take(Noted("m_2", 1, "half is understood"))
    assert "half is understood" in talk.drawn()
