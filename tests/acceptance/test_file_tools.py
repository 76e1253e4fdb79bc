"""The file tools in a real cell: they see what a command sees, and reach what a command reaches."""

from collections.abc import Callable
from typing import Any

from tests.acceptance.sight import uses
from tests.fake_model import FakeModel
from tests.service import Service


def results(
    service: Service, model: FakeModel, session: str, *calls: tuple[str, dict[str, Any]]
) -> list[str]:
    """What the model gets back of these calls, each in a reply of its own."""
    service.say(session, uses(*([call] for call in calls)))
    assert service.listen(session).ending(f"{session}/1").type == "turn.done"
    return [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]


def test_a_file_that_one_tool_writes_is_there_for_the_others(service: Service, model: FakeModel) -> None:
    made, changed, shown, ran = results(
        service,
        model,
        "files",
        ("write", {"path": "notes/list.txt", "content": "tea\nmilk\n"}),
        ("edit", {"path": "notes/list.txt", "old": "milk", "new": "honey"}),
        ("read", {"path": "~/notes/list.txt"}),
        ("shell", {"command": "cat notes/list.txt"}),
    )
    assert made.startswith("made notes/list.txt")
    assert changed == "replaced 1 passage in notes/list.txt"
    assert shown == "tea\nhoney\n"
    assert ran.endswith("tea\nhoney\n")


def test_the_rest_of_a_long_output_is_read_from_its_file(service: Service, model: FakeModel) -> None:
    ran, shown = results(
        service,
        model,
        "long",
        ("shell", {"command": "seq 20000"}),
        ("read", {"path": "/workspace/.hermes-outputs/1.txt", "first_line": 10_000, "lines": 2}),
    )
    assert "[cut: all of it is in /workspace/.hermes-outputs/1.txt; read it there]\n1\n2\n" in ran
    assert "\n10000\n" not in ran
    assert shown == "[lines 10000 to 10001 of 20000]\n10000\n10001\n"


def test_h3_a_path_outside_the_cell_is_not_there_for_file_tools(service: Service, model: FakeModel) -> None:
    """The settings and the journal of the service are hidden from an agent, whichever tool it uses."""
    read, _, memory = results(
        service,
        model,
        "outside",
        ("read", {"path": str(service.places.journal)}),
        ("write", {"path": str(service.home / "hermes.toml"), "content": "taken over"}),
        ("read", {"path": "/proc/1/environ"}),
    )
    assert read.startswith("error: ")
    assert "taken over" not in (service.home / "hermes.toml").read_text()
    assert "KEY" not in memory


def test_fetch_is_held_by_the_network_of_the_sandbox(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    url = f"{model.base_url}/models"
    asked = ("fetch", {"url": url})
    private = {"agents.default": "fetch_private = true"}
    assert "private network" in results(make_service(workers="count = 1"), model, "refused", asked)[0]
    allowed = make_service(workers="count = 1", **private)
    assert "status 200" in results(allowed, model, "open", asked)[0]
    closed = make_service(workers="count = 1", **private, sandbox='network = "none"')
    assert "cannot be fetched" in results(closed, model, "closed", asked)[0]
