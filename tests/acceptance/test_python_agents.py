"""A whole service whose agent is a function of the user: turns, tools, interrupts, crashes, steers."""

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service import Listener, Service

ROOT = Path(__file__).resolve().parents[2]
# The generator goes through the scenarios of tests/kinds.
FORMS = ("plain", "awaited", "async_generator")


@pytest.fixture
def serve(tmp_path: Path, make_service: Callable[..., Service]) -> Callable[..., Service]:
    """A service with an agent of users_agents.py, in a folder beside its hermes.toml."""

    def begin(
        function: str, source: Path = ROOT / "tests/acceptance/users_agents.py", **tables: str
    ) -> Service:
        folder = tmp_path / "home0" / "agents"
        folder.mkdir(parents=True)
        shutil.copy(source, folder / "mine.py")
        agent = f'kind = "python"\nentry = "mine:{function}"\npath = "agents"'
        return make_service(**{"agents.default": agent, "workers": "count = 1", **tables})

    return begin


def running_tool(listener: Listener) -> None:
    listener.until(lambda: listener.of_type("tool.started"))


@pytest.mark.parametrize("function", FORMS)
def test_an_agent_of_the_user_has_the_powers_of_the_host(
    serve: Callable[[str], Service], function: str
) -> None:
    service = serve(function)
    listener = service.listen("s")
    # A fresh turn.
    service.say("s", "hello")
    assert listener.ending("s/1").fields["text"] == "0 turns before, 0 calls cut off."
    # An interrupt in the middle of a stream.
    service.say("s", "slow")
    listener.until(lambda: "word word" in listener.words)
    service.interrupt("s")
    ended = listener.ending("s/2")
    assert ended.type == "turn.interrupted"
    assert ended.fields["killed"]["all_dead"]
    assert ended.fields["partial"].startswith("word word")
    # An interrupt in the middle of a tool; its process is gone, too.
    service.say("s", "tool")
    running_tool(listener)
    service.interrupt("s")
    assert listener.ending("s/3").fields["killed"]["all_dead"]
    # A message that steers.
    service.say("s", "steered")
    listener.until(
        lambda: [each for each in listener.of_type("attempt.opened") if each.fields["turn"] == "s/4"]
    )
    service.say("s", "to the left", busy="steer")
    assert listener.ending("s/4").fields["text"] == "Steered: to the left"


@pytest.mark.parametrize("function", FORMS)
def test_an_attempt_after_a_crash_sees_what_the_lost_one_did(
    serve: Callable[[str], Service], function: str
) -> None:
    service = serve(function)
    listener = service.listen("s")
    service.say("s", "tool")
    running_tool(listener)
    os.kill(listener.of_type("attempt.opened")[0].fields["pid"], signal.SIGKILL)
    ended = listener.ending("s/1")
    assert ended.type == "turn.done", ended
    assert ended.fields["text"] == "0 turns before, 1 calls cut off."
    assert len(listener.of_type("attempt.lost")) == 1


def test_the_supervisor_may_die_while_a_tool_runs(serve: Callable[[str], Service]) -> None:
    service = serve("plain")
    listener = service.listen("s")
    service.say("s", "tool")
    running_tool(listener)
    service.kill()
    service.start()
    ended = service.listen("s").ending("s/1")
    assert ended.fields["text"] == "0 turns before, 1 calls cut off."


def test_a_fault_of_the_agent_is_said_in_its_turn(serve: Callable[[str], Service]) -> None:
    service = serve("missing")
    listener = service.listen("s")
    service.say("s", "hello")
    ended = listener.ending("s/1")
    assert ended.type == "turn.failed"
    assert "mine has no missing" in ended.fields["error"]
    assert "[agents.default] entry" in ended.fields["hint"]


def test_the_example_of_the_document_runs_as_printed(serve: Callable[..., Service], tmp_path: Path) -> None:
    printed = re.findall(r"```python\n(.*?)```", (ROOT / "docs/agents.md").read_text(), re.DOTALL)[0]
    assert len(printed.splitlines()) <= 20
    example = tmp_path / "example.py"
    example.write_text(printed)
    service = serve("agent", example)
    listener = service.listen("s")
    service.say("s", "How large is the moon?")
    assert listener.ending("s/1").fields["text"] == "I count.\nYour message has 5 words; this is turn 1."
    assert listener.of_type("tool.finished")[0].fields["ok"]
