"""`hermesctl send` against a scripted supervisor: what is printed, where, and with which exit code."""

import json
from collections.abc import Callable
from pathlib import Path

from ipc.messages import (
    Accepted,
    Answer,
    Delta,
    Done,
    Event,
    Interrupt,
    Noted,
    Queue,
    Refused,
    Request,
    Submit,
    Subscribe,
    Subscribed,
    Unsubscribe,
)
from tests.hermesctl.hand import Running, hermesctl
from tests.hermesctl.peer import Peer, Story, opened

Items = list[Answer]
KILLED = {"processes": 4, "all_dead": True, "ms": 5, "how": "pidns"}


def delta(offset: int, text: str, attempt: int = 1, turn: str = "demo/1") -> Delta:
    return Delta("demo", turn, attempt, offset, text)


def opening(story: Story, message: str = "m_1") -> Items:
    return [
        story.event("message.accepted", message=message, kind="text", busy="interrupt"),
        story.event("turn.opened", turn="demo/1", messages=[message]),
        story.event("attempt.opened", turn="demo/1", attempt=1, worker=0, pid=4242),
    ]


def playing(make: Callable[[Story], Items]) -> Callable[[Peer, Request], Items]:
    """A supervisor that accepts a message and then plays a feed."""

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Subscribe):
            return [Subscribed(0)]
        if isinstance(request, Submit):
            peer.say(Subscribe, *make(Story()))
            return [Accepted("m_1", 1)]
        return []

    return reply


def done(story: Story, text: str) -> Event:
    return story.event("turn.done", turn="demo/1", text=text, usage={"input_tokens": 3, "output_tokens": 5})


def test_an_answer_is_streamed_and_ends_with_a_newline(tmp_path: Path) -> None:
    with opened(
        tmp_path, playing(lambda s: [*opening(s), delta(0, "Par"), delta(3, "is."), done(s, "Paris.")])
    ):
        result = hermesctl(tmp_path, "send", "demo", "capital?")
    assert (result.code, result.out, result.err) == (0, "Paris.\n", "")


def test_words_are_printed_before_the_turn_has_ended(tmp_path: Path) -> None:
    story = Story()
    with (
        opened(tmp_path, playing(lambda _: [*opening(story), delta(0, "Par")])) as peer,
        Running(tmp_path, "send", "demo", "capital?") as running,
    ):
        running.wait_for("Par")
        peer.say(Subscribe, delta(3, "is"), done(story, "Paris"))
        assert running.end().out == "Paris\n"


def test_the_session_is_followed_before_the_message_is_sent(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda s: [*opening(s), done(s, "x")])) as peer:
        hermesctl(tmp_path, "send", "demo", "-", "--id", "k", "--busy", "queue", stdin="from stdin")
        assert peer.requests(Subscribe) == [Subscribe("demo", None)]
        assert peer.requests(Submit) == [Submit("demo", "from stdin", "k", "queue")]


def test_duplicate_and_overlapping_deltas_are_printed_once(tmp_path: Path) -> None:
    deltas = [delta(0, "Par"), delta(0, "Par"), delta(1, "aris"), delta(5, ".")]
    with opened(tmp_path, playing(lambda s: [*opening(s), *deltas, done(s, "Paris.")])):
        assert hermesctl(tmp_path, "send", "demo", "x").out == "Paris.\n"


def test_a_gap_is_filled_from_the_final_text(tmp_path: Path) -> None:
    deltas = [delta(0, "One "), delta(8, "three "), delta(14, "four")]
    with opened(tmp_path, playing(lambda s: [*opening(s), *deltas, done(s, "One two three four")])):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert result.out == "One two three four\n"
    assert "missed" in result.err


def test_a_piece_that_closes_the_gap_is_shown_at_once(tmp_path: Path) -> None:
    story = Story()
    deltas = [delta(0, "One "), delta(8, "three "), delta(0, "One two three "), delta(14, "fo")]
    with (
        opened(tmp_path, playing(lambda _: [*opening(story), *deltas])) as peer,
        Running(tmp_path, "send", "demo", "x") as running,
    ):
        assert running.wait_for("fo") == "One two three fo"
        peer.say(Subscribe, done(story, "One two three four"))
        assert running.end().out == "One two three four\n"


def test_what_the_stream_did_not_show_is_printed_at_the_end(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda s: [*opening(s), delta(0, "Pa"), done(s, "Paris")])):
        assert hermesctl(tmp_path, "send", "demo", "x").out == "Paris\n"


def lost(story: Story, said: int) -> Event:
    return story.event("attempt.lost", turn="demo/1", attempt=1, reason="the worker was killed", offset=said)


