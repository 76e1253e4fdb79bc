"""Events fold into what a chat shows: every word once, every ending named. No terminal, no socket."""

import time
from typing import Any

import pytest

from hermesctl.chat.conversation import Conversation
from hermesctl.chat.drawing import Look, item_lines, tail_lines
from hermesctl.chat.session_log import TURNS_MAX, SessionLog
from hermesctl.chat.terminal_text import steady
from hermesctl.chat.turn import Question, Tool, Turn
from ipc.messages import Delta, Event, Noted
from tests.hermesctl.peer import Story

PROOF = {"processes": 3, "all_dead": True, "ms": 4.2, "how": "pidns"}


class Talk:
    """A session in which things happen, folded as they do."""

    def __init__(self) -> None:
        self.story = Story()
        self.conversation = Conversation("demo")

    @property
    def log(self) -> SessionLog:
        return self.conversation.log

    def happens(self, type: str, **fields: Any) -> Event:
        event = self.story.event(type, **fields)
        self.conversation.take(event)
        return event

    def accepts(self, message: str = "m_1", text: str = "hello", **more: Any) -> None:
        fields = {"kind": "text", "busy": "interrupt", **more}
        self.happens("message.accepted", message=message, text=text, **fields)

    def opens(self, *messages: str, turn: str = "demo/1", attempt: int = 1) -> None:
        self.happens("turn.opened", turn=turn, messages=list(messages or ("m_1",)))
        self.tries(attempt, turn)

    def tries(self, attempt: int, turn: str = "demo/1") -> None:
        self.happens("attempt.opened", turn=turn, attempt=attempt, worker=0, pid=7)

    def speaks(self, offset: int, text: str, attempt: int = 1, turn: str = "demo/1") -> None:
        self.conversation.take(Delta("demo", turn, attempt, offset, text))

    def starts(self, call: str = "c1", summary: str = '{"command": "ls"}') -> None:
        self.happens("tool.started", turn="demo/1", call=call, name="shell", summary=summary)

    def asks(self, kind: str = "clarify", choices: tuple[str, ...] = ("red", "blue")) -> None:
        fields = {"turn": "demo/1", "question": "demo/1#1", "kind": kind}
        self.happens("question.asked", **fields, text="Which?", choices=list(choices))

    @property
    def turn(self) -> Turn:
        turn = self.log.last_turn
        assert turn is not None
        return turn

    def drawn(self, *, is_unfolded: bool = False, width: int = 80) -> str:
        look = Look(width, is_unfolded, self.story.event("now").at)
        lines = [line for item in self.log.items for line in item_lines(item, self.log, look)]
        lines += tail_lines(self.conversation, look)
        return "\n".join("".join(text for _, text in line).rstrip() for line in lines)


@pytest.fixture
def talk() -> Talk:
    talk = Talk()
    talk.accepts()
    talk.opens()
    return talk


def test_words_count_once_whatever_the_stream_repeats(talk: Talk) -> None:
    for offset, text in ((0, "one "), (0, "one two "), (4, "two "), (8, "three"), (8, "three")):
        talk.speaks(offset, text)
    assert talk.turn.text == "one two three"


def test_a_gap_waits_for_the_piece_that_closes_it(talk: Talk) -> None:
    talk.speaks(0, "one ")
    talk.speaks(8, "three")
    assert talk.turn.text == "one "
    talk.speaks(0, "one two three")
    assert talk.turn.text == "one two three"


def test_an_event_that_comes_twice_changes_nothing(talk: Talk) -> None:
    event = talk.happens("tool.started", turn="demo/1", call="c1", name="shell", summary="ls")
    talk.log.take(event)
    assert len(talk.turn.marks) == 1


def test_the_whole_text_of_the_end_takes_the_place_of_the_stream(talk: Talk) -> None:
    talk.speaks(0, "one ")
    talk.happens("turn.done", turn="demo/1", text="one two", usage={"output_tokens": 2})
    talk.speaks(7, " echo")
    assert "one two\n" in talk.drawn()
    assert "2 tokens" in talk.drawn()
    assert "echo" not in talk.drawn()
    assert talk.log.open_turn is None


