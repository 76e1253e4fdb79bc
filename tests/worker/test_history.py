"""The conversation a model is shown: nothing that happened is left out of it or left open."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipc.messages import Assign, PastAttempt, PastTurn, ToolClass, ToolTrace
from tests.worker.peer import assign
from worker.agents.chat_messages import GO_ON, NO_RESULT, UNKNOWN_OUTCOME, ChatMessage, conversation, size

PLENTY = 1_000_000


def shown(work: Assign, characters_max: int = PLENTY) -> list[tuple[str, Any]]:
    messages = conversation(work, "be good", characters_max)
    return [(message["role"], message["content"]) for message in messages]


def turn(said: str, *attempts: PastAttempt) -> PastTurn:
    return PastTurn((said,), attempts)


def trace(call: str, offset: int = 0, result: str | None = "fine") -> ToolTrace:
    return ToolTrace(call, "shell", '{"command": "ls"}', "unsafe", result, result is not None, offset)


def test_a_first_turn_is_the_system_prompt_and_the_question() -> None:
    assert shown(assign("", "hi")) == [("system", "be good"), ("user", "hi")]


def test_an_interrupted_answer_is_shown_as_cut() -> None:
    history = (turn("count", PastAttempt("one two", cut="interrupted")),)
    assert shown(assign("", "go on", history=history))[1:] == [
        ("user", "count"),
        ("assistant", "one two\n[cut off by an interrupt]"),
        ("user", "go on"),
    ]


def test_a_turn_cut_before_its_first_word_is_shown_too() -> None:
    history = (turn("count", PastAttempt("", cut="interrupted")), turn("again"))
    assert shown(assign("", "hi", history=history))[1:-1] == [
        ("user", "count"),
        ("assistant", "[cut off by an interrupt]"),
        ("user", "again"),
        ("assistant", "[not answered]"),
    ]


def test_words_and_deeds_keep_their_order() -> None:
    text = "Let me look.\n\nIt is empty."
    history = (turn("look", PastAttempt(text, (trace("a", 12), trace("b", 12, "nothing")))),)
    messages = conversation(assign("", "thanks", history=history), "", PLENTY)
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert messages[2]["content"] == "Let me look."
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["a", "b"]
    assert messages[4] == {"role": "tool", "tool_call_id": "b", "content": "nothing"}
    assert messages[5]["content"] == "It is empty."


def test_an_open_call_is_closed_as_unknown() -> None:
    tried = (PastAttempt("Deleting.", (trace("a", 9, None),), cut="lost"),)
    messages = conversation(assign("", "delete it", tried=tried), "", PLENTY)
    assert messages[3:] == [{"role": "tool", "tool_call_id": "a", "content": UNKNOWN_OUTCOME}]


def question(result: str | None) -> ToolTrace:
    return ToolTrace("q", "ask", '{"question": "which?"}', "pure", result, result is not None, 4)


def test_the_answer_to_a_question_is_the_last_thing_the_model_reads() -> None:
    tried = (PastAttempt("Hm. ", (trace("a", 4), question("blue"))), PastAttempt("", cut="lost"))
    messages = conversation(assign("", "paint it", tried=tried), "", PLENTY)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert messages[2]["content"] == "Hm."
    assert messages[-1] == {"role": "tool", "tool_call_id": "q", "content": "blue"}


def test_what_was_said_after_an_answer_follows_it() -> None:
    asked, cut = PastAttempt("Hm. ", (question("blue"),)), PastAttempt("Blue it", cut="lost")
    messages = shown(assign("", "paint it", tried=(asked, cut)))
    assert messages[3:5] == [("tool", "blue"), ("assistant", "Blue it")]
    assert messages[5] == ("user", GO_ON["content"])
    history = (turn("paint it", asked, PastAttempt("Blue it is.")),)
    assert shown(assign("", "thanks", history=history))[2:-1] == [
        ("assistant", "Hm."),
        ("tool", "blue"),
        ("assistant", "Blue it is."),
    ]


def test_a_withdrawn_question_may_be_asked_again() -> None:
    history = (turn("paint it", PastAttempt("", (question(None),), cut="interrupted")),)
    assert shown(assign("", "well?", history=history))[3:-1] == [
        ("tool", NO_RESULT),
        ("assistant", "[cut off by an interrupt]"),
    ]


def test_a_turn_that_ended_with_a_deed_says_so() -> None:
    history = (turn("look", PastAttempt("", (trace("a"),))),)
    assert shown(assign("", "and?", history=history))[-2] == ("assistant", "[said nothing more]")


def test_an_attempt_that_did_nothing_leaves_no_trace() -> None:
    tried = (PastAttempt("", cut="lost"),)
    assert shown(assign("", "hi", tried=tried)) == [("system", "be good"), ("user", "hi")]


def test_attempts_in_a_row_are_one_answer_without_a_gap_or_a_mark() -> None:
    attempts = (PastAttempt("one tw", cut="lost"), PastAttempt("o ", cut="lost"), PastAttempt("three"))
    history = (turn("count", *attempts),)
    assert shown(assign("", "hi", history=history))[2:-1] == [("assistant", "one two three")]
    tried = shown(assign("", "count", tried=attempts[:2]))
    # To the last space: what comes next is put right behind it.
    assert tried[2:] == [("assistant", "one two "), ("user", GO_ON["content"])]


def test_a_turn_that_was_lost_for_good_says_so_once() -> None:
    history = (turn("count", PastAttempt("one ", cut="lost"), PastAttempt("two", cut="failed")),)
    assert shown(assign("", "hi", history=history))[2:-1] == [
        ("assistant", "one two\n[cut off: it could not be finished]")
    ]


def test_calls_of_two_attempts_are_never_one_batch() -> None:
    tried = (PastAttempt("", (trace("a"),), "lost"), PastAttempt("", (trace("b"),), "lost"))
    messages = conversation(assign("", "look", tried=tried), "", PLENTY)
    assert [message["role"] for message in messages[2:]] == ["assistant", "tool", "assistant", "tool"]


def test_calls_of_lost_attempts_keep_their_place() -> None:
    lost, last = PastAttempt("Look. ", (trace("a", 6),), "lost"), PastAttempt("\n\nFine.", (trace("b", 7),))
    messages = conversation(assign("", "thanks", history=(turn("look", lost, last),)), "", PLENTY)
    assert [(each["role"], each["content"]) for each in messages[2:-1]] == [
        ("assistant", "Look."),
        ("tool", "fine"),
        ("assistant", "Fine."),
        ("tool", "fine"),
        ("assistant", "[said nothing more]"),
    ]


def test_the_oldest_turns_are_left_out_first_and_the_question_never() -> None:
    history = tuple(turn(f"question {n}", PastAttempt("x" * 100)) for n in range(10))
    messages = shown(assign("", "y" * 300, history=history), 700)
    assert messages[-1] == ("user", "y" * 300)
    assert [content for role, content in messages if role == "user"][:-1] == ["question 8", "question 9"]
    assert "left out" in messages[0][1]
    assert shown(assign("", "y" * 300, history=history), 0)[1:] == [("user", "y" * 300)]


def test_a_turn_whose_calls_do_not_fit_is_told_without_them() -> None:
    calls = tuple(trace(f"c{number}", 0, "z" * 5000) for number in range(30))
    history = (turn("first", PastAttempt("one")), turn("read it all", PastAttempt("It is long.", calls)))
    assert shown(assign("", "and now?", history=history), 100_000) == [
        ("system", "be good"),
        ("user", "first"),
        ("assistant", "one"),
        ("user", "read it all"),
        ("assistant", "[… 30 tool calls left out …]\nIt is long."),
        ("user", "and now?"),
    ]


def test_a_long_result_is_shortened() -> None:
    history = (turn("look", PastAttempt("", (trace("a", 0, "z" * 100_000),))),)
    tool = conversation(assign("", "hi", history=history), "", PLENTY)[3]
    assert len(tool["content"]) < 10_000


_traces = st.lists(
    st.builds(trace, st.text("abc", min_size=1), st.integers(0, 30), st.none() | st.text(max_size=5)),
    max_size=4,
).map(tuple)
_attempts = st.lists(
    st.builds(PastAttempt, st.text(max_size=20), _traces, st.sampled_from(["", "lost", "interrupted"])),
    max_size=3,
).map(tuple)
_turns = st.lists(st.builds(PastTurn, st.just(("hi",)), _attempts), max_size=4).map(tuple)


@given(_turns, _attempts, st.integers(0, 2_000))
def test_every_call_has_its_result_and_the_model_has_something_to_go_on_from(
    history: tuple[PastTurn, ...], tried: tuple[PastAttempt, ...], characters_max: int
) -> None:
    messages = conversation(assign("", "now", history=history, tried=tried), "", characters_max)
    assert messages[-1]["role"] in ("user", "tool")
    waiting: list[str] = []
    before: ChatMessage = {"role": "system"}
    for message in messages[1:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            assert message["content"] or message.get("tool_calls")
            assert message["role"] != before["role"]
        waiting += [call["id"] for call in message.get("tool_calls", ())]
        before = message
    assert waiting == []


def test_a_call_behind_a_text_that_was_shortened_stays_between_its_attempts() -> None:
    """A long text comes without its end, and the calls with the places that they had in it."""
    tried = (PastAttempt("So", (trace("a", 500),), "lost"), PastAttempt(" on.", (), "lost"))
    assert shown(assign("", "hi", tried=tried))[2:] == [
        ("assistant", "So"),
        ("tool", "fine"),
        ("assistant", "on."),
        ("user", GO_ON["content"]),
    ]


def test_only_a_call_that_changes_nothing_may_be_made_again_without_a_look() -> None:
    kinds: tuple[ToolClass, ...] = ("pure", "idempotent", "unsafe")
    tools = tuple(ToolTrace(kind, "write", "", kind, None, False) for kind in kinds)
    messages = conversation(assign("", "hi", history=(turn("go", PastAttempt("", tools)),)), "", PLENTY)
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert results == [NO_RESULT, UNKNOWN_OUTCOME, UNKNOWN_OUTCOME]
    # Servers read them as JSON.
    [calling] = [message for message in messages if message.get("tool_calls")]
    assert {call["function"]["arguments"] for call in calling["tool_calls"]} == {"{}"}


def test_the_size_of_a_message_is_that_of_all_that_is_sent_of_it() -> None:
    call = {"function": {"name": "abc", "arguments": "{12}"}}
    whole = {"content": None, "reasoning": "12345", "reasoning_content": "123456", "tool_calls": [call]}
    assert size([whole]) - size([{"content": None}]) == 3 + 4 + 5 + 6
    assert size([{"content": "12"}]) - size([{"content": None}]) == 2
