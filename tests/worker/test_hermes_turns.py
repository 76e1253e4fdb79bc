"""Turns of an AIAgent in the test's own process: what one leaves to the next, and what its results are."""

import asyncio
import logging
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.bounds import NAME_CHARACTERS_MAX, TEXT_CHARACTERS_MAX
from ipc.messages import AgentSpec, Assign, Failed, Finished, FromWorker, ModelEndpoint, PastAttempt, Setup
from tests.worker.peer import assign
from tests.worker.test_attempt import Desk
from worker import descendants
from worker.agents import agent_thread
from worker.agents.context import Host
from worker.agents.hermes import Hermes
from worker.agents.hermes_gate import name_of, written_arguments
from worker.agents.hermes_home import Home, write_home
from worker.agents.hermes_turns import HermesTurns, _is_ok, _stop_logging, _summary
from worker.attempt import Attempt

Script = Callable[[HermesTurns, str], Mapping[str, Any]]


class Agent:
    """Stands for AIAgent: `script` says what a conversation does, and gives its result."""

    def __init__(self) -> None:
        self.script: Script = lambda turns, text: {"final_response": text}
        self.turns: HermesTurns
        self.asked: list[tuple[str, list[Any]]] = []
        self.models: list[tuple[str, str]] = []
        self.ephemeral_system_prompt: str | None = None

    def run_conversation(self, text: str, conversation_history: Sequence[Any]) -> dict[str, Any]:
        self.asked.append((text, list(conversation_history)))
        return {"messages": ["all of it"], **self.script(self.turns, text)}

    def switch_model(self, model: str, provider: str, *, api_key: str, **more: str) -> None:
        self.models.append((model, api_key))


class Turns(HermesTurns):
    """With an AIAgent of the test."""

    def __init__(self, home: Home, agent: Agent) -> None:
        self._home = home
        self._has_own_model = False
        self._model = ModelEndpoint("", "")
        self._context = None
        self._gate = None
        self._calls = {}
        self._said = ""
        self._has_said = False
        self._agent = agent
        agent.turns = self


