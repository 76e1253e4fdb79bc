"""The command line itself: help, mistakes, and what happens when nobody answers."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermesctl.main import COMMANDS
from hermesctl.main import hermesctl as root
from ipc.messages import Answer, Request, Show, Subscribed, Table
from tests.hermesctl.hand import ROOT, environment, hermesctl
from tests.hermesctl.peer import Peer, Story, opened

READING = ["status", "sessions", "turns", "workers", "services", "questions", "tail"]


def commands(group: click.Group, path: str = "hermesctl") -> Iterator[tuple[str, click.Command]]:
    """Every command and what is below it, by the words that are typed."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


ALL = dict(commands(root))


@pytest.mark.parametrize("words", ALL)
def test_every_command_has_a_sentence_and_an_example(words: str) -> None:
    text = ALL[words].get_help(click.Context(ALL[words], info_name=words))
    usage, _, sentence, *rest = text.splitlines()
    assert usage.startswith(f"Usage: {words}")
    assert sentence.strip()
    assert f"  {words}" in "\n".join(rest).replace("hermesctl --home ./trial ", "hermesctl ")
    assert "Example" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says(name: str) -> None:
    command = ALL[f"hermesctl {name}"]
    assert COMMANDS[name] in " ".join((command.help or "").split())


def test_help_is_one_of_the_things_a_process_can_print(tmp_path: Path) -> None:
    assert hermesctl(tmp_path, "send", "--help").code == 0


@pytest.mark.parametrize("name", READING)
def test_every_reading_command_knows_json_and_says_when_nothing_runs(tmp_path: Path, name: str) -> None:
    result = hermesctl(tmp_path, name, "--json")
    assert (result.code, result.out) == (69, "")
    assert result.err == "hermesctl: the supervisor is not running\n  hint: hermesctl start\n"


@pytest.mark.parametrize("line", [("send", "demo", "x"), ("interrupt", "demo"), ("queue", "demo")])
def test_acting_commands_say_when_nothing_runs(tmp_path: Path, line: tuple[str, ...]) -> None:
    assert hermesctl(tmp_path, *line).code == 69


def test_a_socket_left_by_a_dead_supervisor_is_not_a_running_one(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "run" / "control.sock"))
    assert hermesctl(tmp_path, "status").code == 69


def test_an_unknown_command_suggests_the_near_one(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "statsu")
    assert result.code == 2
    assert result.err == "hermesctl: there is no command “statsu”\n  hint: did you mean `hermesctl status`?\n"


def test_a_bad_option_is_a_usage_error_that_names_the_help(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "turns", "--state", "sleepy")
    assert result.code == 2
    assert "sleepy" in result.err
    assert "hint: hermesctl turns --help" in result.err


def test_no_command_shows_the_help(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "hermesctl"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "Commands:" in done.stderr
    assert "send" in done.stderr
    assert hermesctl(tmp_path).err == "hermesctl: a command is missing\n  hint: hermesctl --help\n"


def test_a_command_loads_no_other_command_and_no_event_loop_of_its_own(tmp_path: Path) -> None:
    probe = (
        "import sys, hermesctl.main as m\n"
        "try: m.hermesctl.main(['version'], standalone_mode=False)\n"
        "finally: print(sorted(n for n in sys.modules if n.startswith('hermesctl.commands.')),\n"
        "  [n for n in ('asyncio', 'rich', 'zmq', 'uvloop', 'msgspec') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['hermesctl.commands.version'] []"


def test_reading_commands_import_neither_rich_nor_uvloop(tmp_path: Path) -> None:
    commands = "hermesctl.commands.status, hermesctl.commands.send"
    probe = f"import sys, {commands}\nprint({{'rich', 'uvloop'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_broken_pipe_is_quiet(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(())]
        story = Story()
        return [Subscribed(500), *(story.event("a.b", text="x" * 1000) for _ in range(500))]

    with opened(tmp_path, reply):
        process = subprocess.Popen(
            [sys.executable, "-m", "hermesctl", "--home", str(tmp_path), "tail", "demo", "--after", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd=ROOT,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() == 141


def test_a_bug_is_one_line_and_the_trace_only_on_request(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: [Table(({"hints": 5},))]):
        brief = hermesctl(tmp_path, "status")
        long = hermesctl(tmp_path, "status", HERMES_DEBUG="1")
    assert (brief.code, long.code) == (1, 1)
    assert brief.err.startswith("hermesctl: TypeError")
    assert "this is a bug" in brief.err
    assert "Traceback" not in brief.err
    assert "Traceback" in long.err


def test_the_version_needs_nobody(tmp_path: Path) -> None:
    result = hermesctl(tmp_path, "version")
    assert result.code == 0
    assert result.out.startswith("hermes-supervisor 0.")
