"""The shell tool: what a command says comes back bounded and in order, and nothing it starts is left."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.messages import AgentSpec, Finished, Noted, ToolFinished
from tests.acceptance.sight import named
from tests.fake_model import FakeModel
from tests.waiting import soon
from tests.worker.peer import Peer, assign, worker
from worker.tools import Note, Report
from worker.tools.shell import Shell

LINES = 20_000


class Watched(Shell):
    """A shell whose calls are all told to one watcher."""

    def __init__(self, note: Note) -> None:
        super().__init__()
        self.note = note


def shell(act: Callable[[Watched], Awaitable[str]]) -> tuple[str, list[str]]:
    """What a tool of this test's own gives back, and what it told on the way."""
    notes: list[str] = []

    async def scene() -> str:
        tool = Watched(notes.append)
        try:
            return await act(tool)
        finally:
            tool.close()

    return asyncio.run(scene()), notes


async def said(tool: Watched, arguments: dict[str, Any]) -> str:
    """The text of a call, which is what the model is told."""
    return (await tool.run(arguments, tool.note)).text


def run(command: str, **more: Any) -> str:
    return shell(lambda tool: said(tool, {"command": command, **more}))[0]


def _until(condition: str) -> str:
    return f"until test {condition}; do sleep 0.01; done"


def sleeper(mark: str) -> str:
    return f"exec -a {mark} sleep 300"


def report(*calls: dict[str, Any]) -> Report:
    """What the last of these calls came to."""

    async def scene() -> Report:
        tool = Watched(lambda text: None)
        try:
            return [await tool.run(call, tool.note) for call in calls][-1]
        finally:
            tool.close()

    return asyncio.run(scene())


RAN: list[tuple[str, tuple[dict[str, Any], ...], tuple[bool, int | None, str]]] = [
    ("ends well", ({"command": "true"},), (True, 0, "")),
    ("exits otherwise", ({"command": "exit 7"},), (False, 7, "")),
    ("is not there", ({"command": "no-such-program"},), (False, 127, "")),
    ("is killed", ({"command": "kill -KILL $$"},), (False, None, "SIGKILL")),
    ("takes too long", ({"command": "exec sleep 60", "timeout_seconds": 0.2},), (False, None, "SIGTERM")),
    (
        "takes too long and ends well when asked to",
        ({"command": "trap 'exit 0' TERM; sleep 60 & wait", "timeout_seconds": 0.2},),
        (False, 0, ""),
    ),
    ("is begun", ({"action": "start", "command": "exec sleep 60"},), (True, None, "")),
    (
        "still runs",
        ({"action": "start", "command": "exec sleep 60"}, {"action": "read", "id": "b1"}),
        (True, None, ""),
    ),
    (
        "has failed behind our back",
        ({"action": "start", "command": "exit 4"}, {"action": "read", "id": "b1", "timeout_seconds": 20}),
        (False, 4, ""),
    ),
    (
        "is stopped as asked",
        ({"action": "start", "command": "exec sleep 60"}, {"action": "stop", "id": "b1"}),
        (True, None, "SIGTERM"),
    ),
]


@pytest.mark.parametrize(("calls", "outcome"), [row[1:] for row in RAN], ids=[row[0] for row in RAN])
def test_a_command_that_failed_is_reported_so(
    calls: tuple[dict[str, Any], ...], outcome: tuple[bool, int | None, str]
) -> None:
    found = report(*calls)
    assert (found.ok, found.exit, found.signal) == outcome, found.text


def test_both_outputs_come_back_in_their_order_with_the_exit_status() -> None:
    assert run("echo one; echo two >&2; echo three; exit 7") == "[exit status 7]\none\ntwo\nthree\n"
    assert run("true") == "[exit status 0]\n(no output)"
    assert run("kill -SEGV $$").startswith("[ended by signal 11 (Segmentation fault)]")


def test_a_command_runs_in_the_folder_it_is_given(tmp_path: Path) -> None:
    assert run("pwd", folder=str(tmp_path)) == f"[exit status 0]\n{tmp_path}\n"
    with pytest.raises(FileNotFoundError):
        run("pwd", folder=str(tmp_path / "none"))


def test_standard_input_is_empty() -> None:
    assert run("cat; echo end") == "[exit status 0]\nend\n"


