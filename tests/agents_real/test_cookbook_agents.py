"""Recipes of docs/cookbook.md with agents and servers of others; tests/acceptance has the other recipes."""

import os
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_cookbook import ADDRESS, cook, shell
from tests.acceptance.test_cookbook import srv as srv
from tests.agents_real.packages import lay_packages
from tests.agents_real.peers import peer
from tests.cookbook import recipe
from tests.fake_model import FakeModel


def removes(model: FakeModel, tool: str) -> None:
    """From now on the model removes a folder when it is asked to; it repeats all other words."""
    call = {"name": tool, "arguments": {"command": "rm -rf old", "description": "as asked"}}
    model.set_mode("tools", calls=[call], when="Remove")


def test_hermes_agent_runs_as_printed(tmp_path: Path, model: FakeModel) -> None:
    found = peer("hermes-agent")
    removes(model, "terminal")
    made = recipe("hermes-agent").replaced(
        ("/srv/hermes-agent/bin/python", str(found.folder / "bin/python")),
        (ADDRESS, model.base_url),
    )
    lay_packages(tmp_path / "home", str(found.folder / "bin/python"))
    cook(made, tmp_path / "home")


def test_claude_code_runs_as_printed(
    tmp_path: Path, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    removes(model, "Bash")
    address = model.base_url.removesuffix("/v1")
    made = recipe("Claude Code").replaced(
        ("/srv/claude", str(peer("claude-agent-acp").folder)),
        ("env = { ", f'env = {{ ANTHROPIC_BASE_URL = "{address}", '),
    )
    cook(made, tmp_path / "home")


def test_opencode_runs_as_printed(tmp_path: Path, srv: Path, model: FakeModel) -> None:
    found = peer("opencode")
    removes(model, "bash")
    made = recipe("opencode").replaced(
        ("/srv/opencode/node_modules", str(found.folder / "node_modules")),
        ('read = ["/srv/opencode"]', f'read = ["{srv}/opencode", "{found.folder}"]'),
        ("/srv/opencode/config.json", f"{srv}/opencode/config.json"),
        (ADDRESS, model.base_url),
    )
    cook(made, tmp_path / "home")


def test_a_coding_agent_uses_an_mcp_server(tmp_path: Path, srv: Path, model: FakeModel) -> None:
    """Not in `make test`: on a busy host a server of the SDK is not up in the ten seconds that it has."""
    environment = os.path.dirname(os.path.dirname(sys.executable))
    made = recipe("A coding agent with an MCP server").replaced(
        ("/srv/tools/.venv/bin/python", sys.executable),
        ('read = ["/srv/tools"]', f'read = ["{srv}/tools", "{environment}"]'),
        ("/srv/tools/style.py", f"{srv}/tools/style.py"),
        (ADDRESS, model.base_url),
    )
    rounds = [
        [{"name": "style__rule", "arguments": {"topic": "tests"}}],
        [{"name": "write", "arguments": {"path": "hello.py", "content": "print('hello')"}}],
        shell("python3 hello.py"),
    ]
    model.set_mode("tools", calls=rounds)
    cook(made, tmp_path / "home")
    results = [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]
    assert "every module has a test beside it" in results[0]
    assert "hello" in results[-1]
