"""Questions as a person meets them: in a table, in the middle of an answer, at the prompt."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from hermesctl.choices import meant_by, ways
from ipc.messages import Accepted, Done, Refused, Request, Respond, Retry, Subscribe, Subscribed
from tests.hermesctl.hand import ROOT, Running, environment, hermesctl
from tests.hermesctl.peer import DEADLINE_SECONDS, Peer, Story, opened, tables
from tests.hermesctl.terminal import hermesctl_in
from tests.hermesctl.test_send import Items, delta, done, opening, playing

# The first terminal that the leader of a new session opens is its own, and only its foreground may read.
IN_THE_FOREGROUND = "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execv(sys.argv[1], sys.argv[1:])"
ROW = {
    "question": "demo/1#1", "session": "demo", "turn": "demo/1", "kind": "clarify", "text": "Which colour?",
    "choices": ["red", "blue"], "at": 1.0,
}  # fmt: skip


def asked(story: Story, kind: str = "clarify") -> Items:
    fields = {"turn": "demo/1", "question": "demo/1#1", "kind": kind}
    return [story.event("question.asked", **fields, text="Which colour?", choices=["red", "blue"])]


def answered(story: Story, text: str = "red", **more: str) -> Items:
    fields = {"turn": "demo/1", "question": "demo/1#1", "kind": "clarify", "text": text, "choices": []}
    return [story.event("question.answered", **fields, by="somebody", **more)]


def test_questions_are_a_table(tmp_path: Path) -> None:
    with opened(tmp_path, tables(questions=[ROW])):
        result = hermesctl(tmp_path, "questions")
    assert result.code == 0
    for word in ("demo/1#1", "clarify", "Which colour?", "red, blue"):
        assert word in result.out


def test_no_questions_are_a_sentence(tmp_path: Path) -> None:
    with opened(tmp_path, tables()):
        assert hermesctl(tmp_path, "questions").out == "no questions\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (("answer", "demo/1#1", "the blue one"), "the blue one"),
        (("answer", "demo/1#1", "-"), "from a file"),
        (("approve", "demo/1#1"), "yes"),
        (("deny", "demo/1#1"), "no"),
    ],
)
def test_an_answer_goes_to_its_question(tmp_path: Path, line: tuple[str, ...], text: str) -> None:
    with opened(tmp_path, lambda peer, request: [Done(("demo/1",))]) as peer:
        result = hermesctl(tmp_path, *line, stdin="from a file")
        assert peer.requests(Respond) == [Respond("demo/1#1", text, "hermesctl")]
    assert (result.code, result.out) == (0, f"demo/1#1 is answered with “{text}”: demo/1 goes on\n")


def test_an_answer_to_a_closed_question_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: [Refused("question demo/1#1 is not open", "look")]):
        result = hermesctl(tmp_path, "approve", "demo/1#1")
    assert (result.code, result.err) == (5, "hermesctl: question demo/1#1 is not open\n  hint: look\n")


def test_an_empty_answer_is_wrong_usage(tmp_path: Path) -> None:
    assert hermesctl(tmp_path, "answer", "demo/1#1", " ").code == 2


def test_send_shows_the_question_and_waits_for_the_end(tmp_path: Path) -> None:
    story = Story()
    with (
        opened(
            tmp_path, playing(lambda _: [*opening(story), delta(0, "Let me ask. "), *asked(story)])
        ) as peer,
        Running(tmp_path, "send", "demo", "paint it") as running,
    ):
        shown = running.wait_for("answer with", "err")
        assert "? demo/1 asks: Which colour?\n    1  red\n    2  blue\n" in shown
        assert "hermesctl answer 'demo/1#1' \"…\"" in shown
        peer.say(Subscribe, *answered(story), delta(0, "Red.", attempt=2), done(story, "Red."))
        result = running.end()
    assert (result.code, result.out) == (0, "Let me ask. \nRed.\n")
    assert "“red” by somebody" in result.err


def test_a_question_for_yes_or_no_names_its_two_commands(tmp_path: Path) -> None:
    with opened(
        tmp_path, playing(lambda s: [*opening(s), *asked(s, "approve"), *answered(s), done(s, "Done.")])
    ):
        result = hermesctl(tmp_path, "send", "demo", "paint it")
    assert "hermesctl approve 'demo/1#1', or: hermesctl deny 'demo/1#1'" in result.err


def test_a_message_that_is_the_answer_stays_with_the_turn_that_asked(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        told: Items = [delta(0, "Let me ask. "), *asked(story)]
        told.append(story.event("message.accepted", message="m_1", kind="text"))
        told += answered(story, message="m_1")
        return [*told, delta(12, "Red it is.", attempt=2), done(story, "Let me ask. Red it is.")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "red")
    assert (result.code, result.out) == (0, "Red it is.\n")


def test_a_message_that_passes_over_a_question_stays_with_its_own_turn(tmp_path: Path) -> None:
    def feed(story: Story) -> Items:
        failed = story.event("turn.failed", turn="demo/0", error="not resumed", hint="retry")
        return [*answered(story, "what time is it?"), failed, *opening(story), done(story, "Noon.")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "what time is it?")
    assert (result.code, result.out) == (0, "Noon.\n")


def test_the_answer_can_be_typed_where_the_question_is_shown(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Respond):
            peer.say(Subscribe, *answered(story), done(story, "Red."))
            return [Done(("demo/1",))]
        return playing(lambda _: [*opening(story), *asked(story)])(peer, request)

    terminal, side = pty.openpty()
    with opened(tmp_path, reply) as peer:
        command = [sys.executable, "-m", "hermesctl", "--home", str(tmp_path), "send", "demo", "paint it"]
        process = subprocess.Popen(
            [sys.executable, "-c", IN_THE_FOREGROUND, *command],
            stdin=side,
            stdout=side,
            stderr=side,
            env=environment(),
            cwd=ROOT,
            start_new_session=True,
        )
        screen = b""
        while b"answer with" not in screen:
            screen += os.read(terminal, 4096)
        os.write(terminal, b"\nred\n")
        assert peer.wait_for(Respond) == Respond("demo/1#1", "red", "hermesctl")
        assert process.wait(DEADLINE_SECONDS) == 0
    os.close(side)
    os.close(terminal)


def test_what_was_typed_before_the_question_is_no_answer_to_it(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Respond):
            peer.say(Subscribe, *answered(story), done(story, "Red."))
            return [Done(("demo/1",))]
        return playing(lambda _: [*opening(story), delta(0, "Let me ask.")])(peer, request)

    with opened(tmp_path, reply) as peer, hermesctl_in(tmp_path, "send", "demo", "paint it") as terminal:
        terminal.shows("Let me ask.")
        terminal.type("blue\n")
        peer.say(Subscribe, *asked(story))
        terminal.shows("from elsewhere: hermesctl answer")
        terminal.type("red\n")
        assert peer.wait_for(Respond).text == "red"
        assert terminal.ends() == 0


def test_the_number_of_a_choice_chooses_it(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Respond):
            peer.say(Subscribe, *answered(story, request.text), done(story, "Blue."))
            return [Done(("demo/1",))]
        return playing(lambda _: [*opening(story), *asked(story)])(peer, request)

    with opened(tmp_path, reply) as peer, hermesctl_in(tmp_path, "send", "demo", "paint it") as terminal:
        screen = terminal.shows("from elsewhere: hermesctl answer 'demo/1#1' \"…\"")
        assert "    1  red\n    2  blue\n  answer with a number or your own words\n" in screen
        terminal.type("2\n")
        assert peer.wait_for(Respond).text == "blue"
        assert terminal.ends() == 0
        assert "“blue” by somebody" in terminal.screen


@pytest.mark.parametrize(("typed", "text"), [("2", "blue"), ("3", "3"), ("02", "blue"), ("two", "two")])
def test_answer_takes_a_number_too(tmp_path: Path, typed: str, text: str) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        return [Done(("demo/1",))] if isinstance(request, Respond) else tables(questions=[ROW])(peer, request)

    with opened(tmp_path, reply) as peer:
        assert hermesctl(tmp_path, "answer", "demo/1#1", typed).code == 0
        assert peer.wait_for(Respond).text == text


def test_a_choice_that_is_a_number_is_chosen_by_itself() -> None:
    assert meant_by("1", "clarify", ["3", "1", "2"]) == "1"
    assert meant_by("4", "clarify", ["3", "1", "2"]) == "4"
    assert meant_by("1", "clarify", []) == "1"
    assert (meant_by("Y", "approve", ()), meant_by("n", "approve", ())) == ("yes", "no")
    three = ["yes", "no", "always"]
    assert [meant_by(each, "approve", three) for each in ("a", "A", "always", "3")] == ["always"] * 4
    assert meant_by("a", "approve", ["yes", "no"]) == "a"
    assert (ways("approve", three), ways("approve", ())) == ("y, n, or a for always", "y or n")


def test_no_json_stands_above_a_question(tmp_path: Path) -> None:
    arguments = '{"question": "Which colour?", "choices": ["red", "blue"]}'

    def feed(story: Story) -> Items:
        listing = {"turn": "demo/1", "call": "c0", "name": "shell", "summary": '{"command": "ls -l"}'}
        asking = {"turn": "demo/1", "call": "c1", "name": "ask", "summary": arguments}
        told: Items = list(opening(story))
        told += [story.event("tool.started", **each) for each in (listing, asking)]
        return [*told, *asked(story), *answered(story), done(story, "Red.")]

    with opened(tmp_path, playing(feed)):
        result = hermesctl(tmp_path, "send", "demo", "paint it")
    assert "{" not in result.err
    assert "· demo/1 shell ls -l\n? demo/1 asks: Which colour?\n" in result.err


def test_deny_says_what_happens(tmp_path: Path) -> None:
    note = "demo/1 does not go on; `hermesctl retry demo/1` takes it up after all"
    with opened(tmp_path, lambda peer, request: [Done(("demo/1",), note)]):
        result = hermesctl(tmp_path, "deny", "demo/1#1")
    assert result.out == f"demo/1#1 is answered with “no”: {note}\n"


def test_retry_says_a_turn_again_and_streams_the_answer(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        if isinstance(request, Retry):
            story = Story(seq=1)
            peer.say(Subscribe, *opening(story), delta(0, "At last."), done(story, "At last."))
            return [Accepted("m_1", 1)]
        return [Subscribed(1)]

    with opened(tmp_path, reply) as peer:
        result = hermesctl(tmp_path, "retry", "demo/7")
        (request,) = peer.requests(Retry)
        assert isinstance(request, Retry)
        assert (request.turn, len(request.key) > 20) == ("demo/7", True)
        assert peer.requests(Subscribe) == [Subscribe("demo", None)]
        assert hermesctl(tmp_path, "retry", "demo/7", "--no-wait").out == "m_1\n"
        assert len({each.key for each in peer.requests(Retry)}) == 2
    assert (result.code, result.out) == (0, "At last.\n")


def test_retry_of_what_is_no_turn_is_wrong_usage(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "retry", "demo")
    assert result.code == 2
    assert "SESSION/N" in result.err
