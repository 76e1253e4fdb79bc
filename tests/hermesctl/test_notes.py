"""What is told while a turn runs: counts that grow, and the output of tools that run side by side."""

import json
from pathlib import Path

import pytest

from hermesctl.answer_stream import AnswerPrinter, PlainText
from ipc.messages import Delta, Event, Noted
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.peer import Story, opened
from tests.hermesctl.terminal import hermesctl_in
from tests.hermesctl.test_send import Items, delta, done, opening, playing


def thinking(story: Story) -> Items:
    counts: Items = [Noted("demo/1", 1, f"thinking… {n} characters", replaces=True) for n in (10, 200)]
    return [*opening(story), *counts, delta(0, "Paris."), done(story, "Paris.")]


def side_by_side(story: Story) -> Items:
    def started(call: str, command: str) -> Items:
        summary = json.dumps({"command": command})
        return [story.event("tool.started", turn="demo/1", call=call, name="shell", summary=summary)]

    def finished(call: str) -> Items:
        fields = {"turn": "demo/1", "call": call, "name": "shell", "ok": True, "ms": 7}
        return [story.event("tool.finished", **fields)]

    return [
        *opening(story),
        *(*started("a", "make one"), *started("b", "make two")),
        Noted("demo/1", 1, "halfway", "b"),
        *(*finished("b"), *finished("a")),
        *(*started("c", "make three"), Noted("demo/1", 1, "begun", "c"), *finished("c")),
        done(story, "Done."),
    ]


def test_a_count_is_no_line_where_nobody_watches(tmp_path: Path) -> None:
    with opened(tmp_path, playing(thinking)):
        result = hermesctl(tmp_path, "send", "demo", "capital?")
    assert result.out == "Paris.\n"
    assert "thinking" not in result.err


def test_a_count_is_a_line_of_the_terminal_until_the_first_word(tmp_path: Path) -> None:
    with (
        opened(tmp_path, playing(thinking)),
        hermesctl_in(tmp_path, "send", "demo", "capital?") as terminal,
    ):
        assert terminal.ends() == 0
        assert "thinking… 10 characters" in terminal.raw.decode()
        assert "thinking… 200 characters" in terminal.raw.decode()
        assert terminal.screen.split() == ["Paris."]


def test_programs_get_every_count_and_what_it_is_about(tmp_path: Path) -> None:
    with opened(tmp_path, playing(thinking)):
        result = hermesctl(tmp_path, "send", "demo", "capital?", "--json")
    notes = [each for each in map(json.loads, result.out.splitlines()) if each["type"] == "note"]
    assert [(each["text"], each["call"], each["replaces"]) for each in notes] == [
        ("thinking… 10 characters", "", True),
        ("thinking… 200 characters", "", True),
    ]


def test_tools_that_run_side_by_side_are_told_apart(tmp_path: Path) -> None:
    with opened(tmp_path, playing(side_by_side)):
        result = hermesctl(tmp_path, "send", "demo", "build")
    assert result.err.splitlines() == [
        "· demo/1 shell make one",
        "· demo/1 shell make two",
        "· make two: halfway",
        "· demo/1 shell done in 7 ms: make two",
        "· demo/1 shell done in 7 ms: make one",
        "· demo/1 shell make three",
        "· begun",
        "· demo/1 shell done in 7 ms",
    ]


def test_text_that_was_lost_with_its_attempt_is_replaced_as_soon_as_the_next_one_speaks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = PlainText()
    shown.show(Delta("demo", "demo/1", 1, 0, "one two"))
    lost = {"turn": "demo/1", "attempt": 1, "reason": "it died", "offset": 4}
    shown.show(Event(5, "demo", "attempt.lost", 1.0, lost))
    shown.show(Delta("demo", "demo/1", 2, 4, "three"))
    assert capsys.readouterr().out == "one two\none three"


def test_text_that_was_lost_from_its_beginning_is_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    shown = PlainText()
    shown.show(Delta("demo", "demo/1", 1, 0, "one"))
    lost = {"turn": "demo/1", "attempt": 1, "reason": "it died", "offset": 0}
    shown.show(Event(5, "demo", "attempt.lost", 1.0, lost))
    shown.show(Delta("demo", "demo/1", 2, 0, "two"))
    assert capsys.readouterr().out == "one\ntwo"


def test_text_that_was_lost_from_before_a_steered_message_on_is_said_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = AnswerPrinter()
    printer.join_at(10)
    printer.take(Delta("demo", "demo/1", 1, 10, "one"))
    printer.cut_to(4)
    printer.take(Delta("demo", "demo/1", 2, 4, "two"))
    assert capsys.readouterr().out == "one\ntwo"
