"""ACP agents that people use, in real cells, with a scripted model: each goes through the same life."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.agents_real.peers import peer
from tests.fake_model import FakeModel
from tests.service import Listener, Service, settings_for
from tests.waiting import until

# A large program that starts on a busy machine, and its own retries.
_TURN_SECONDS_MAX = 150


@dataclass
class Scene:
    """A service with one agent; `tool` is the name by which its model calls its shell."""

    service: Service
    model: FakeModel
    tool: str
    listener: Listener
    turns: int = 0

    def say(self, text: str) -> str:
        """Sends a message; returns the name of its turn."""
        self.turns += 1
        self.service.say("a", text, busy="queue")
        return f"a/{self.turns}"

    def answer(self, text: str) -> str:
        """The answer of a turn that ends well."""
        turn = self.say(text)
        ended = self.listener.ending(turn, _TURN_SECONDS_MAX)
        assert ended.type == "turn.done", ended.fields
        return str(ended.fields["text"])

    def runs(self, command: str) -> None:
        """From now on the model calls the agent's shell, then says `Done.`"""
        call = {"name": self.tool, "arguments": {"command": command, "description": "as asked"}}
        self.model.set_mode("tools", calls=[call])

    def results(self) -> list[str]:
        """The results of tools that the model was given last."""
        requests = [each for each in self.model.requests() if each.tools]
        return [str(each["content"]) for each in requests[-1].messages if each["role"] == "tool"]

    def said(self, since: int) -> list[str]:
        """What the person said, as the model was given it in these requests; agents ask for titles too."""
        requests = [each for each in self.model.requests()[since:] if each.tools]
        return [str(each["content"]) for each in requests[-1].messages if each["role"] == "user"]

    def processes(self) -> list[psutil.Process]:
        """All processes of the worker that answers."""
        (busy,) = [row for row in self.service.show("workers") if row["state"] == "busy"]
        children: list[psutil.Process] = psutil.Process(busy["pid"]).children(recursive=True)
        return children

    def names(self) -> list[str]:
        """Names of these processes; one that ends meanwhile has none."""
        found = []
        for each in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(each.name())
        return found

    def interrupt(self, turn: str) -> None:
        """Interrupts the turn; returns when none of the worker's processes is left."""
        tree = self.processes()
        assert tree
        self.service.interrupt("a")
        assert self.listener.ending(turn, _TURN_SECONDS_MAX).type == "turn.interrupted"
        until(lambda: not any(each.is_running() for each in tree))


def opencode(home: Path, model: FakeModel) -> dict[str, str]:
    found = peer("opencode")
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.base_url, "apiKey": "none"},
        "models": {"fake": {"name": "fake"}},
    }
    settings = {
        "model": "local/fake",
        "small_model": "local/fake",
        "provider": {"local": provider},
        "permission": {"bash": {"*": "allow", "rm *": "ask"}, "edit": "allow"},
    }
    folder = home / "opencode"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "config.json").write_text(json.dumps(settings))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    environment = {"OPENCODE_CONFIG": str(folder / "config.json")} | {
        f"OPENCODE_DISABLE_{each}": "1" for each in switches
    }
    return _tables([str(found.program), "acp"], environment, [found.folder, folder])


