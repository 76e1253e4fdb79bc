"""`hermesctl agents` beside a whole service: trials of its agents, and the list before and after."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hermesctl.hand import hermesctl
from tests.service import Service
from tests.waiting import until

MODULE = "def agent(context):\n    return f'{context.session.split(chr(58))[1]} heard: {context.text}'\n"


def listed(service: Service) -> dict[str, dict[str, Any]]:
    rows = json.loads(hermesctl(service.home, "agents", "list", "--json").out)
    return {row["agent"]: row for row in rows}


def test_an_agent_is_tried_in_a_session_of_its_own(
    tmp_path: Path, make_service: Callable[..., Service]
) -> None:
    folder = tmp_path / "home0" / "agents"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(MODULE)
    mine = 'kind = "python"\nentry = "mine:agent"\npath = "agents"'
    other = 'kind = "python"\nentry = "other:agent"\npath = "agents"'
    service = make_service(**{"agents.mine": mine, "agents.other": other, "workers": "count = 1"})
    before = listed(service)
    assert [(before[name]["state"], before[name]["pid"]) for name in ("mine", "other")] == [
        ("cold", None)
    ] * 2
    tried = hermesctl(service.home, "agents", "try", "mine", "one two")
    assert (tried.code, tried.out) == (0, "mine heard: one two\n")
    assert "mine starts and answers" in tried.err
    failed = hermesctl(service.home, "agents", "try", "other")
    assert (failed.code, "there is no module other" in failed.err) == (4, True)
    after = listed(service)
    assert (after["default"]["state"], after["mine"]["state"]) == ("warm", "warm")
    # A session of that form without such an agent is one like any other.
    service.say("try:nobody:1", "hello")
    listener = service.listen("try:nobody:1")
    assert listener.ending("try:nobody:1/1").type == "turn.done"


def test_an_agent_whose_models_are_all_away_has_their_fault(make_service: Callable[..., Service]) -> None:
    tables = {
        "models.away": 'base_url = "http://127.0.0.1:9/v1"\nname = "x"',
        "agents.lost": 'model = "away"',
        "agents.saved": 'model = "away"\nfallback = ["default"]',
        'sessions."lost"': 'agent = "lost"',
    }
    service = make_service(**tables)
    assert listed(service)["lost"]["fault"] == ""
    service.say("lost", "hello")
    until(lambda: listed(service)["lost"]["fault"])
    rows = listed(service)
    assert rows["lost"]["fault"] == "nothing answers at http://127.0.0.1:9/v1"
    assert rows["lost"]["hint"]
    assert (rows["saved"]["models"], rows["saved"]["fault"]) == (["away", "default"], "")
    assert rows["default"]["fault"] == ""
