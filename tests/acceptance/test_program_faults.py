"""Programs of ACP agents that cannot be started: `agents list`, `doctor` and `status` say why."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hermesctl.hand import hermesctl
from tests.service import Service
from tests.waiting import until

AGENT = Path(__file__).resolve().parents[1] / "acp_agent.py"
# The mode of the agent, and what is said of it.
FAULTS = {
    "exit": "exited with status 1",
    "garbage": "printed text that is no JSON",
    "version": "version 99 of the Agent Client Protocol",
    "sign-in": "needs a sign-in (Log in with a browser)",
}
PROGRAM = f'"{sys.executable}", "-E", "-s", "{AGENT}"'


def table(*words: str) -> str:
    return f'kind = "acp"\ncommand = [{", ".join((PROGRAM, *(json.dumps(word) for word in words)))}]'


def rows(home: Path) -> dict[str, dict[str, Any]]:
    return {row["agent"]: row for row in json.loads(hermesctl(home, "agents", "list", "--json").out)}


def checked(home: Path) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in json.loads(hermesctl(home, "doctor", "--json").out)}


@pytest.fixture
def service(make_service: Callable[..., Service]) -> Service:
    agents = {f"agents.{mode}": table("--mode", mode) for mode in FAULTS}
    gone = {"agents.gone": 'kind = "acp"\ncommand = ["no-such-agent", "acp"]'}
    sessions = {f"sessions.{name}": f'agent = "{name}"' for name in (*FAULTS, "gone")}
    sandbox = {"sandbox": f'read = ["{AGENT.parent}"]', "workers": "count = 5\nspares = 0"}
    return make_service(**agents, **gone, **sessions, **sandbox)


def test_the_fault_of_a_program_is_shown_until_it_answers(service: Service) -> None:
    before = rows(service.home)
    assert {before[mode]["fault"] for mode in FAULTS} == {""}, "none was started"
    assert before["gone"]["fault"] == "there is no program “no-such-agent”", "which is seen without a start"
    for mode in FAULTS:
        service.say(mode, "hello")
    told = {mode: service.listen(mode).ending(f"{mode}/1", 90) for mode in FAULTS}
    listed, found = rows(service.home), checked(service.home)
    hints = service.show("status")[0]["hints"]
    for mode, words in FAULTS.items():
        error, hint = told[mode].fields["error"], told[mode].fields["hint"]
        assert (told[mode].type, words in error) == ("turn.failed", True), error
        assert (listed[mode]["state"], listed[mode]["fault"], listed[mode]["hint"]) == ("failed", error, hint)
        doctor = found[f"agent {mode}"]
        assert (doctor["fact"], doctor["hint"]) == (error, hint)
        assert any(error in each for each in hints)
    assert found["agent gone"]["hint"].endswith("[agents.gone] command")


def test_the_fault_of_a_spare_is_known_before_any_turn(make_service: Callable[..., Service]) -> None:
    tables = {"agents.default": table("--mode", "exit"), "sandbox": f'read = ["{AGENT.parent}"]'}
    service = make_service(workers="count = 1\nspares = 1", **tables)
    until(lambda: rows(service.home)["default"]["state"] == "failed", 90)
    assert "no such model" in rows(service.home)["default"]["fault"], "with its last words"
    settings = (service.home / "hermes.toml").read_text()
    (service.home / "hermes.toml").write_text(settings.replace('"--mode", "exit"', '"--mode", "plain"'))
    assert hermesctl(service.home, "reload").code == 0
    assert rows(service.home)["default"]["fault"] == "", "it is another program"


def test_without_the_service_a_missing_program_is_seen(tmp_path: Path) -> None:
    here = tmp_path / "bin" / "agent"
    here.parent.mkdir()
    here.write_text("")
    tmp_path.joinpath("hermes.toml").write_text(
        '[agents.gone]\nkind = "acp"\ncommand = ["/no/such/agent"]\n'
        f'[agents.here]\nkind = "acp"\ncommand = ["{here}"]\n'
        f'[agents.found]\nkind = "acp"\ncommand = ["agent"]\nenv = {{ PATH = "{here.parent}" }}\n'
    )
    found = rows(tmp_path)
    assert found["gone"]["fault"] == "there is no program “/no/such/agent”"
    assert (found["here"]["fault"], found["found"]["fault"]) == ("", "")
    assert checked(tmp_path)["agent gone"]["fact"] == found["gone"]["fault"]