def test_tools_stand_where_they_happened(talk: Talk) -> None:
    talk.speaks(0, "before ")
    talk.starts()
    talk.happens("tool.finished", turn="demo/1", call="c1", name="shell", ok=True, ms=12)
    talk.speaks(7, "after")
    talk.happens("turn.done", turn="demo/1", text="before after", usage={})
    drawn = talk.drawn()
    assert drawn.index("before") < drawn.index("✔ shell  ls  12 ms") < drawn.index("after")


def test_an_answer_goes_on_after_a_lost_attempt_as_if_nothing_had_happened(talk: Talk) -> None:
    talk.speaks(0, "once on")
    talk.happens("attempt.lost", turn="demo/1", attempt=1, reason="the worker died", offset=7)
    assert "attempt 1 was lost: the worker died; it goes on from here" in talk.drawn()
    talk.tries(2)
    talk.speaks(7, "ly, whole", attempt=2)
    talk.happens("turn.done", turn="demo/1", text="once only, whole", usage={"output_tokens": 4})
    drawn = talk.drawn()
    assert "\nonce only, whole\n" in drawn
    assert "· 4 tokens · 1 attempt lost" in drawn
    assert "died" not in drawn


def test_tools_of_a_lost_attempt_keep_their_place(talk: Talk) -> None:
    talk.speaks(0, "before")
    talk.starts()
    talk.happens("attempt.lost", turn="demo/1", attempt=1, reason="the worker died", offset=6)
    talk.tries(2)
    talk.speaks(6, "\n\nafter", attempt=2)
    drawn = talk.drawn()
    assert drawn.index("before") < drawn.index("■ shell  ls  stopped") < drawn.index("after")


def test_words_that_were_shown_and_never_written_down_are_taken_back(talk: Talk) -> None:
    talk.speaks(0, "once only and never")
    talk.starts()
    talk.happens("attempt.lost", turn="demo/1", attempt=1, reason="the supervisor ended", offset=9)
    assert talk.turn.text == "once only"
    talk.tries(2)
    talk.speaks(0, "once only, whole", attempt=2)
    assert talk.turn.text == "once only, whole"


def test_a_cut_answer_keeps_its_words_and_shows_the_proof(talk: Talk) -> None:
    talk.speaks(0, "half an")
    talk.happens("turn.interrupted", turn="demo/1", by="hermesctl", partial="half an answer", killed=PROOF)
    drawn = talk.drawn()
    assert "half an answer" in drawn
    assert "■ cut off" in drawn
    assert "3 processes ended in 4.2 ms, none left (pidns)" in drawn


def test_a_failed_turn_names_the_fault_and_the_remedy(talk: Talk) -> None:
    talk.happens("turn.failed", turn="demo/1", error="the key is wrong", hint="set another", poison=False)
    drawn = talk.drawn()
    assert "the key is wrong" in drawn
    assert "hint: set another · /retry asks again" in drawn


def test_there_is_one_sign_of_life_for_a_running_turn_and_none_without(talk: Talk) -> None:
    assert talk.drawn().count("Esc interrupts") == 1
    talk.starts()
    talk.conversation.take(Noted("demo/1", 1, "3 of 9 files"))
    assert talk.drawn().count("Esc interrupts") == 1
    assert "3 of 9 files" in talk.drawn()
    talk.happens("turn.done", turn="demo/1", text="done", usage={})
    assert "Esc interrupts" not in talk.drawn()


def test_tools_that_run_side_by_side_are_counted_and_keep_their_own_words(talk: Talk) -> None:
    talk.starts("c1", '{"command": "make one"}')
    talk.starts("c2", '{"command": "make two"}')
    talk.conversation.take(Noted("demo/1", 1, "words of the first", "c1"))
    assert "2 tools are running" in talk.drawn()
    unfolded = talk.drawn(is_unfolded=True).splitlines()
    assert [line.strip() for line in unfolded if "make" in line or "words" in line] == [
        "make one",
        "│ words of the first",
        "make two",
    ]
    talk.happens("tool.finished", turn="demo/1", call="c2", name="shell", ok=False, ms=9, exit=2)
    drawn = talk.drawn().splitlines()
    assert [line.split()[0] for line in drawn if "make" in line] == ["·", "✘"]
    assert "shell is running" in talk.drawn()


