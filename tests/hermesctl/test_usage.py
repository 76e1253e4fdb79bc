"""Wrong command lines: each ends with 2, one sentence of ours and a hint; nothing in the terms of click."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermesctl.main import hermesctl as group
from hermesctl.parameters import duration, size
from hermesctl.usage_errors import sentences
from ipc.messages import Accepted, Answer, Event, Request, Respond, Show, Submit, Subscribe, Subscribed, Table
from supervisor.config.fields import DURATION, SIZE, Reading
from tests.hermesctl.hand import ROOT, Result, environment, hermesctl
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.terminal import hermesctl_in

JARGON = re.compile(
    r"invalid value|no such|missing (argument|option|parameter|command)|not a valid|not one of"
    r"|not in the range|got unexpected|requires an argument|does not take|usage:|error:|integer|float"
    r"|\bNone\b|'",
    re.IGNORECASE,
)
UNDECODABLE = "\udcff"
# They name files, and a file's name may be any bytes.
PATHS = ("--home", "--audio", "FILE")

WRONG: list[tuple[tuple[str, ...], str]] = [
    (("send", "demo", "x", "--id", ""), "--id is empty"),
    (("tail", "demo", "--cursor", ""), "--cursor is empty"),
    (("send", "", "x"), "SESSION is empty"),
    (("--home", "", "status"), "--home is empty"),
    (("journal", "prune", "--older", "1x"), "--older takes a duration such as 30d, 12h or 90s, not “1x”"),
    (("journal", "prune", "--keep-bytes", "1x"), "--keep-bytes takes a size such as 512MB or 1GiB, not “1x”"),
    (("turns", "--state", "runing"), "not “runing” (did you mean running?)"),
    (("turns", "--limit", "0"), "--limit takes a whole number from 1 to 10,000, not “0”"),
    (("top", "--every", "nan"), "--every takes a number of seconds from 0.1 to 3600, not “nan”"),
    (("send", "demo", "hello", "world"), "“world” is one argument too many"),
    (("send", "demo", "x", "--id"), "--id needs a value"),
    (("status", "--json=5"), "--json takes no value"),
    (("send",), "SESSION is missing"),
    (("retry",), "TURN or MESSAGE is missing"),
    (("journal", "prun"), "there is no command “journal prun”"),
    (("send", "demo", "--jsn"), "there is no option “--jsn” here"),
    (("queue", "demo", "purge"), "ACTION is list, drop, clear or resume, not “purge”"),
    (("queue", "demo", "drop"), "drop needs the id of a MESSAGE"),
    (("queue", "demo", "clear", "m_1"), "clear takes no MESSAGE"),
    (("scale", "many"), "AMOUNT takes a number of seats such as 8 or 2/cpu, not “many”"),
    (("send", UNDECODABLE, "x"), "SESSION is not UTF-8 text"),
    (("interrupt", f"demo{UNDECODABLE}"), "SESSION is not UTF-8 text"),
    (("journal", "backup", UNDECODABLE), "FILE is not UTF-8 text"),
]


def cold(home: Path, *line: str) -> Result:
    """As `hermesctl`, but as a fresh interpreter: the fork server takes orders in UTF-8 only."""
    command = [sys.executable, "-m", "hermesctl", "--home", str(home), *line]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=ROOT)
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(("line", "fault"), WRONG, ids=[" ".join(line) or "-" for line, _ in WRONG])
def test_a_wrong_line_is_named_and_ends_with_2(tmp_path: Path, line: tuple[str, ...], fault: str) -> None:
    result = (cold if UNDECODABLE in "".join(line) else hermesctl)(tmp_path, *line)
    assert (result.code, result.out) == (2, "")
    first, hint = result.err.splitlines()
    assert first.startswith("hermesctl: ")
    assert fault in first
    assert hint.startswith("  hint: ")
    assert not JARGON.search(result.err)


def commands(of: click.Group = group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(of)
    for name in of.list_commands(context):
        command = of.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def parsed(path: tuple[str, ...], *line: str) -> str:
    """What is said of a line, without carrying the command out; nothing when it is right."""
    context = click.Context(group, info_name="hermesctl")
    command: click.Command = group
    try:
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(context, name)
            assert found is not None
            command = found
            arguments = list(line) if name == path[-1] else []
            if not isinstance(command, click.Group):
                command.make_context(name, arguments, parent=context)
            else:
                context = click.Context(command, parent=context, info_name=name)
    except click.UsageError as error:
        return "\n".join(sentences(error))
    return ""


def shown(param: click.Parameter) -> str:
    return param.opts[-1] if isinstance(param, click.Option) else param.human_readable_name


@pytest.mark.parametrize("path", sorted(commands()), ids=" ".join)
def test_every_command_says_in_our_words_what_is_wrong(path: tuple[str, ...]) -> None:
    context = click.Context(group)
    command: click.Command = group
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command = found
    arguments = [param for param in command.params if isinstance(param, click.Argument) and param.nargs == 1]
    valued = [p for p in command.params if isinstance(p, click.Option) and not p.is_flag and not p.flag_value]
    filled = ["x"] * len(arguments)
    said = {"an unknown option": parsed(path, "--purple"), "nothing": parsed(path)}
    if not any(param.nargs != 1 for param in command.params):
        said["one too many"] = parsed(path, *filled, "x")
        assert said["one too many"]
    for option in valued:
        name = shown(option)
        said[f"{name} without its value"] = parsed(path, *filled, name)
        said[f"{name} empty"] = parsed(path, name, "")
        assert f"{name} is empty" in said[f"{name} empty"] or f"{name} takes" in said[f"{name} empty"]
        if name not in PATHS:
            said[f"{name} undecodable"] = parsed(path, name, UNDECODABLE)
            assert name in said[f"{name} undecodable"]
    assert said["an unknown option"]
    for what, words in said.items():
        assert not JARGON.search(words), (what, words)


@pytest.mark.parametrize(
    ("kind", "reading"), [(duration(), DURATION), (size(), SIZE)], ids=["duration", "size"]
)
@pytest.mark.parametrize(
    "text",
    ["30d", "1h30m", "90s", "1.5s", "60", "1x", "", "0", "0s", "d", "1d2d", "-1s", "1GiB", "512 MB", "1gib"],
)
def test_the_notations_are_those_of_the_settings(
    kind: dict[str, object], reading: Reading[float], text: str
) -> None:
    def accepted(read: object, value: object) -> bool:
        assert callable(read)
        try:
            read(value)
        except (ValueError, click.BadParameter):
            return False
        return True

    assert accepted(kind["type"], text) == accepted(reading.read, int(text) if text.isdecimal() else text)


def answering(peer: Peer, request: Request) -> list[Answer]:
    """Answers whatever is said with "yes"."""
    if isinstance(request, Show):
        return [Table(())]
    if isinstance(request, Submit):
        story = Story(request.session)
        turn: Event = story.event("turn.opened", turn="demo/1", messages=["m_1"])
        peer.say(Subscribe, turn, story.event("turn.done", turn="demo/1", text="yes"))
        return [Accepted("m_1", 0)]
    return [Subscribed(0)]


def test_bytes_that_are_no_text_are_replaced_in_a_message(tmp_path: Path) -> None:
    with opened(tmp_path, answering) as peer:
        by_argument = cold(tmp_path, "send", "demo", f"caf{UNDECODABLE}")
        assert peer.wait_for(Submit).text == "caf�"
        line = [sys.executable, "-m", "hermesctl", "--home", str(tmp_path), "send", "demo", "-"]
        piped = subprocess.run(
            line, input=b"caf\xe9 ole", capture_output=True, env=environment(), cwd=ROOT, check=False
        )
        assert peer.wait_for(Submit, 2).text == "caf� ole"
    assert (by_argument.code, by_argument.out) == (0, "yes\n")
    assert "what is not UTF-8 text was replaced by �" in by_argument.err
    assert (piped.returncode, piped.stdout) == (0, b"yes\n")
    assert "what is not UTF-8 text was replaced by �" in piped.stderr.decode()


def test_a_home_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    for command in ("status", "run", "doctor"):
        result = cold(Path(folder), command)
        assert result.code == 78, result
        assert "is not UTF-8 text" in result.err
        assert "bug" not in result.err
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        done = subprocess.run(
            [sys.executable, "-m", "hermesctl", "status"],
            capture_output=True,
            text=True,
            env=environment() | {name: folder},
            cwd=ROOT,
        )
        assert done.returncode == 78, done
        assert "is not UTF-8 text" in done.stderr


def test_bytes_typed_into_a_question_or_a_chat_are_no_bug(tmp_path: Path) -> None:
    def asking(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Submit) and request.text == "ask me":
            story = Story(request.session)
            opened_turn = story.event("turn.opened", turn="demo/1", messages=["m_1"])
            asked = story.event(
                "question.asked", turn="demo/1", question="demo/1#1", kind="clarify", text="Who?"
            )
            peer.say(Subscribe, opened_turn, asked)
            return [Accepted("m_1", 0)]
        return answering(peer, request)

    with opened(tmp_path, asking) as peer:
        with hermesctl_in(tmp_path, "send", "demo", "ask me") as terminal:
            terminal.shows("Who?")
            terminal.send(b"Ren\xe9\n")
            assert peer.wait_for(Respond).text == "Ren�"
        with hermesctl_in(tmp_path, "chat", "demo") as terminal:
            terminal.shows("say something")
            terminal.send(b"Ren\xe9")
            terminal.shows("Ren")
            terminal.press("enter")
            assert peer.wait_for(Submit, 2).text == "Ren�"


def test_a_long_sentence_is_broken_between_words_on_a_terminal(tmp_path: Path) -> None:
    with hermesctl_in(tmp_path, "turns", "--state", "sleepy", columns=60) as terminal:
        assert terminal.ends() == 2
        first, second, hint = [line for line in terminal.screen.splitlines() if line]
    assert first == "hermesctl: --state is queued, running, asking, done,"
    assert second == "    failed, interrupted or poison, not “sleepy”"
    assert hint == "  hint: hermesctl turns --help"


def test_a_file_that_an_editor_saved_in_another_encoding_is_read_all_the_same(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'caf\\351 au lait' > \"$1\"\n")
    editor.chmod(0o755)
    with opened(tmp_path, answering) as peer, hermesctl_in(tmp_path, "chat", EDITOR=str(editor)) as terminal:
        terminal.shows("say something")
        terminal.type("\x18\x05")
        terminal.shows("❯ caf� au lait")
        terminal.press("enter")
        assert peer.wait_for(Submit).text == "caf� au lait"


def test_the_version_is_printed_by_an_option_too(tmp_path: Path) -> None:
    assert hermesctl(tmp_path, "--version").out == hermesctl(tmp_path, "version").out
