"""Requests that the model server refuses: too long a conversation is cut, other refusals are shown."""

import json
import shlex
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.service import Service, settings_for

KEY = "sk-the-key-of-this-test"


@pytest.mark.parametrize("kind", ["openai", "llama.cpp", "vllm", "413"])
def test_a_conversation_that_is_too_long_is_cut_and_that_is_told_once(
    service: Service, model: FakeModel, kind: str
) -> None:
    listener = service.listen("demo")
    for number in range(1, 7):
        service.say("demo", f"[[normal text={'x' * 700}]] question {number}")
        listener.ending(f"demo/{number}")
    sent = service.hermesctl("send", "demo", f"[[normal context=3500 overflow={kind} text=Short.]]")
    assert (sent.returncode, sent.stdout) == (0, "Short.\n")
    assert sent.stderr.count("too long for the model") == 1
    assert "question 6" in str(model.requests()[-1].messages)
    assert "question 1" not in str(model.requests()[-1].messages)
    assert listener.ending("demo/7").fields["finish"] == "stop"
    assert listener.types().count("attempt.opened") == 7


def test_a_turn_that_grows_too_long_between_tool_calls_goes_on(service: Service, model: FakeModel) -> None:
    rounds = [
        [{"name": "shell", "arguments": {"command": f"printf %09000d {number}"}}] for number in range(5)
    ]
    calls = shlex.quote(json.dumps(rounds).replace("]]", "] ]"))
    sent = service.hermesctl("send", "demo", f"[[tools calls={calls} context=25000 overflow=llama.cpp]] read")
    assert (sent.returncode, sent.stdout) == (0, "Done.\n")
    assert sent.stderr.count("too long for the model") == 1
    results = [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]
    assert ["left out for lack of room" in result for result in results] == [True, True, True, True, False]
    whole = service.show(
        "output", id="demo/1", call=str(model.requests()[-1].messages[2]["tool_calls"][0]["id"])
    )
    assert len(whole[0]["result"]) > 9_000


def logged(service: Service) -> str:
    return "".join(
        path.read_text(errors="replace") for path in service.home.rglob("*.log*") if path.is_file()
    )


@pytest.mark.parametrize(
    "mode", ["400", "401", "401 status=403", "404 kind=model"], ids=["400", "401", "403", "404"]
)
def test_a_refusal_that_no_retry_mends_shows_the_servers_words_and_logs_none_of_them(
    tmp_path: Path, model: FakeModel, mode: str
) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    settings = settings_for(model, workers="count = 1").replace("[model]", f'[model]\napi_key_file = "{key}"')
    with Service(tmp_path / "home", settings) as service:
        sent = service.hermesctl("send", "demo", f'[[{mode} message="An unusual thing about {KEY}"]] hello')
        assert sent.returncode == 4
        assert "“An unusual thing about [key]”" in sent.stderr
        assert KEY not in sent.stderr
        ending = service.listen("demo").ending("demo/1")
        assert "An unusual thing about [key]" in ending.fields["error"]
        assert "turn.failed" in logged(service)
        assert "unusual" not in logged(service)
        assert KEY not in logged(service)
    assert len(model.requests()) == 1