def test_a_long_output_keeps_its_ends_and_a_file_has_it_whole(outputs: Path) -> None:
    text = run(f"seq {LINES}")
    file = outputs / "1.txt"
    assert text.startswith(f"[exit status 0]\n[cut: all of it is in {file}; read it there]\n1\n2\n")
    assert file.read_text() == "".join(f"{n}\n" for n in range(1, LINES + 1))
    assert text.endswith(f"{LINES - 1}\n{LINES}\n")
    left_out = sum(len(f"{n}\n") for n in range(1, LINES + 1)) - 40_000
    assert f"[… {left_out} bytes left out …]" in text


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert run(r"printf '\xff\xfe'") == "[exit status 0]\n\ufffd\ufffd"


def test_a_watcher_sees_the_newest_lines_and_never_all_of_them() -> None:
    _, notes = shell(lambda tool: said(tool, {"command": f"seq {LINES}; printf last"}))
    assert notes[-1].endswith(f"{LINES}\nlast")
    assert sum(len(note.splitlines()) for note in notes) < LINES / 10
    assert max(map(len, notes)) <= 500


def test_a_watcher_sees_lines_while_the_command_runs(tmp_path: Path) -> None:
    """The command goes on only when its first line has been told."""

    async def act(tool: Watched) -> str:
        command = f"echo first; until test -e {tmp_path}/go; do sleep 0.01; done; echo second"
        running = asyncio.ensure_future(said(tool, {"command": command}))
        await soon(lambda: "first" in notes)
        (tmp_path / "go").touch()
        return await running

    notes: list[str] = []

    async def scene() -> str:
        return await act(Watched(notes.append))

    assert asyncio.run(scene()) == "[exit status 0]\nfirst\nsecond\n"
    assert notes == ["first", "second"]


def test_a_command_that_ignores_sigterm_is_killed_when_its_time_is_over() -> None:
    text = run("trap '' TERM; echo here; while :; do sleep 10; done", timeout_seconds=0.2)
    assert text == "[ended by signal 9 (Killed); killed: it took longer than 0.2 s]\nhere\n"


def test_a_command_may_put_its_things_in_order_when_its_time_is_over() -> None:
    text = run("trap 'echo bye; exit 3' TERM; sleep 60 & wait", timeout_seconds=0.2)
    assert text == "[exit status 3; killed: it took longer than 0.2 s]\nbye\n"


def test_commands_see_no_secret_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LC_TIME", "C")
    names = {line.partition("=")[0] for line in run("env").splitlines()}
    assert {"PATH", "HOME", "TERM", "LC_TIME"} <= names
    allowed = {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TERM",
        "PAGER",
    }
    of_the_shell = {"PWD", "SHLVL", "_", "OLDPWD", "[exit status 0]"}
    assert {name for name in names if not name.startswith("LC_")} <= allowed | of_the_shell


def test_a_background_command_is_read_in_pieces_and_stopped() -> None:
    async def act(tool: Watched) -> str:
        told = await said(
            tool, {"action": "start", "command": "echo one; read -t 60 < <(sleep 60); echo two"}
        )
        assert told == "started in the background as b1"
        heard = ""
        while "one" not in heard:
            heard = await said(tool, {"action": "read", "id": "b1", "timeout_seconds": 0.05})
        assert heard.startswith("[still running after ")
        assert "one" not in await said(tool, {"action": "read", "id": "b1"})
        return await said(tool, {"action": "stop", "id": "b1"})

    assert shell(act)[0] == "[ended by signal 15 (Terminated)]\n(no output)"


def test_a_read_may_wait_for_the_end() -> None:
    async def act(tool: Watched) -> str:
        await said(tool, {"action": "start", "command": "echo done; exit 4"})
        return await said(tool, {"action": "read", "id": "b1", "timeout_seconds": 20})

    assert shell(act)[0] == "[exit status 4]\ndone\n"


def test_background_commands_are_bounded_and_the_ended_make_room() -> None:
    async def act(tool: Watched) -> str:
        for _ in range(40):
            await said(tool, {"action": "start", "command": "true"})
            await said(tool, {"action": "read", "id": f"b{_ + 1}", "timeout_seconds": 20})
        for _ in range(32):
            await said(tool, {"action": "start", "command": "exec sleep 60"})
        with pytest.raises(RuntimeError, match="stop one of them first"):
            await said(tool, {"action": "start", "command": "exec sleep 60"})
        return ""

    shell(act)


