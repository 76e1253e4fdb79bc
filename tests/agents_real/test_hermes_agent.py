"""hermes-agent as it is published, under the host: what the scenarios of all kinds do not show of it."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents_real.packages import lay_packages
from tests.agents_real.peers import peer
from tests.fake_model import FakeModel
from tests.service import Listener, Service

# The first turn waits for the zygote, which imports hermes-agent and lets it answer a turn.
PATIENCE_SECONDS = 120


@pytest.fixture
def serve(tmp_path: Path, make_service: Callable[..., Service]) -> Callable[..., Service]:
    """Starts a service whose agent is hermes-agent; `more` are further lines of its table, then of others."""
    python = peer("hermes-agent").folder / "bin/python"
    (tmp_path / "home0").mkdir()
    lay_packages(tmp_path / "home0", str(python))

    def begin(more: str = "", **tables: str) -> Service:
        agent = f'kind = "hermes"\npython = "{python}"\n{more}'
        return make_service(**{"agents.default": agent, "workers": "count = 1"}, **tables)

    return begin


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    return serve()


def command(line: str) -> str:
    return f"[[tools name=terminal arguments={json.dumps(json.dumps({'command': line}))}]] please"


def say(service: Service, listener: Listener, turn: str, text: str) -> str:
    service.say("s", text, busy="queue")
    ended = listener.ending(turn, PATIENCE_SECONDS)
    assert ended.type == "turn.done", ended
    return str(ended.fields["text"])


def test_turns_with_a_tool_and_their_history(service: Service, model: FakeModel) -> None:
    listener = service.listen("s")
    assert say(service, listener, "s/1", "hello") == "You said: hello"
    assert say(service, listener, "s/2", command("echo one; pwd")) == "Done."
    (started,), (finished,) = listener.of_type("tool.started"), listener.of_type("tool.finished")
    assert started.fields["name"] == "terminal"
    assert finished.fields["ok"]
    # The same worker goes on, with what the journal knows.
    assert "assistant, user" in say(service, listener, "s/3", "[[recite]]")
    assert len({event.fields["pid"] for event in listener.of_type("attempt.opened")}) == 1
    assert all(event.fields["usage"]["output_tokens"] > 0 for event in listener.of_type("turn.done"))


def asked(listener: Listener) -> str:
    listener.until(lambda: listener.of_type("question.asked"), PATIENCE_SECONDS)
    return str(listener.of_type("question.asked")[-1].fields["text"])


def test_the_agent_cannot_switch_its_approvals_off(service: Service) -> None:
    listener = service.listen("s")
    # Written so that hermes-agent itself does not take it for dangerous.
    disguised = (
        "mkdir precious; for f in .hermes-agent/conf*; do echo 'approvals: {mode: \"off\"}' > $f; done"
    )
    lines = (disguised, "rm -rf precious")
    rounds = (json.dumps([{"name": "terminal", "arguments": {"command": line}}]) for line in lines)
    calls = shlex.quote(f"[ {', '.join(rounds)} ]")
    service.say("s", f"[[tools calls={calls}]] please")
    assert "rm -rf precious" in asked(listener)


def test_a_home_of_the_user_names_the_model(
    serve: Callable[..., Service], tmp_path: Path, model: FakeModel
) -> None:
    home = tmp_path / "theirs"
    home.mkdir()
    named = {
        "default": "of-the-home",
        "provider": "custom",
        "base_url": model.base_url,
        "api_key": "sk-of-the-home",
        "api_mode": "chat_completions",
        "context_length": 128_000,
    }
    (home / "config.yaml").write_text(json.dumps({"model": named, "agent": {"environment_probe": False}}))
    for path in (home, home / "config.yaml"):
        path.chmod(0o777)  # where the service runs as root, its agents are another user
    service = serve(f'home = "{home}"')
    assert say(service, service.listen("s"), "s/1", "hello") == "You said: hello"
    assert (model.requests()[-1].model, model.requests()[-1].key) == ("of-the-home", "sk-of-the-home")
    assert (home / "sessions").exists()


def test_rules_hold_for_its_tools(serve: Callable[..., Service], model: FakeModel) -> None:
    service = serve('deny = ["terminal(touch *)"]\nask = ["write_file"]')
    listener = service.listen("s")
    assert say(service, listener, "s/1", command("echo ok; touch mark")) == "Done."
    assert "denied by a rule of [agents.default]" in str(model.requests()[-1].messages[-1]["content"])
    arguments = json.dumps({"path": "note", "content": "words"})
    service.say("s", f"[[tools name=write_file arguments={json.dumps(arguments)}]] please")
    assert asked(listener).startswith("Allow write_file?")
    service.hermesctl("answer", "s/2#1", "yes")
    assert listener.ending("s/2", PATIENCE_SECONDS).type == "turn.done"
    say(service, listener, "s/3", command("ls"))
    seen = str(model.requests()[-1].messages[-1]["content"])
    assert "note" in seen
    assert "mark" not in seen


def test_the_third_identical_call_asks(service: Service) -> None:
    listener = service.listen("s")
    rounds = ", ".join(['[ {"name": "terminal", "arguments": {"command": "date"}} ]'] * 3)
    service.say("s", f"[[tools calls={shlex.quote(f'[ {rounds} ]')}]] please")
    assert "terminal is to run 3 times in a row" in asked(listener)
    assert len(listener.of_type("tool.finished")) == 2
    service.hermesctl("answer", "s/1#1", "no")
    assert listener.ending("s/1", PATIENCE_SECONDS).type == "turn.failed"


def test_a_budget_asks_before_more_is_used(serve: Callable[..., Service]) -> None:
    service = serve(**{"budgets.turn": "tokens_max = 1"})
    listener = service.listen("s")
    service.say("s", command("date"))
    # Before the tool: its reply has used more than that.
    assert "[budgets.turn] tokens_max allows 1 tokens" in asked(listener)
    service.hermesctl("answer", "s/1#1", "no")
    ended = listener.ending("s/1", PATIENCE_SECONDS)
    assert ended.type == "turn.failed"
    assert ended.fields["usage"]["input_tokens"] > 0


@pytest.mark.parametrize("mode", ["401", "429", "500"])
def test_a_fallback_answers(serve: Callable[..., Service], model: FakeModel, mode: str) -> None:
    names = {"models.first": f"fake:{mode}", "models.second": "fake:normal"}
    tables = {table: f'base_url = "{model.base_url}"\nname = "{name}"' for table, name in names.items()}
    service = serve('model = "first"\nfallback = ["second"]', **tables)
    listener = service.listen("s")
    service.say("s", "hello")
    ended = listener.ending("s/1", PATIENCE_SECONDS)
    assert ended.type == "turn.done", ended
    assert (ended.fields["text"], ended.fields["model"]) == ("You said: hello", "fake:normal")
