"""[agents.NAME] allow, ask, deny and otherwise: what is refused, and the default by level."""

from pathlib import Path

import pytest

from supervisor.config.toml_file import SettingsError
from tests.test_agent_settings import load_text

ACP = "kind = 'acp'\ncommand = ['x']\n"


@pytest.mark.parametrize(
    ("text", "fault", "remedy"),
    [
        ("[agents.x]\nallow = 'shell'\n", "line 2: [agents.x] allow", '["read", "shell(git *)"]'),
        ("[agents.x]\ndeny = ['shell(rm *']\n", "line 2: [agents.x] deny", '["read", "shell(git *)"]'),
        ("[agents.x]\nask = ['shell()']\n", "line 2: [agents.x] ask", '["read", "shell(git *)"]'),
        ("[agents.x]\ndeny = ['shel(rm *)']\n", 'deny names "shel", which is no tool', "shell, read"),
        ("[agents.x]\ndeny = ['tome__now']\n", 'names "tome__now", which is no tool', "SERVER__tool"),
        (f"[agents.x]\n{ACP}deny = ['shell']\n", 'names "shell", which is no tool', "execute"),
        (f"[agents.x]\n{ACP}deny = ['time__now']\n", 'names "time__now", which is no tool', "execute"),
        ("[agents.x]\notherwise = 'maybe'\n", "[agents.x] otherwise", '"allow", "ask", "deny"'),
        ("[agents.x]\nkind='python'\nentry='a:b'\nask=['shell']\n", "is of no use", "context.approve"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_remedy(
    tmp_path: Path, text: str, fault: str, remedy: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_text(tmp_path, f"{text}[mcp.time]\ncommand = ['x']\n")
    assert fault in caught.value.fault
    assert remedy in caught.value.hint


def test_rules_reach_the_agent(tmp_path: Path) -> None:
    rules = "allow = ['read', 'time__*', '*']\nask = ['shell(git push*)']\ndeny = ['shell(a (b) c)']\n"
    settings = load_text(tmp_path, f"[agents.x]\n{rules}otherwise = 'deny'\n[mcp.time]\ncommand = ['x']\n")
    agent = settings.agent("x")
    assert agent is not None
    assert agent.options["allow"] == ("read", "time__*", "*")
    assert agent.options["ask"] == ("shell(git push*)",)
    assert agent.options["deny"] == ("shell(a (b) c)",)
    assert agent.options["otherwise"] == "deny"


@pytest.mark.parametrize(("level", "expected"), [("workspace", "allow"), ("home", "ask"), ("host", "ask")])
def test_without_otherwise_the_level_of_the_sandbox_decides(
    tmp_path: Path, level: str, expected: str
) -> None:
    settings = load_text(
        tmp_path,
        f"[sandbox]\nlevel = '{level}'\n[agents.x]\n{ACP}"
        "[agents.y]\n[agents.y.sandbox]\nlevel = 'workspace'\n",
    )
    found = {name: settings.agent(name) for name in ("default", "x", "y")}
    assert {name: each.options["otherwise"] for name, each in found.items() if each} == {
        "default": expected,
        "x": expected,
        "y": "allow",
    }
