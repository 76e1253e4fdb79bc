"""MCP servers in a real cell: they start with the spare, serve the turns of their worker and end with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.acceptance.sight import uses
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

SOURCE = (Path(__file__).resolve().parents[1] / "tool_server.py").read_text()


def server(mode: str) -> str:
    """The line of a table [mcp.NAME]; the program is an argument, since a cell does not see the tests."""
    return "command = " + json.dumps(["/usr/bin/python3", "-c", SOURCE, mode])


def results(model: FakeModel) -> list[str]:
    return [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]


def call(name: str, **arguments: Any) -> str:
    return uses([(name, arguments)])


def test_a_turn_uses_a_server_and_the_next_one_the_same_process(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1", **{"mcp.s": server("good"), "mcp.bad": server("exits")})
    listener = service.listen("a")
    service.say("a", call("s__where"))
    assert listener.ending("a/1").type == "turn.done"
    first = results(model)
    service.say("a", call("s__where"))
    assert listener.ending("a/2").type == "turn.done"
    assert results(model)[-1] == first[-1]
    assert "the MCP server bad is left out" in str(listener.notes)


def test_after_an_interrupt_in_a_call_nothing_is_left_and_the_next_turn_works(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1", **{"mcp.s": server("good")})
    listener = service.listen("a")
    service.say("a", call("s__where"))
    listener.ending("a/1")
    service.say("a", call("s__wait"))
    listener.until(lambda: listener.of_type("tool.started")[1:])
    (busy,) = [row for row in service.show("workers") if row["state"] == "busy"]
    tree = psutil.Process(busy["pid"]).children(recursive=True)
    assert tree
    service.interrupt("a")
    ended = listener.ending("a/2")
    assert ended.type == "turn.interrupted"
    until(lambda: not any(each.is_running() for each in tree))
    service.say("a", call("s__add", a=1, b=2))
    assert listener.ending("a/3").type == "turn.done"
    assert results(model)[-1] == "3"


def test_a_question_of_a_server_is_asked_and_its_call_goes_on_with_the_answer(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1", **{"mcp.s": server("good")})
    listener = service.listen("a")
    service.say("a", call("s__book"))
    listener.until(lambda: listener.of_type("question.asked"))
    service.say("a", "window")
    assert listener.ending("a/1").type == "turn.done"
    assert any(text.startswith("booked window") for text in results(model))


def test_a_reload_gives_the_first_server_to_an_agent_and_takes_the_last_one_away(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1")
    listener = service.listen("a")
    service.say("a", "some words")
    assert listener.ending("a/1").type == "turn.done"
    file = service.home / "hermes.toml"
    before = file.read_text()
    file.write_text(f"{before}\n[mcp.s]\n{server('good')}\n")
    assert service.hermesctl("reload").returncode == 0
    service.say("a", call("s__add", a=1, b=2))
    assert listener.ending("a/2").type == "turn.done"
    assert results(model)[-1] == "3"
    file.write_text(before)
    assert service.hermesctl("reload").returncode == 0
    service.say("a", call("s__add", a=1, b=2))
    assert listener.ending("a/3").type == "turn.done"
    assert "there is no tool of that name" in results(model)[-1]
