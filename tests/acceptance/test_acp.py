"""An agent of kind acp that may cancel before it is killed; tests/kinds has what it shares with others."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.service import Service, settings_for

AGENT = Path(__file__).resolve().parents[1] / "acp_agent.py"


def said(service: Service, turn: str, text: str) -> str:
    session = turn.rpartition("/")[0]
    service.say(session, text, busy="queue")
    ending = service.listen(session).ending(turn, 90)
    assert ending.type == "turn.done", ending
    return str(ending.fields["text"])


@pytest.fixture
def graceful(tmp_path: Path, model: FakeModel) -> Iterator[Service]:
    """Agents that have a grace before the kill; those of the sessions `deaf` and `patient` do not use it."""
    program = f'"{sys.executable}", "-E", "-s", "{AGENT}"'
    tables = {
        "agents.default": f'kind = "acp"\ncommand = [{program}]\ncancel_grace = "30s"\nask = ["execute"]',
        "agents.deaf": f'kind = "acp"\ncommand = [{program}, "--mode", "deaf"]\ncancel_grace = "1s"',
        "agents.patient": f'kind = "acp"\ncommand = [{program}, "--mode", "deaf"]\ncancel_grace = "30s"',
        "sandbox": f'read = ["{AGENT.parent}"]',
        "sessions.deaf": 'agent = "deaf"',
        "sessions.patient": 'agent = "patient"',
    }
    with Service(tmp_path / "home", settings_for(model, **tables)) as running:
        yield running


@pytest.mark.parametrize(("session", "result"), [("s", "answered"), ("deaf", "unanswered")])
def test_an_interrupt_lets_the_agent_cancel_first_and_kills_it_then(
    graceful: Service, session: str, result: str
) -> None:
    listener = graceful.listen(session)
    graceful.say(session, "hang")
    listener.until(lambda: listener.of_type("tool.started"), 90)
    told = graceful.hermesctl("interrupt", session).stdout
    killed = listener.ending(f"{session}/1", 90).fields["killed"]
    assert (killed["cancel"], killed["all_dead"]) == (result, True)
    if result == "unanswered":
        assert killed["processes"] >= 4, "the agent and its tool were alive until the kill"
        assert killed["ms"] >= 1000
    assert f"(pidns, cancel {result})" in told
    assert said(graceful, f"{session}/2", "recall") == "prompt 2, a record"


def test_a_grace_ends_with_an_open_permission(graceful: Service) -> None:
    """The agent waits for the answer to its request: the cancellation answers it."""
    listener = graceful.listen("s")
    graceful.say("s", "permit rm -r x")
    listener.until(lambda: listener.of_type("question.asked"), 90)
    graceful.interrupt("s")
    assert listener.ending("s/1", 90).fields["killed"]["cancel"] == "answered"


def test_a_second_interrupt_ends_the_grace(graceful: Service) -> None:
    """A person who asks twice does not want to wait; the agent of these sessions has half a minute."""
    listener = graceful.listen("patient")
    graceful.say("patient", "hang")
    listener.until(lambda: listener.of_type("tool.started"), 90)
    graceful.interrupt("patient")
    graceful.interrupt("patient")
    killed = listener.ending("patient/1", 90).fields["killed"]
    assert (killed["cancel"], killed["all_dead"]) == ("unanswered", True)
    assert killed["ms"] < 20_000
    assert said(graceful, "patient/2", "recall") == "prompt 2, a record"


def test_a_restart_in_place_keeps_the_grace(graceful: Service) -> None:
    listener = graceful.listen("s")
    graceful.say("s", "hang")
    listener.until(lambda: listener.of_type("tool.started"), 90)
    restarted = graceful.hermesctl("restart", "--keep-turns")
    assert restarted.returncode == 0, restarted.stderr
    graceful.interrupt("s")
    assert graceful.listen("s").ending("s/1", 90).fields["killed"]["cancel"] == "answered"