@pytest.fixture
def turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turns:
    """The modules of hermes-agent that a turn looks at are there."""
    plugins = SimpleNamespace(_hooks={}, _middleware={})
    for name, module in {
        "tools.approval": SimpleNamespace(set_hermes_interactive_context=lambda on: None),
        "tools.terminal_tool": SimpleNamespace(set_approval_callback=lambda callback: None),
        "tools.registry": SimpleNamespace(registry=SimpleNamespace(get_all_tool_names=lambda: ["touch"])),
        "agent.usage_pricing": SimpleNamespace(normalize_usage=None),
        "hermes_cli.plugins": SimpleNamespace(get_plugin_manager=lambda: plugins),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("HERMES_HOME", "")
    return Turns(Home(tmp_path), Agent())


def answered(turns: Turns, script: Script, work: Assign | None = None) -> FromWorker:
    """The end of a turn of which each conversation goes by the script."""
    turns._agent.script = script

    async def answer(attempt: Attempt) -> str:
        host = Host(attempt)
        await asyncio.to_thread(turns.answer, host, turns._home.path)
        host.close()
        return "stop"

    async def scene() -> FromWorker:
        desk = Desk()
        await Attempt(work or assign("http://127.0.0.1:1/v1"), desk.outbox).run(answer)
        return desk.last()

    return asyncio.run(scene())


def text_of(end: FromWorker) -> str:
    assert isinstance(end, Finished), end
    return end.text


def test_each_steer_that_came_after_the_last_tool_is_answered(turns: Turns) -> None:
    steers = {"hello": "and this", "and this": "and that"}

    def script(_: HermesTurns, text: str) -> dict[str, Any]:
        return {"final_response": f"To: {text}.", "pending_steer": steers.get(text)}

    end = answered(turns, script)
    assert text_of(end) == "To: hello.\n\nTo: and this.\n\nTo: and that."
    assert turns._agent.asked == [("hello", []), ("and this", ["all of it"]), ("and that", ["all of it"])]


def test_a_call_that_an_earlier_turn_left_open_is_none_of_this_one(turns: Turns) -> None:
    turns._calls["theirs"] = "call_1_1"
    assert text_of(answered(turns, lambda _, text: {"final_response": "Well."})) == "Well."


def test_only_what_follows_a_text_of_the_same_turn_begins_with_empty_lines(turns: Turns) -> None:
    def script(turns: HermesTurns, text: str) -> dict[str, Any]:
        turns._say("\n\n  indented")
        return {}

    for _ in range(2):
        assert text_of(answered(turns, script)) == "  indented"
    tried = replace(assign("", attempt=2, tried=(PastAttempt("So far.", (), "lost"),)), offset=7)
    assert text_of(answered(turns, script, tried)) == "\n\n  indented"


@pytest.mark.parametrize("said", [(), (" \n",), ("Let me look.", None)], ids=["nothing", "blank", "a tool"])
def test_an_answer_that_was_not_streamed_is_said_at_the_end(
    turns: Turns, said: tuple[str | None, ...]
) -> None:
    def script(turns: HermesTurns, text: str) -> dict[str, Any]:
        for each in said:
            turns._say(each)
        return {"final_response": "Done."}

    assert text_of(answered(turns, script)) == "".join(filter(None, said)) + "Done."


def test_an_answer_that_is_none_says_nothing(turns: Turns) -> None:
    assert text_of(answered(turns, lambda _, text: {"final_response": None})) == ""


def test_a_model_is_switched_to_when_anything_of_it_changes(turns: Turns) -> None:
    model = ModelEndpoint("http://127.0.0.1:1/v1", "m", "key-1")
    others = (replace(model, api_key=""), replace(model, name="n"), replace(model, base_url="http://b/v1"))
    for each in (model, model, *others, others[-1]):
        turns.use(each)
    assert turns._agent.models == [("m", "key-1"), ("m", "none"), ("n", "key-1"), ("m", "key-1")]


def test_a_question_offers_what_a_person_can_be_shown(turns: Turns) -> None:
    asked: list[tuple[str, list[str]]] = []

    def ask(text: str, choices: list[str]) -> str:
        asked.append((text, choices))
        return "7"

    turns._context = SimpleNamespace(ask=ask)  # type: ignore[assignment]
    assert turns._clarify("", ["", *map(str, range(30))]) == "7"
    turns._clarify("Which?")
    assert asked == [("?", [str(number) for number in range(20)]), ("Which?", [])]


@pytest.mark.parametrize(
    ("result", "is_ok"),
    [
        ('{"output": "x", "exit_code": 0, "error": null}', True),
        ('{"output": "x", "exit_code": 1}', False),
        ('{"error": "no such file"}', False),
        ('{"success": false}', False),
        ({"text": "a picture"}, True),
        ("plain words", True),
        ("[1, 2]", True),
    ],
)
def test_a_result_tells_whether_its_call_has_failed(result: object, is_ok: bool) -> None:
    assert _is_ok(result) is is_ok


def test_a_result_with_pictures_is_recorded_by_its_text() -> None:
    assert _summary({"text_summary": "a cat", "text": "long"}) == "a cat"
    assert _summary({"text": "a dog"}) == "a dog"
    assert _summary({"image": b"x"}) == "[no text]"


def test_names_and_arguments_of_calls_fit_their_record() -> None:
    assert (name_of(""), name_of("n" * 1000)) == ("unnamed", "n" * NAME_CHARACTERS_MAX)
    assert written_arguments({"path": Path("/é")}) == '{"path": "/é"}'
    length = TEXT_CHARACTERS_MAX + len('{"x": ""}')
    assert written_arguments({"x": "y" * TEXT_CHARACTERS_MAX}) == f'{{"left out": "{length} characters"}}'


def test_a_home_is_for_its_user_alone_and_keeps_its_settings(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    write_home(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    (home / "config.yaml").write_text("mine")
    write_home(home)
    assert (home / "config.yaml").read_text() == "mine"


def test_the_files_of_the_log_of_hermes_agent_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = [logging.FileHandler(tmp_path / name) for name in ("root", "queued")]
    logs = SimpleNamespace(_stop_queue_listener=lambda: None, _queued_file_handlers=[handlers[1]])
    monkeypatch.setitem(sys.modules, "hermes_logging", logs)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handlers[0]])
    _stop_logging()
    assert [type(each) for each in logging.getLogger().handlers] == [logging.NullHandler]
    assert [each.stream for each in handlers] == [None, None]


def test_a_model_that_a_spare_could_not_have_fails_no_turn_by_itself(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The turn asks for its own model; only if that fails, too, does it say why."""
    # The descriptors and the children of this process are the test's.
    monkeypatch.setattr(agent_thread, "divert_output", lambda agent: None)
    monkeypatch.setattr(descendants, "_reaps", True)
    monkeypatch.chdir(tmp_path)
    turns._home.path = tmp_path / ".hermes-agent"

    def refuse(*model: object, **more: object) -> None:
        raise ConnectionError

    async def scene() -> FromWorker:
        agent = Hermes(AgentSpec("mine", "hermes"), turns._home)
        agent._build = lambda: turns  # type: ignore[method-assign]
        switch, turns._agent.switch_model = turns._agent.switch_model, refuse
        await agent.set_up(Setup(AgentSpec("mine", "hermes"), model=ModelEndpoint("http://a/v1", "m")))
        turns._agent.switch_model = switch
        desk = Desk()
        await Attempt(assign("http://127.0.0.1:1/v1"), desk.outbox).run(agent.answer)
        return desk.last()

    end = asyncio.run(scene())
    assert not isinstance(end, Failed), end
    assert text_of(end) == "hello"