def test_a_question_takes_the_place_of_the_call_that_asked_it(talk: Talk) -> None:
    talk.starts("ask1")
    talk.asks()
    question = talk.log.question
    assert question is not None
    assert (question.meant_by(" 2 "), question.meant_by("3"), question.meant_by("green")) == (
        "blue",
        "3",
        "green",
    )
    assert [type(mark) for _, mark in talk.turn.marks] == [Question]
    talk.happens(
        "question.answered", turn="demo/1", question="demo/1#1", kind="clarify", text="blue", by="me"
    )
    assert talk.log.question is None
    assert "? Which?\n  1  red\n  2  blue\n❯ blue" in talk.drawn()


@pytest.mark.parametrize(("typed", "meant"), [("y", "yes"), ("N", "no"), ("yes", "yes"), ("1", "1")])
def test_an_approval_is_a_letter(talk: Talk, typed: str, meant: str) -> None:
    talk.asks("approve", ())
    question = talk.log.question
    assert question is not None
    assert question.meant_by(typed) == meant


def test_the_end_of_a_turn_withdraws_its_question(talk: Talk) -> None:
    talk.asks()
    talk.happens("turn.interrupted", turn="demo/1", by="hermesctl", partial="", killed={})
    assert talk.log.question is None
    assert "answer with" not in talk.drawn()


def test_what_waits_is_listed_in_order_and_held_is_said(talk: Talk) -> None:
    talk.accepts("m_2", "second", busy="queue")
    talk.accepts("m_3", "", kind="voice")
    assert [each.id for each in talk.log.waiting] == ["m_2", "m_3"]
    talk.happens("session.held", waiting=2)
    drawn = talk.drawn()
    assert "held · /queue resume" in drawn
    assert "1 second  accepted, waits" in drawn
    assert "2 🎙️ listening …" in drawn
    talk.happens("session.released")
    talk.happens("message.dropped", message="m_2", by="hermesctl")
    talk.happens("turn.steered", turn="demo/1", message="m_3")
    assert talk.log.waiting == []
    assert "taken back: second" in talk.drawn()


def test_a_spoken_message_shows_its_words_or_why_there_are_none(talk: Talk) -> None:
    talk.happens("turn.done", turn="demo/1", text="ok", usage={})
    talk.accepts("m_2", "", kind="voice")
    talk.happens("transcript.ready", message="m_2", text="the capital?", echo=True)
    talk.opens("m_2", turn="demo/2")
    talk.accepts("m_3", "", kind="voice")
    talk.happens("transcript.failed", message="m_3", reason="it is a picture", hint="send sound")
    drawn = talk.drawn()
    assert "❯ 🎙️ the capital?" in drawn
    assert "🎙️ not understood: it is a picture" in drawn
    assert "hint: send sound" in drawn


def test_a_feed_that_begins_in_the_middle_of_a_turn_is_read() -> None:
    talk = Talk()
    talk.story.seq = 40
    talk.starts()
    talk.speaks(0, "all of it so far", attempt=2)
    assert "all of it so far" in talk.drawn()
    assert talk.log.first_seq == 41


def test_earlier_events_are_put_before_without_losing_what_streams() -> None:
    whole = Talk()
    whole.accepts()
    whole.opens()
    whole.happens("turn.done", turn="demo/1", text="the first", usage={})
    whole.accepts("m_2", "second")
    whole.opens("m_2", turn="demo/2")
    events = list(whole.conversation._events)
    talk = Talk()
    for event in events[4:]:
        talk.conversation.take(event)
    talk.speaks(0, "streams", turn="demo/2")
    talk.conversation.put_before(events[:4])
    talk.story.seq = whole.story.seq
    assert talk.log.first_seq == 1
    assert [turn.id for turn in talk.log.turns.values()] == ["demo/1", "demo/2"]
    drawn = talk.drawn()
    for once in ("❯ hello", "the first", "❯ second", "streams"):
        assert drawn.count(once) == 1


def test_memory_is_bounded() -> None:
    talk = Talk()
    for number in range(TURNS_MAX + 10):
        talk.accepts(f"m_{number}", "x")
        talk.opens(f"m_{number}", turn=f"demo/{number}")
        talk.happens("turn.done", turn=f"demo/{number}", text="y", usage={})
    assert len(talk.log.items) == len(talk.log.turns) == TURNS_MAX
    assert len(talk.log.messages) <= TURNS_MAX + 1