def test_after_a_lost_attempt_the_answer_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        before: Items = [*opening(story), delta(0, "Pa"), lost(story, 2)]
        return [*before, delta(2, "ri", attempt=2), delta(4, "s", attempt=2), done(story, "Paris")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert (result.code, result.out) == (0, "Paris\n")
    assert "attempt 1 was lost: the worker was killed" in result.err


def test_words_that_were_never_written_down_are_not_passed_off_as_the_answer(tmp_path: Path) -> None:
    """They were shown; on a line of its own the answer is shown again as far as it stands, and goes on."""

    def feed(story: Story) -> Items:
        before: Items = [*opening(story), delta(0, "Paths of"), lost(story, 2)]
        return [*before, delta(0, "Par", attempt=2), delta(3, "is", attempt=2), done(story, "Paris")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert (result.code, result.out) == (0, "Paths of\nParis\n")


def test_an_answer_to_a_question_prints_what_is_said_after_it(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        question = {"turn": "demo/1", "question": "demo/1#1", "kind": "clarify", "choices": []}
        taken = story.event("question.answered", **question, text="x", by="m_1", message="m_1")
        return [delta(0, "Which? "), taken, delta(7, "That.", attempt=2), done(story, "Which? That.")]

    with opened(tmp_path, playing(feed)):
        assert hermesctl(tmp_path, "send", "demo", "x").out == "That.\n"


def test_other_turns_of_the_session_are_not_shown(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        cut = story.event("turn.interrupted", turn="demo/0", by="m_1", partial="old", killed=KILLED)
        return [delta(0, "old", turn="demo/0"), cut, *opening(story), delta(0, "new"), done(story, "new")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert (result.code, result.out) == (0, "new\n")


def test_a_steered_message_prints_from_where_it_was_taken_in(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        taken = story.event("turn.steered", turn="demo/1", message="m_1")
        return [delta(0, "before "), taken, delta(7, "after"), done(story, "before after")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x", "--busy", "steer")
    assert (result.code, result.out) == (0, "after\n")


def test_a_collected_message_is_answered_with_its_companions(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        return [story.event("turn.opened", turn="demo/1", messages=["m_0", "m_1"]), done(story, "both")]

    with opened(tmp_path, playing(feed)):
        assert hermesctl(tmp_path, "send", "demo", "x").out == "both\n"


def test_an_answer_that_was_cut_off_says_so(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        told: Items = [*opening(story), delta(0, "Par")]
        return [*told, story.event("turn.done", turn="demo/1", text="Par", finish="length")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "capital?")
    assert (result.code, result.out) == (0, "Par\n")
    assert "! cut off: the model's limit of length was reached" in result.err


def test_notes_and_tools_go_to_stderr(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        begin = opening(story)
        tool = story.event("tool.started", turn="demo/1", call="c", name="shell", summary="ls")
        return [*begin, Noted("demo/1", 1, "retrying in 2 s"), tool, done(story, "ok")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert result.out == "ok\n"
    assert "retrying in 2 s" in result.err
    assert "shell ls" in result.err


def test_a_failed_turn_exits_4_with_its_hint(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        fields = {"turn": "demo/1", "error": "no such model", "hint": "set [model] name"}
        return [*opening(story), story.event("turn.failed", **fields)]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert result.code == 4
    assert result.err == "hermesctl: demo/1 failed: no such model\n  hint: set [model] name\n"


def test_an_interrupted_turn_exits_3_with_the_proof(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        begin = opening(story)
        cut = story.event("turn.interrupted", turn="demo/1", by="telegram", partial="Par", killed=KILLED)
        return [*begin, delta(0, "Pa"), cut]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert (result.code, result.out) == (3, "Par\n")
    assert "demo/1 interrupted: 4 processes ended in 5 ms, none left (pidns)" in result.err


def test_a_refused_message_exits_5(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        return (
            [Subscribed(0)] if isinstance(request, Subscribe) else [Refused("the queue is full", "wait", 2.0)]
        )

    with opened(tmp_path, reply):
        result = hermesctl(tmp_path, "send", "demo", "x")
    assert (result.code, result.err) == (5, "hermesctl: the queue is full\n  hint: wait (again in 2 s)\n")


def test_a_dropped_message_exits_5(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda s: [s.event("message.dropped", message="m_1", by="hermesctl")])):
        assert hermesctl(tmp_path, "send", "demo", "x").code == 5


def test_no_wait_prints_the_message_and_leaves(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda _: [])):
        result = hermesctl(tmp_path, "send", "demo", "x", "--no-wait")
    assert (result.code, result.out) == (0, "m_1\n")


def test_an_empty_message_is_a_usage_error(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "send", "demo", "-", stdin=" \n")
    assert result.code == 2
    assert "empty" in result.err
    assert "hermesctl send --help" in result.err


def test_json_prints_the_events_of_the_turn_one_a_line(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda s: [*opening(s), delta(0, "é"), done(s, "é")])):
        result = hermesctl(tmp_path, "send", "demo", "x", "--json")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["type"] for line in lines] == [
        "message.accepted", "turn.opened", "attempt.opened", "delta", "turn.done"
    ]  # fmt: skip
    assert list(lines[1]) == ["seq", "session", "type", "at", "turn", "messages"]
    assert lines[1]["seq"] == 2
    assert lines[1]["messages"] == ["m_1"]
    assert lines[3] == {
        "type": "delta", "session": "demo", "turn": "demo/1", "attempt": 1, "offset": 0, "text": "é"
    }  # fmt: skip
    assert lines[4]["usage"] == {"input_tokens": 3, "output_tokens": 5}


def test_a_known_key_replays_the_ending_from_the_feed(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Submit):
            return [Accepted("m_1", 7, again=True)]
        if isinstance(request, Subscribe) and request.after is not None:
            story = Story(seq=request.after)
            return [Subscribed(20), *opening(story), done(story, "Paris")]
        return [Subscribed(20)] if isinstance(request, Subscribe) else [Done()]

    with opened(tmp_path, reply) as peer:
        result = hermesctl(tmp_path, "send", "demo", "x", "--id", "k")
        assert peer.wait_for(Unsubscribe) == Unsubscribe(1)
        assert peer.requests(Subscribe)[-1] == Subscribe("demo", 6)
    assert (result.code, result.out) == (0, "Paris\n")


def test_ctrl_c_interrupts_the_turn_and_shows_the_proof(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Interrupt):
            cut = story.event("turn.interrupted", turn="demo/1", by="hermesctl", partial="Par", killed=KILLED)
            peer.say(Subscribe, cut)
            return [Done(("demo/1",))]
        return playing(lambda _: [*opening(story), delta(0, "Par")])(peer, request)

    with opened(tmp_path, reply) as peer, Running(tmp_path, "send", "demo", "x") as running:
        running.wait_for("Par")
        running.press_ctrl_c()
        result = running.end()
        assert peer.requests(Interrupt) == [Interrupt("demo", "hermesctl", "demo/1")]
    assert (result.code, result.out) == (3, "Par\n")
    assert "interrupting demo/1" in result.err
    assert "none left (pidns)" in result.err


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    with (
        opened(tmp_path, playing(lambda s: [*opening(s), delta(0, "Par")])) as peer,
        Running(tmp_path, "send", "demo", "x") as running,
    ):
        running.wait_for("Par")
        running.press_ctrl_c()
        peer.wait_for(Interrupt)
        running.press_ctrl_c()
        assert running.end().code == 130


def test_ctrl_c_takes_a_waiting_message_back(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Queue):
            return [Done()]
        return playing(lambda _: [delta(0, "somebody else's words", turn="demo/0")])(peer, request)

    with opened(tmp_path, reply) as peer, Running(tmp_path, "send", "demo", "x") as running:
        peer.wait_for(Submit)
        running.press_ctrl_c()
        assert peer.wait_for(Queue) == Queue("demo", "drop", "m_1")
        result = running.end()
    assert (result.code, result.out) == (3, "")


def test_a_send_survives_a_restart_of_the_supervisor(tmp_path: Path) -> None:
    story = Story()
    with (
        bereft_send(tmp_path, story) as running,
        opened(tmp_path, lambda _, request: [Subscribed(story.seq), done(story, "Paris")]) as peer,
    ):
        result = running.end()
        assert peer.requests(Subscribe) == [Subscribe("demo", 3)]
    assert (result.code, result.out) == (0, "Paris\n")


def test_a_stop_that_was_lost_with_the_supervisor_is_asked_of_the_next_one(tmp_path: Path) -> None:
    story = Story()
    with opened(tmp_path, playing(lambda _: [*opening(story), delta(0, "Par")])) as peer:
        running = Running(tmp_path, "send", "demo", "x")
        running.wait_for("Par")
        running.press_ctrl_c()
        peer.wait_for(Interrupt)

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Interrupt):
            cut = story.event("turn.interrupted", turn="demo/1", by="hermesctl", partial="Par", killed=KILLED)
            peer.say(Subscribe, cut)
            return [Done(("demo/1",))]
        return [Subscribed(story.seq)]

    with running, opened(tmp_path, reply) as peer:
        assert peer.wait_for(Interrupt) == Interrupt("demo", "hermesctl", "demo/1")
        result = running.end()
    assert (result.code, result.out) == (3, "Par\n")


def test_a_message_is_taken_back_from_the_next_supervisor_if_the_first_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path, playing(lambda _: [])) as peer:
        running = Running(tmp_path, "send", "demo", "x")
        peer.wait_for(Submit)
        running.press_ctrl_c()
        peer.wait_for(Queue)

    def reply(peer: Peer, request: Request) -> Items:
        return [Done()] if isinstance(request, Queue) else [Subscribed(0)]

    with running, opened(tmp_path, reply) as peer:
        assert peer.wait_for(Queue) == Queue("demo", "drop", "m_1")
        assert running.end().code == 3


def bereft_send(home: Path, story: Story) -> Running:
    """A send whose supervisor went away after the first words."""
    with opened(home, playing(lambda _: [*opening(story), delta(0, "Par")])):
        running = Running(home, "send", "demo", "x")
        running.wait_for("Par")
    running.wait_for("gone", "err")
    return running
