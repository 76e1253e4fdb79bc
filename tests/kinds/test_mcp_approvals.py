"""Approvals of tools that an MCP server has: the same scenarios as for the agent's own tools."""

import sys
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.kinds.kind import toml_list
from tests.kinds.own_kinds import Builtin
from tests.kinds.scenarios import ApprovalScenarios, parametrize

_SERVER = Path(__file__).resolve().parents[1] / "tool_server.py"
# Without packages it starts sooner: a server has ten seconds, also on a busy machine.
_PYTHON = getattr(sys, "_base_executable", sys.executable)


class McpTools(Builtin):
    """A builtin agent whose approved calls are those of a server."""

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        return {
            "agents.default": 'ask = ["tools__run"]',
            "mcp.tools": f"command = {toml_list(_PYTHON, '-I', '-S', _SERVER, 'good')}",
            "agents.default.sandbox": f"read = {toml_list(_SERVER.parent)}",
        }

    def run_approved(self, command: str, *, is_lost: bool = False) -> str:
        return self._calls({"name": "tools__run", "arguments": {"command": command}})


# One object for all tests: they share its service.
_KINDS = {"mcp": McpTools()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, _KINDS)


class TestMcpApprovals(ApprovalScenarios):
    pass
