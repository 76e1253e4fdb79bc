"""hermes-agent as it is published, under the host: what a turn, an interrupt, a crash and a question do."""

import json
import os
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zmq

from ipc import foreign_python
from ipc.places import find_places
from tests.agents_real.peers import peer
from tests.fake_model import FakeModel
from tests.service import Listener, Service

# The first turn waits for the zygote, which imports hermes-agent and lets it answer a turn.
PATIENCE_SECONDS = 120
# It ends neither when it is asked to, nor when its standard streams close.
STUBBORN = "trap '' TERM INT HUP; while :; do sleep 1; done"


@pytest.fixture
def serve(tmp_path: Path, make_service: Callable[..., Service]) -> Callable[..., Service]:
    """Starts a service whose agent is hermes-agent; `more` are further lines of its table."""
    python = peer("hermes-agent").folder / "bin/python"
    lay_packages(tmp_path / "home0", str(python))

    def begin(more: str = "") -> Service:
        agent = f'kind = "hermes"\npython = "{python}"\n{more}'
        return make_service(**{"agents.default": agent, "workers": "count = 1"})

    return begin


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    return serve()


def lay_packages(home: Path, python: str) -> None:
    """As `hermesctl agents add` does, from the environment of the tests, whose Python is the same."""
    home.mkdir()
    version, _ = foreign_python.version(python)
    folder = Path(foreign_python.folder(find_places(str(home)), version))
    folder.mkdir(parents=True)
    for module in (msgspec, zmq):
        found = Path(module.__file__ or "").parent
        shutil.copytree(found, folder / found.name)
        libraries = found.with_name("pyzmq.libs")
        if module is zmq and libraries.exists():
            shutil.copytree(libraries, folder / libraries.name)


def command(line: str) -> str:
    return f"[[tools name=terminal arguments={json.dumps(json.dumps({'command': line}))}]] please"


def say(service: Service, listener: Listener, turn: str, text: str) -> str:
    service.say("s", text, busy="queue")
    ended = listener.ending(turn, PATIENCE_SECONDS)
    assert ended.type == "turn.done", ended
    return str(ended.fields["text"])


def running_tool(listener: Listener) -> None:
    listener.until(lambda: listener.of_type("tool.started"), PATIENCE_SECONDS)


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


def test_an_interrupt_takes_a_stream_and_a_stubborn_tool_and_the_next_turn_answers(service: Service) -> None:
    listener = service.listen("s")
    service.say("s", "[[slow count=1000]]")
    listener.until(lambda: "word1" in listener.words, PATIENCE_SECONDS)
    service.interrupt("s")
    ended = listener.ending("s/1")
    assert ended.type == "turn.interrupted"
    assert ended.fields["partial"].startswith("word0 word1")
    service.say("s", command(STUBBORN))
    running_tool(listener)
    service.interrupt("s")
    ended = listener.ending("s/2")
    assert ended.fields["killed"]["all_dead"]
    assert say(service, listener, "s/3", "hello") == "You said: hello"


def asked(listener: Listener) -> str:
    listener.until(lambda: listener.of_type("question.asked"), PATIENCE_SECONDS)
    return str(listener.of_type("question.asked")[-1].fields["text"])


@pytest.mark.parametrize(("answer", "is_left"), [("yes", False), ("no", True)])
def test_a_dangerous_command_waits_for_its_approval(
    service: Service, model: FakeModel, answer: str, is_left: bool
) -> None:
    listener = service.listen("s")
    say(service, listener, "s/1", command("mkdir -p precious/things"))
    service.say("s", command("rm -rf precious"))
    assert "rm -rf precious" in asked(listener)
    service.hermesctl("answer", "s/2#1", answer)
    assert listener.ending("s/2", PATIENCE_SECONDS).type == "turn.done"
    assert len(listener.of_type("attempt.opened")) == 2  # within `hold`, in the same process
    say(service, listener, "s/3", command("ls -d precious || echo gone"))
    (result,) = [event for event in listener.of_type("tool.finished") if event.fields["turn"] == "s/3"]
    assert result
    seen = str(model.requests()[-1].messages[-1]["content"])
    assert ("gone" not in seen) is is_left, seen


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


def test_a_clarification_is_a_question(service: Service, model: FakeModel) -> None:
    listener = service.listen("s")
    arguments = json.dumps({"question": "Which colour?", "choices": ["red", "blue"]})
    service.say("s", f"[[tools name=clarify arguments={json.dumps(arguments)}]] please")
    assert asked(listener) == "Which colour?"
    service.hermesctl("answer", "s/1#1", "blue")
    assert listener.ending("s/1", PATIENCE_SECONDS).type == "turn.done"
    assert "blue" in str(model.requests()[-1].messages)


def test_a_steer_arrives_with_the_result_of_the_running_tool(service: Service, model: FakeModel) -> None:
    listener = service.listen("s")
    service.say("s", command("while [ ! -e go ]; do sleep 0.1; done"))
    running_tool(listener)
    service.say("s", "to the left", busy="steer")
    (workspace,) = service.places.workspaces.iterdir()
    (workspace / "go").touch()
    assert listener.ending("s/1", PATIENCE_SECONDS).type == "turn.done"
    assert "to the left" in str(model.requests()[-1].messages[-1])


def test_a_crash_in_a_tool_is_resumed_with_what_is_known_of_it(service: Service, model: FakeModel) -> None:
    listener = service.listen("s")
    service.say("s", command(STUBBORN))
    running_tool(listener)
    os.kill(listener.of_type("attempt.opened")[0].fields["pid"], signal.SIGKILL)
    ended = listener.ending("s/1", PATIENCE_SECONDS)
    assert (ended.type, ended.fields["text"]) == ("turn.done", "Done.")
    assert "outcome unknown" in str(model.requests()[-1].messages)


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
