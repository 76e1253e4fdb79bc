"""The whole service with a model server that means harm: its turn fails by name, all else goes on."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.core.reasons import EndReason, Reason
from tests.acceptance.sight import descendants
from tests.fake_model import FakeModel
from tests.raw_server import raw_server
from tests.service import Service, settings_for
from tests.waiting import until

KEY = "sk-the-key-of-this-test"
# What the supervisor may grow by while a server wants gigabytes of it.
GROWTH_BYTES_MAX = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    """One for all tests here: none of them may end it."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    home.mkdir()
    key = home / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    settings = settings_for(model_server, workers='count = 2\nmemory_max = "512MiB"')
    settings = settings.replace("[model]", f'[model]\napi_key_file = "{key}"')
    with Service(home, settings) as running:
        yield running


def content(*events: Any, times: str = "") -> str:
    """A directive for any events at all."""
    packed = base64.b64encode(json.dumps(events).encode()).decode()
    return f"[[content events={packed}{times}]] please"


def call(arguments: str, name: str = "shell") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"index": 0, "id": "c1", "type": "function", "function": function}]
    return {"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}


CRUELTIES = {
    "redirect": ("[[redirect]]", "redirects to http://127.0.0.1:9"),
    "bomb": ("[[bomb]]", "packs its answers"),
    "bomb in an error": ("[[bomb status=500]]", "packs its answers"),
    "endless line": ("[[endless kind=line]]", "more than one answer may hold"),
    "endless event": ("[[endless kind=event]]", "more than one answer may hold"),
    "endless error": ("[[endless kind=error]]", "more than one answer may hold"),
    "endless header": ("[[endless kind=header]]", "does not keep to HTTP"),
    "huge usage": (f"[[usage tokens={2**63}]]", "a number of tokens that cannot be"),
    "huger usage": (f"[[usage tokens={10**40}]]", "a number of tokens that cannot be"),
    "nested": ("[[nested]]", "not an OpenAI chat stream"),
    "calls": ("[[flood kind=calls]]", "more than one answer may hold"),
    "arguments": ("[[flood kind=arguments]]", "more than one answer may hold"),
    "types": (content({"choices": [{"delta": {"tool_calls": 7}}]}), "not an OpenAI chat stream"),
}


@pytest.mark.parametrize("name", CRUELTIES)
def test_h15_a_hostile_server_fails_its_turn_by_name_and_nothing_else(service: Service, name: str) -> None:
    directive, sentence = CRUELTIES[name]
    before = service.status()
    session = name.replace(" ", "-")
    service.say(session, f"{directive} please")
    listener = service.listen(session)
    failed = listener.ending(f"{session}/1")
    assert failed.type == "turn.failed", failed.fields
    assert sentence in failed.fields["error"]
    assert failed.fields["hint"]
    assert KEY not in str(failed.fields)
    # Not one worker was lost over it, so no memory limit was met either.
    assert listener.of_type("attempt.lost") == []
    service.say(session, "and now?")
    assert listener.ending(f"{session}/2").type == "turn.done"
    after = service.status()
    assert after["pid"] == before["pid"]
    assert after["memory_bytes"] - before["memory_bytes"] < GROWTH_BYTES_MAX


def test_h15_neither_the_conversation_nor_the_key_goes_elsewhere(
    service: Service, model_server: FakeModel
) -> None:
    model_server.reset()
    with raw_server(lambda: iter(())) as elsewhere:
        service.say("moved", f"[[redirect to={elsewhere.base_url}/chat/completions]] a secret of mine")
        failed = service.listen("moved").ending("moved/1")
        assert f"redirects to http://127.0.0.1:{elsewhere.port}" in failed.fields["error"]
        assert elsewhere.heard == []
    assert [request.key for request in model_server.requests()] == [KEY]


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ('{"command": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deeply"),
        ('{"command": ', "not valid JSON"),
        ("[" * 50_000, "nested too deeply"),
        ('"text"', "not a JSON object"),
        ('{"command": "echo \\u0000"}', "error"),
        ('{"command": 7, "timeout_seconds": NaN}', "error"),
        (json.dumps({"command": "true", "timeout_seconds": 10**400}), "error"),
    ],
    ids=["deep", "broken", "deep list", "text", "nul", "nan", "digits"],
)
def test_h15_wrong_arguments_are_an_error_of_the_call(
    service: Service, model_server: FakeModel, request: pytest.FixtureRequest, arguments: str, result: str
) -> None:
    model_server.reset()
    session = f"arguments-{request.node.callspec.id.replace(' ', '-')}"
    service.say(session, content(call(arguments), times=" times=1"))
    listener = service.listen(session)
    assert listener.ending(f"{session}/1").type == "turn.done"
    assert listener.of_type("attempt.lost") == []
    [finished] = listener.of_type("tool.finished")
    assert not finished.fields["ok"]
    told = [message for message in model_server.requests()[-1].messages if message["role"] == "tool"]
    assert result in told[-1]["content"]


def test_h15_a_question_with_wrong_arguments_is_an_error_of_the_call(service: Service) -> None:
    service.say("question", content(call("[" * 50_000, name="ask"), times=" times=1"))
    assert service.listen("question").ending("question/1").type == "turn.done"


def test_h15_text_that_no_journal_can_hold_is_replaced(service: Service, tmp_path: Path) -> None:
    service.say("halves", "[[halves]] please")
    done = service.listen("halves").ending("halves/1")
    assert done.fields["text"] == "smile 😀 lone � and � nul �."
    service.say("halves-2", "[[halves kind=call times=1]] please")
    assert service.listen("halves-2").ending("halves-2/1").type == "turn.done"


def test_h15_the_processes_of_the_service_are_those_of_before(service: Service) -> None:
    """After all of the above: the same supervisor, and no worker that has died of it."""
    assert service.process is not None
    assert service.status()["pid"] == service.process.pid
    until(lambda: service.status()["busy"] == 0)
    assert len(descendants(service.process.pid)) >= 4
    # One that makes room for another session is ended by the supervisor, at any time.
    assert {row["words"] for row in service.show("workers")} <= {"", str(Reason(EndReason.KILLED))}
    assert "attempt.lost" not in service.log()
