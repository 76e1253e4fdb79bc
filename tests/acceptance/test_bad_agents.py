"""Agents that cannot be used: their turns fail with a sentence and its remedy, and other agents go on."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.doctor import settings_checks
from hermesctl.doctor.finding import Surroundings
from ipc.messages import Event
from tests.kinds.kind import toml_list
from tests.service import Service

_ACP_AGENT = Path(__file__).resolve().parents[1] / "acp_agent.py"
# By the mode of the ACP agent.
_PROGRAMS = {
    "exit": "exited with status 1, saying: no such model",
    "garbage": "printed text that is no JSON",
    "version": "speaks version 99 of the Agent Client Protocol",
    "sign-in": "needs a sign-in (Log in with a browser)",
}
_PATIENCE_SECONDS = 90


def turn_of(service: Service, agent: str) -> Event:
    """The end of a turn that the agent was to answer."""
    session = f"try:{agent}:1"
    listener = service.listen(session)
    service.say(session, "say hello")
    return listener.ending(f"{session}/1", _PATIENCE_SECONDS)


def test_a_program_that_is_no_agent_is_named_in_its_turn_and_others_go_on(
    make_service: Callable[..., Service],
) -> None:
    tables = {"agents.absent": 'kind = "acp"\ncommand = ["no-such-agent", "acp"]'}
    for mode in _PROGRAMS:
        command = toml_list(sys.executable, "-E", "-s", _ACP_AGENT, "--mode", mode)
        tables[f"agents.{mode}"] = f'kind = "acp"\ncommand = {command}'
    service = make_service(sandbox=f"read = {toml_list(_ACP_AGENT.parent)}", workers="count = 2", **tables)
    expected = {"absent": "there is no program 'no-such-agent' in the agent's cell", **_PROGRAMS}
    for agent, sentence in expected.items():
        ended = turn_of(service, agent)
        assert ended.type == "turn.failed", (agent, ended)
        assert sentence in ended.fields["error"]
        assert ended.fields["hint"]
    assert turn_of(service, "default").type == "turn.done"


@pytest.mark.timeout(400)
def test_an_interpreter_that_cannot_be_used_is_named_everywhere_and_others_go_on(
    tmp_path: Path, make_service: Callable[..., Service]
) -> None:
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho cpython-39 3 9 none\n")
    old.chmod(0o755)
    interpreters = {"gone": tmp_path / "gone", "old": old}
    tables = {
        f"agents.{name}": f'kind = "python"\nentry = "mine:agent"\npython = "{path}"'
        for name, path in interpreters.items()
    }
    service = make_service(workers="count = 1", **tables)
    faults = {
        "gone": f"the interpreter {tmp_path}/gone does not exist",
        "old": f"{old} is Python 3.9, and agents need 3.11 or later",
    }
    for agent, fault in faults.items():
        ended = turn_of(service, agent)
        assert ended.type == "turn.failed", (agent, ended)
        assert fault in ended.fields["error"]
        assert f"[agents.{agent}]" in ended.fields["hint"]
    rows = {row["agent"]: row for row in service.show("agents")}
    found = {each.check: each for each in settings_checks.agents(Surroundings(service.places))}
    for agent, fault in faults.items():
        assert rows[agent]["fault"] == fault
        assert f"[agents.{agent}]" in rows[agent]["hint"]
        assert (found[f"agent {agent}"].verdict, found[f"agent {agent}"].fact) == ("bad", fault)
    assert turn_of(service, "default").type == "turn.done"
