"""MCP servers that people use, in real cells, with a scripted model that calls their tools."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from tests.acceptance.sight import uses
from tests.agents_real.peers import Peer, peer
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.waiting import until

# Servers of node and Python take seconds to start on a busy machine.
_TURN_SECONDS_MAX = 120


def server(found: Peer, *arguments: str) -> str:
    """The lines of a table [mcp.NAME]."""
    return "command = " + json.dumps([str(found.program), *arguments])


def visible(*folders: Path) -> str:
    """The lines of [sandbox] that show these folders to the cells."""
    return "read = " + json.dumps([str(folder) for folder in folders])


def results(model: FakeModel) -> list[str]:
    return [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]


def turn(service: Service, listener: Listener, number: int, name: str, **arguments: Any) -> None:
    """A turn that calls one tool and ends."""
    service.say("a", uses([(name, arguments)]))
    ended = listener.ending(f"a/{number}", _TURN_SECONDS_MAX)
    assert ended.type == "turn.done", ended


def classes(service: Service) -> dict[str, str]:
    """Of every tool that was called, as it is recorded."""
    with closing(sqlite3.connect(service.places.journal)) as journal:
        return dict(journal.execute("SELECT name, repeat FROM tool_calls"))


def test_mcp_server_time_answers_and_refuses(make_service: Callable[..., Service], model: FakeModel) -> None:
    found = peer("mcp-server-time")
    service = make_service(
        workers="count = 1",
        sandbox=visible(found.folder),
        **{"mcp.time": server(found, "--local-timezone", "UTC")},
    )
    listener = service.listen("a")
    turn(service, listener, 1, "time__get_current_time", timezone="Europe/Rome")
    assert json.loads(results(model)[-1])["timezone"] == "Europe/Rome"
    turn(service, listener, 2, "time__get_current_time", timezone="Nowhere/Land")
    assert "Invalid timezone" in results(model)[-1]
    assert [event.fields["ok"] for event in listener.of_type("tool.finished")] == [True, False]
    assert classes(service) == {"time__get_current_time": "pure"}


def test_mcp_server_git_works_in_the_workspace(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    """The server has started before the workspace was mounted, and sees it by its path."""
    found = peer("mcp-server-git")
    person = {"NAME": "A", "EMAIL": "a@example.com"}
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in person.items()}
    variables = ", ".join(f'{key} = "{value}"' for key, value in names.items())
    service = make_service(
        workers="count = 1",
        sandbox=visible(found.folder),
        **{"mcp.git": server(found) + f"\nenv = {{ {variables} }}"},
    )
    listener = service.listen("a")
    turn(service, listener, 1, "shell", command="git init -q repo && echo one > repo/file && echo $PWD/repo")
    folder = next(line for line in results(model)[-1].splitlines() if line.endswith("/repo"))
    turn(service, listener, 2, "git__git_add", repo_path=folder, files=["file"])
    turn(service, listener, 3, "git__git_commit", repo_path=folder, message="begin")
    turn(service, listener, 4, "git__git_log", repo_path=folder)
    assert "begin" in results(model)[-1]
    found_classes = classes(service)
    assert found_classes.pop("shell")
    assert found_classes == {
        "git__git_add": "idempotent",
        "git__git_commit": "unsafe",
        "git__git_log": "pure",
    }


def test_server_everything_is_interrupted_in_a_call(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    found = peer("server-everything")
    service = make_service(
        workers="count = 1", sandbox=visible(found.folder), **{"mcp.every": server(found, "stdio")}
    )
    listener = service.listen("a")
    turn(service, listener, 1, "every__get-sum", a=2, b=3)
    assert "5" in results(model)[-1]
    service.say("a", uses([("every__trigger-long-running-operation", {"duration": 600, "steps": 10})]))
    listener.until(lambda: listener.of_type("tool.started")[1:], _TURN_SECONDS_MAX)
    (busy,) = [row for row in service.show("workers") if row["state"] == "busy"]
    tree = psutil.Process(busy["pid"]).children(recursive=True)
    assert tree
    service.interrupt("a")
    assert listener.ending("a/2", _TURN_SECONDS_MAX).type == "turn.interrupted"
    until(lambda: not any(each.is_running() for each in tree))
    turn(service, listener, 3, "every__echo", message="still here")
    assert "still here" in results(model)[-1]
    assert classes(service)["every__echo"] == "pure"


def test_a_file_of_another_host_names_the_servers(tmp_path: Path, model: FakeModel) -> None:
    """`mcp_file` with the JSON that other hosts read, and two servers of different languages at once."""
    clock, every = peer("mcp-server-time"), peer("server-everything")
    home = tmp_path / "home"
    home.mkdir()
    listed = {
        "clock": {"command": str(clock.program), "args": ["--local-timezone", "UTC"]},
        "every": {"command": str(every.program), "args": ["stdio"], "env": {"MARK": "from the file"}},
    }
    (home / "mcp.json").write_text(json.dumps({"mcpServers": listed}))
    tables = settings_for(model, workers="count = 1", sandbox=visible(clock.folder, every.folder))
    with Service(home, f'mcp_file = "mcp.json"\n{tables}') as service:
        listener = service.listen("a")
        turn(service, listener, 1, "clock__convert_time", source_timezone="UTC", time="12:00",
             target_timezone="Asia/Tokyo")  # fmt: skip
        assert "T21:00:00" in results(model)[-1]
        turn(service, listener, 2, "every__get-env")
        assert "from the file" in results(model)[-1]
        assert not [note for note in listener.notes if "left out" in note]