def test_what_waited_before_the_feed_begins_is_taken_from_the_queue() -> None:
    talk = Talk()
    talk.accepts("m_9", "later")
    talk.log.take_queue(
        [{"message": "m_1", "text": "early", "at": 1.0, "held": True}, {"message": "m_9", "text": "later"}]
    )
    assert [(each.id, each.text) for each in talk.log.waiting] == [("m_1", "early"), ("m_9", "later")]
    assert talk.log.is_held


def test_control_characters_are_never_drawn(talk: Talk) -> None:
    hostile = "\x1b]0;owned\x07\x9b31m"
    talk.speaks(0, f"{hostile} `{hostile}`\n\n    {hostile}\n\n```\n{hostile}\n```\n")
    talk.starts("c1", f'{{"command": "{hostile}"}}')
    talk.conversation.take(Noted("demo/1", 1, hostile))
    talk.accepts("m_2", hostile)
    talk.happens("turn.failed", turn="demo/1", error=hostile, hint=hostile, poison=False)
    assert not {"\x1b", "\x07", "\x9b"} & {*talk.drawn(), *talk.drawn(is_unfolded=True)}


@pytest.mark.parametrize("width", [34, 59, 80])
def test_no_line_is_wider_than_the_window(talk: Talk, width: int) -> None:
    talk.speaks(0, "words and " * 30 + "a" * 200)
    talk.starts("c1", "x" * 300)
    talk.accepts("m_2", "waiting " * 40)
    talk.happens("turn.failed", turn="demo/1", error="e " * 100, hint="h " * 100, poison=False)
    for is_unfolded in (False, True):
        assert max(map(len, talk.drawn(width=width, is_unfolded=is_unfolded).splitlines())) <= width


def test_an_endless_block_is_drawn_in_no_time(talk: Talk) -> None:
    talk.speaks(0, "```python\n" + "value = compute(value)\n" * 20_000)
    began = time.monotonic()
    assert talk.drawn().count("compute") == 20_000
    assert time.monotonic() - began < 5


def test_a_tool_ends_by_its_call(talk: Talk) -> None:
    talk.starts("c1")
    talk.starts("c2")
    talk.happens("tool.finished", turn="demo/1", call="c1", name="shell", ok=False, ms=1234)
    states = [mark.state for _, mark in talk.turn.marks if isinstance(mark, Tool)]
    assert states == ["failed", "running"]
    assert "✘ shell  ls  1,234 ms" in talk.drawn()


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ({"exit": 2, "signal": ""}, "✘ shell  ls  exit 2 · 1,234 ms"),
        ({"exit": None, "signal": "SIGKILL"}, "✘ shell  ls  SIGKILL · 1,234 ms"),
    ],
    ids=["exit", "signal"],
)
def test_a_failed_command_says_how_it_ended(talk: Talk, how: dict[str, object], shown: str) -> None:
    talk.starts("c1")
    talk.happens("tool.finished", turn="demo/1", call="c1", name="shell", ok=False, ms=1234, **how)
    assert shown in talk.drawn()


@pytest.mark.parametrize(
    ("finish", "shown"),
    [
        ("length", "! cut off: the model's limit of length was reached"),
        ("content_filter", "! cut off by the server's content filter"),
        ("refusal", "! the model declined to answer"),
        ("empty", "! the model gave an empty answer"),
        ("moon", "! the model ended it: moon"),
        ("stop", ""),
    ],
)
def test_an_answer_that_is_less_than_was_asked_for_says_so(talk: Talk, finish: str, shown: str) -> None:
    talk.speaks(0, "Par")
    talk.happens("turn.done", turn="demo/1", text="Par", usage={"output_tokens": 1}, finish=finish)
    drawn = talk.drawn()
    assert shown in drawn
    assert ("! " in drawn) == bool(shown)


def test_the_last_gate_lets_nothing_through_that_terminals_disagree_about() -> None:
    assert steady("plain \x1b[5m") == "plain �[5m"
    assert steady("🎙\ufe0f ok ✔\ufe0f") == "🎙 ok ✔"
    assert steady("👩\u200d🚀") == "👩🚀"
    assert steady("abc\u202edef") == "abc�def"
    assert steady("नमस्\u200dते") == "नमस्\u200dते"
