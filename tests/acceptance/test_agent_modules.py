"""The module of a python agent is imported once, in its zygote, unless that is impossible or not safe."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.doctor import settings_checks
from hermesctl.doctor.finding import Surroundings
from tests.hermesctl.hand import hermesctl
from tests.service import Service

TOKEN = "import os\nTOKEN = os.urandom(8).hex()\ndef agent(context): return TOKEN\n"
MODULES = {
    "shared": TOKEN,
    # A fork has no threads of its parent.
    "threads": TOKEN
    + "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
    # Only the processes of a turn have the variable.
    "secret": TOKEN + "os.environ['HERMES_TEST_VALUE']\n",
    "broken": "import there_is_no_such_module\n",
    "typo": "def agent(context) return 1\n",
}


def answers(service: Service, agent: str) -> list[str]:
    """What two workers of it say."""
    said = []
    for number in (1, 2):
        session = f"try:{agent}:{number}"
        listener = service.listen(session)
        service.say(session, "hello")
        ended = listener.ending(f"{session}/1")
        said.append(str(ended.fields.get("text") or ended.fields.get("error")))
    return said


@pytest.mark.timeout(300)
def test_a_module_is_shared_where_it_can_be_and_its_fault_is_that_of_its_runtime(
    tmp_path: Path, make_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_TEST_VALUE", "x")
    code = tmp_path / "home0" / "agents"
    code.mkdir(parents=True)
    for name, text in MODULES.items():
        (code / f"{name}.py").write_text(text)
    agents = {
        f"agents.{name}": f'kind = "python"\nentry = "{name}:agent"\npath = "agents"' for name in MODULES
    }
    agents["agents.secret"] += '\nenv_from = ["HERMES_TEST_VALUE"]'
    agents["agents.nameless"] = 'kind = "python"\nentry = "shared:other"\npath = "agents"'
    service = make_service(**agents, workers="count = 2\nturns_max = 1")

    first, second = answers(service, "shared")
    assert first == second, "each worker has imported it"
    for name in ("threads", "secret"):
        first, second = answers(service, name)
        assert (len(first), len(second), first == second) == (16, 16, False), (name, first, second)
    faults = {
        "broken": "[agents.broken] entry is 'broken:agent', and there is no module there_is_no_such_module",
        "typo": "[agents.typo] entry is 'typo:agent', and importing typo raised SyntaxError",
        "nameless": "[agents.nameless] entry is 'shared:other', and shared has no other",
    }
    rows = {}
    for name, fault in faults.items():
        assert [fault in said for said in answers(service, name)] == [True, True], name
        rows = {row["agent"]: row for row in service.show("agents")}
        assert (rows[name]["state"], rows[name]["fault"]) == ("failed", fault)
    assert rows["broken"]["hint"] == "install there_is_no_such_module into the environment of this agent"
    # The same where else a person looks, of every agent that is broken.
    status = hermesctl(service.home, "status", "--json").out
    services = {row["service"]: row for row in service.show("services")}
    assert services["agent shared"]["state"] == "warm"
    for name, fault in faults.items():
        assert f"the agent {name} cannot start: {fault}" in " ".join(json.loads(status)["hints"])
        assert (services[f"agent {name}"]["state"], services[f"agent {name}"]["detail"]) == ("failed", fault)
    found = settings_checks.agents(Surroundings(service.places))
    verdicts = {finding.check: (finding.verdict, finding.fact) for finding in found}
    assert verdicts["agent broken"] == ("bad", faults["broken"])
    assert verdicts["agent shared"][0] == "good"
    assert "agent default" not in verdicts
    assert answers(service, "shared")[0]
    assert list(code.rglob("*.pyc")) == []


def test_code_that_an_agent_may_write_is_not_imported_outside_of_its_cell(
    tmp_path: Path, make_service: Callable[..., Service]
) -> None:
    code = tmp_path / "project" / "agents"
    code.mkdir(parents=True)
    (code / "shared.py").write_text(TOKEN)
    mine = f'kind = "python"\nentry = "shared:agent"\npath = "{code}"'
    other = f'write = ["{tmp_path}/project"]'
    tables = {"agents.mine": mine, "agents.other": "", "agents.other.sandbox": other}
    service = make_service(**tables, workers="count = 2\nturns_max = 1")
    first, second = answers(service, "mine")
    assert (len(first), len(second), first == second) == (16, 16, False), (first, second)
    assert hermesctl(service.home, "agents", "list").code == 0