def claude(home: Path, model: FakeModel) -> dict[str, str]:
    """Claude Code asks its model by Anthropic's API, at an address without the version."""
    found = peer("claude-agent-acp")
    environment = {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": model.base_url.removesuffix("/v1"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    return _tables([str(found.program)], environment, [found.folder])


def hermes(home: Path, model: FakeModel) -> dict[str, str]:
    found = peer("hermes-agent")
    folder = home / "hermes"
    folder.mkdir(parents=True)
    settings = {
        "model": {
            "default": "fake",
            "provider": "custom",
            "base_url": model.base_url,
            "api_key": "none",
            "api_mode": "chat_completions",
            "context_length": 100_000,
        },
        "agent": {"environment_probe": False},
        "approvals": {"mode": "manual"},
    }
    # JSON is YAML too.
    (folder / "config.yaml").write_text(json.dumps(settings))
    folder.chmod(0o777)
    tables = _tables([str(found.program), "acp"], {"HERMES_HOME": str(folder)}, [found.folder])
    tables["agents.default.sandbox"] += f"\nwrite = {json.dumps([str(folder)])}"
    return tables


def _tables(command: list[str], environment: dict[str, str], folders: list[Path]) -> dict[str, str]:
    variables = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
    agent = f'kind = "acp"\ncommand = {json.dumps(command)}\nenv = {{ {variables} }}'
    return {
        "workers": "count = 1",
        "agents.default": agent + '\nask = ["execute(*rm -r*)"]',
        "agents.default.sandbox": f"read = {json.dumps([str(folder) for folder in folders])}",
    }


_AGENTS: dict[str, tuple[Callable[[Path, FakeModel], dict[str, str]], str]] = {
    "opencode": (opencode, "bash"),
    "Claude Code": (claude, "Bash"),
    "hermes acp": (hermes, "terminal"),
}


@pytest.fixture(params=_AGENTS)
def scene(request: pytest.FixtureRequest, tmp_path: Path, model: FakeModel) -> Iterator[Scene]:
    tables, tool = _AGENTS[request.param]
    with Service(tmp_path / "home", settings_for(model, **tables(tmp_path, model))) as service:
        yield Scene(service, model, tool, service.listen("a"))


def test_a_fresh_turn_and_a_tool(scene: Scene) -> None:
    assert "hello" in scene.answer("hello")
    scene.runs("echo $((6 * 7))")
    assert "Done." in scene.answer("count")
    (started,) = scene.listener.of_type("tool.started")
    (finished,) = scene.listener.of_type("tool.finished")
    assert started.fields["call"] == finished.fields["call"]
    assert finished.fields["ok"]
    assert any("42" in result for result in scene.results())


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_permission_is_a_question(scene: Scene, answer: str) -> None:
    scene.runs("mkdir precious")
    scene.answer("make it")
    (workspace,) = scene.service.places.workspaces.iterdir()
    scene.runs("rm -rf precious")
    turn = scene.say("remove it")
    scene.listener.until(lambda: scene.listener.of_type("question.asked"), _TURN_SECONDS_MAX)
    (asked,) = scene.listener.of_type("question.asked")
    assert "rm -rf precious" in asked.fields["text"]
    assert (workspace / "precious").is_dir()
    scene.service.hermesctl("answer", f"{turn}#1", answer)
    # opencode has nothing to say after a denial.
    assert scene.listener.ending(turn, _TURN_SECONDS_MAX).type in ("turn.done", "turn.failed")
    assert (workspace / "precious").is_dir() is (answer == "no")


def test_an_interrupt_in_the_stream(scene: Scene) -> None:
    scene.answer("hello")
    scene.model.set_mode("slow", interval=0.05, count=100_000)
    heard = len(scene.listener.words)
    turn = scene.say("tell me a story")
    scene.listener.until(lambda: len(scene.listener.words) > heard, _TURN_SECONDS_MAX)
    scene.interrupt(turn)
    scene.model.set_mode("normal", text="here again")
    assert "here again" in scene.answer("are you there?")


def test_an_interrupt_in_a_tool(scene: Scene) -> None:
    """`hermes acp` 0.19, only cancelled here, would not answer the next prompt."""
    scene.answer("hello")
    scene.runs("sleep 1000 | sleep 1000")
    turn = scene.say("wait")
    scene.listener.until(lambda: scene.listener.of_type("tool.started"), _TURN_SECONDS_MAX)
    until(lambda: scene.names().count("sleep") == 2)
    scene.interrupt(turn)
    scene.model.set_mode("normal", text="here again")
    before = len(scene.model.requests())
    assert "here again" in scene.answer("are you there?")
    # The session was loaded: the model is given the conversation from its beginning.
    assert any("hello" in said for said in scene.said(before))


def test_a_session_is_loaded_after_the_service_was_killed(scene: Scene) -> None:
    scene.model.set_mode("normal", text="I keep it as granite")
    scene.answer("the word is basalt")
    scene.service.kill()
    scene.service.start()
    scene.listener = scene.service.listen("a")
    before = len(scene.model.requests())
    scene.answer("which word?")
    # Loaded, or a note says that it was not; what the agent had not stored is in the prompt.
    assert any("the word is basalt" in said for said in scene.said(before))
    # Claude Code stores its session some time after its answer.
    is_stored_late = scene.tool == "Bash"
    assert not [note for note in scene.listener.notes if not is_stored_late or "could not load" not in note]
    requests = [each for each in scene.model.requests()[before:] if each.tools]
    assert "I keep it as granite" in str(requests[-1].messages)
