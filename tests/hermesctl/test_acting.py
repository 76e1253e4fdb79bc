"""Commands that act, with --json: one object on one line of standard output, whatever was done."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from hermesctl.main import hermesctl as group
from ipc.messages import (
    Accepted,
    Answer,
    Done,
    Drain,
    Interrupt,
    Queue,
    Reload,
    Request,
    Respond,
    Retry,
    Scale,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
    Undrain,
)
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.test_life import LIVING, end

KILLED = {"processes": 4, "all_dead": True, "ms": 9.1, "how": "pidns"}
# They run until they are ended, talk to a person, or print lines for another program anyway.
WITHOUT = {"run", "chat", "completion", "traces", "journal export"}

ACTS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (
        ("interrupt", "demo"),
        {"session": "demo", "turn": "demo/2", "state": "interrupted", "killed": KILLED, "note": ""},
    ),
    (
        ("interrupt", "--all"),
        {"turns": [{"turn": "demo/2", "state": "interrupted", "killed": KILLED}], "note": ""},
    ),
    (
        ("interrupt", "idle"),
        {"session": "idle", "turn": None, "state": None, "killed": None, "note": "nothing runs"},
    ),
    (
        ("send", "demo", "x", "--no-wait"),
        {"session": "demo", "message": "m_1", "seq": 7, "again": False, "note": "it waits"},
    ),
    (
        ("retry", "demo/1", "--no-wait"),
        {"session": "demo", "message": "m_1", "seq": 7, "again": False, "note": "it waits"},
    ),
    (
        ("queue", "demo", "drop", "m_1"),
        {"session": "demo", "act": "drop", "message": "m_1", "turns": [], "note": "1 dropped"},
    ),
    (
        ("queue", "demo", "resume"),
        {"session": "demo", "act": "resume", "message": None, "turns": [], "note": "1 dropped"},
    ),
    (
        ("answer", "demo/2#1", "blue"),
        {"question": "demo/2#1", "text": "blue", "turns": ["demo/2"], "note": ""},
    ),
    (("approve", "demo/2#1"), {"question": "demo/2#1", "text": "yes", "turns": ["demo/2"], "note": ""}),
    (("deny", "demo/2#1"), {"question": "demo/2#1", "text": "no", "turns": ["demo/2"], "note": ""}),
    (("scale", "4"), {"seats": 4, "note": "4 seats"}),
    (("drain",), {"draining": True, "running": ["demo/2"], "note": "draining"}),
    (("undrain",), {"draining": False, "note": "taking turns again"}),
    (("reload",), {"changes": [{"key": "[turns] busy", "applies": "at once", "text": "…"}]}),
]


def acting(peer: Peer, request: Request) -> list[Answer]:
    match request:
        case Interrupt(session="idle"):
            return [Done(note="nothing runs")]
        case Interrupt():
            peer.say(
                Subscribe, Story("demo", 1).event("turn.interrupted", turn="demo/2", by="test", killed=KILLED)
            )
            return [Done(("demo/2",))]
        case Submit() | Retry():
            return [Accepted("m_1", 7, note="it waits")]
        case Queue(act="list"):
            return [Table(())]
        case Queue():
            return [Done(note="1 dropped")]
        case Respond():
            return [Done(("demo/2",))]
        case Scale():
            return [Done(note="4 seats")]
        case Drain():
            return [Done(note="draining")]
        case Undrain():
            return [Done(note="taking turns again")]
        case Reload():
            return [Table(({"key": "[turns] busy", "applies": "at once", "text": "…"},))]
        case Show(what="turns"):
            return [Table(({"turn": "demo/2"},))]
        case Show(what="sessions"):
            return [Table(({"session": "demo", "seq": 0}, {"session": "idle", "seq": 0}))]
        case Show():
            return [Table(({"seats": 4},))]
    return [Subscribed(1)]


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    with opened(home, acting):
        yield home


@pytest.mark.parametrize(("line", "expected"), ACTS, ids=[" ".join(line) for line, _ in ACTS])
def test_a_command_that_acts_prints_one_object(
    supervisor: Path, line: tuple[str, ...], expected: dict[str, Any]
) -> None:
    result = hermesctl(supervisor, *line, "--json")
    assert result.code == 0, result
    assert result.out.count("\n") == 1
    assert json.loads(result.out) == expected


def test_start_restart_and_stop_print_one_object(tmp_path: Path) -> None:
    folder = tmp_path / "cwd" / "supervisor"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(LIVING)

    def ctl(*line: str) -> Any:
        result = hermesctl(tmp_path / "home", *line, "--json", cwd=tmp_path / "cwd")
        assert result.code == 0, result
        assert result.out.count("\n") == 1
        return json.loads(result.out)

    first = ctl("start")
    pids = [first["pid"]]
    try:
        os.kill(first["pid"], 0)
        log = str(tmp_path / "home" / "logs" / "supervisor.log")
        assert first == {"pid": first["pid"], "started": True, "log": log}
        assert ctl("start") == {"pid": first["pid"], "started": False}
        second = ctl("restart")
        pids.append(second["pid"])
        assert second == {"pid": second["pid"], "stopped": first["pid"], "killed": False}
        assert ctl("stop") == {"pid": second["pid"], "stopped": True, "killed": False, "left": []}
        assert ctl("stop") == {"pid": None, "stopped": False, "killed": False, "left": []}
    finally:
        for pid in pids:
            end(pid)


def test_every_other_command_takes_json() -> None:
    def without(of: click.Group, path: str) -> Iterator[str]:
        context = click.Context(of)
        for name in of.list_commands(context):
            command = of.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from without(command, f"{path}{name} ")
            elif not any("--json" in param.opts for param in command.params):
                yield path + name

    assert set(without(group, "")) == WITHOUT