def test_a_background_flood_stays_small(outputs: Path) -> None:
    async def act(tool: Watched) -> str:
        await said(tool, {"action": "start", "command": "head -c 5000000 /dev/zero | tr '\\0' x"})
        return await said(tool, {"action": "read", "id": "b1", "timeout_seconds": 20})

    text = shell(act)[0]
    assert len(text) < 41_000
    assert "[… 4960000 bytes left out …]" in text
    assert (outputs / "1.txt").stat().st_size == 5_000_000


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": " "},
        {"command": "true", "timeout_seconds": 0},
        {"command": "true", "timeout_seconds": 1e9},
        {"command": "true", "action": "dance"},
        {"command": "true", "workdir": "/"},
        {"command": "a\0b"},
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((ValueError, msgspec.ValidationError)):
        shell(lambda tool: said(tool, arguments))


def test_an_unknown_background_command_is_named_with_those_there_are() -> None:
    async def act(tool: Watched) -> str:
        await said(tool, {"action": "start", "command": "true"})
        return await said(tool, {"action": "read", "id": "b7"})

    with pytest.raises(LookupError, match="'b7'; there are: b1"):
        shell(act)


async def turn(peer: Peer, fake: FakeModel, name: str, *calls: dict[str, Any]) -> list[str]:
    """One whole turn of a worker that makes these calls one after the other; their results."""
    rounds = json.dumps([[{"name": "shell", "arguments": call}] for call in calls])
    fake.set_mode("tools", calls=rounds)
    agent = AgentSpec("default", "builtin", {"tools": ["shell"]})
    heard = len(peer.frames)
    peer.send(msgspec.structs.replace(assign(fake.base_url, turn=name), agent=agent))
    await peer.until(lambda: [frame for frame in peer.of(Finished) if getattr(frame, "turn", "") == name])
    return [frame.result for frame in peer.frames[heard:] if isinstance(frame, ToolFinished)]


def test_a_daemon_that_holds_the_pipe_does_not_hold_the_tool(tmp_path: Path, fake: FakeModel) -> None:
    mark = f"hold-{os.urandom(6).hex()}"

    async def scene() -> None:
        async with worker(tmp_path) as peer:
            command = f"setsid bash -c '{sleeper(mark)}' & echo done"
            results = await turn(peer, fake, "s/1", {"command": command})
            expected = "[exit status 0; something it started still runs and ends with this turn]\ndone\n"
            assert results == [expected]

    asyncio.run(scene())
    assert named(mark) == set()


def test_what_a_turn_started_has_ended_before_the_turn_is_told_to(tmp_path: Path, fake: FakeModel) -> None:
    mark = f"left-{os.urandom(6).hex()}"
    count = f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx {mark}"
    daemon = f"(setsid bash -c '{sleeper(mark)}' >/dev/null 2>&1 &)"

    async def scene() -> None:
        async with worker(tmp_path) as peer:
            calls = (
                {"action": "start", "command": sleeper(mark)},
                {"command": f"{daemon}; {daemon}"},
                {"action": "start", "command": f"trap '' TERM HUP; {daemon}; {sleeper(mark)}"},
                {"command": _until(f"$({count}) = 5")},
            )
            results = await turn(peer, fake, "s/1", *calls)
            assert results[-1] == "[exit status 0]\n(no output)"
            assert named(mark) == set()
            assert await turn(peer, fake, "s/2", {"command": "echo next"}) == ["[exit status 0]\nnext\n"]
            told = await turn(peer, fake, "s/3", {"action": "read", "id": "b1"})
            assert "there are: none" in told[0]

    asyncio.run(scene())


def test_ended_orphans_do_not_pile_up_within_a_turn(tmp_path: Path, fake: FakeModel) -> None:
    gate = tmp_path / "gate"
    wait = f"until test -e {gate}; do sleep 0.01; done"
    orphans = f"for n in 1 2 3 4 5; do (sh -c '{wait}' >/dev/null 2>&1 &); done"
    # The ended ones are listed too until somebody reaps them; one is the command itself.
    children = "cat /proc/$PPID/task/*/children | wc -w"
    steps = (orphans, _until(f"$({children}) = 6"), f"touch {gate}", _until(f"$({children}) = 1"))

    async def scene() -> None:
        async with worker(tmp_path) as peer:
            results = await turn(peer, fake, "s/1", {"command": "; ".join(steps)})
            assert results == ["[exit status 0]\n(no output)"]

    asyncio.run(scene())


def test_the_output_of_a_tool_is_seen_while_the_turn_runs(tmp_path: Path, fake: FakeModel) -> None:
    async def scene() -> None:
        async with worker(tmp_path) as peer:
            await turn(peer, fake, "s/1", {"command": "echo visible"})
            assert [frame.text for frame in peer.frames if isinstance(frame, Noted)] == ["visible"]

    asyncio.run(scene())
