"""What `[sandbox]` says holds for the commands of a turn."""

from collections.abc import Callable

from tests.acceptance.sight import shell
from tests.fake_model import FakeModel
from tests.service import Service

_CONNECTS = (
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' 2>&1 | tail -n 1"
)
_UNIX = "python3 -c 'import socket; print(*(each.family.name for each in socket.socketpair()))'"


def ran(service: Service, model: FakeModel, session: str, command: str) -> str:
    """What the model was told that the command has written."""
    asked = len(model.requests())
    service.say(session, shell(command))
    assert service.listen(session).ending(f"{session}/1").type == "turn.done"
    return str(model.requests()[asked + 1].messages[-1]["content"])


def test_tools_without_network_reach_nothing_and_the_agent_still_reaches_its_model(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    connects = _CONNECTS.format(port=model.base_url.rpartition(":")[2].partition("/")[0])
    closed = make_service(workers="count = 1", sandbox='network = "none"')
    result = ran(closed, model, "closed", f"{connects}; {_UNIX}")
    assert "PermissionError" in result
    assert "AF_UNIX AF_UNIX" in result
    assert "Error" not in ran(make_service(workers="count = 1"), model, "open", connects)
