"""The kinds with agents that people use, for the scenarios of tests/kinds; the model is the scripted one."""

import json
from pathlib import Path

import pytest

from tests.agents_real.packages import lay_packages
from tests.agents_real.peers import Peer, peer, python_313
from tests.fake_model import FakeModel
from tests.hermesctl.hand import hermesctl
from tests.kinds.kind import Kind, ModelKind, toml_list
from tests.kinds.own_kinds import Python


class OtherPython(Python):
    """The python agent in an interpreter of another version, with packages that pip fetches for it."""

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        self.interpreter = python_313()
        return super().tables(home, shared, model)

    def prepare(self, home: Path) -> None:
        added = hermesctl(home, "agents", "add", "default")
        if "pip could not fetch" in added.err:
            pytest.skip("no package index is in reach: msgspec and pyzmq cannot be fetched for python3.13")
        assert added.code == 0, added.err


class HermesAgent(ModelKind):
    """hermes-agent in a worker; what it takes for dangerous needs an approval."""

    shell = "terminal"
    clarify = "clarify"
    patience_seconds = 150.0
    knows_of_denial = "User denied this command"

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        python = peer("hermes-agent").folder / "bin/python"
        lay_packages(home, str(python))
        return {"agents.default": f'kind = "hermes"\npython = "{python}"'}


class _AcpProgram(ModelKind):
    """An ACP agent with the fake model."""

    patience_seconds = 150.0

    def _tables(self, found: Peer, variables: dict[str, str], *arguments: str) -> dict[str, str]:
        given = ", ".join(f"{name} = {json.dumps(value)}" for name, value in variables.items())
        command = toml_list(found.program, *arguments)
        rules = 'ask = ["execute(rm *)"]'
        return {
            "agents.default": f'kind = "acp"\ncommand = {command}\nenv = {{ {given} }}\n{rules}',
            "agents.default.sandbox": f"read = {toml_list(found.folder)}",
        }


class OpenCode(_AcpProgram):
    shell = "bash"

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        found = peer("opencode")
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.base_url, "apiKey": "none"},
            "models": {"fake": {"name": "fake"}},
        }
        settings = {
            "model": "local/fake",
            "small_model": "local/fake",
            "provider": {"local": provider},
            "permission": {"bash": {"*": "allow", "rm *": "ask"}, "edit": "allow"},
        }
        (shared / "opencode.json").write_text(json.dumps(settings))
        switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
        variables = {"OPENCODE_CONFIG": str(shared / "opencode.json")}
        variables |= {f"OPENCODE_DISABLE_{each}": "1" for each in switches}
        return self._tables(found, variables, "acp")


class ClaudeCode(_AcpProgram):
    """Claude Code through its adapter. It asks its model by Anthropic's API, at an address without `/v1`."""

    shell = "Bash"
    # A call that was cut off is not in its session.
    calls_again = False
    knows_of_denial = "refused permission"

    def run(self, command: str) -> str:
        """Its model learns of a call that was cut off from the record before the message, and makes none."""
        return super().run(command).replace("[[tools ", f"[[tools unless='{self.knows_of_loss}' ", 1)

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        folder = shared / "claude"
        folder.mkdir()
        folder.chmod(0o777)
        settings = {"permissions": {"allow": ["Bash"], "ask": ["Bash(rm:*)"]}}
        (folder / "settings.json").write_text(json.dumps(settings))
        variables = {
            "CLAUDE_CONFIG_DIR": str(folder),
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": model.base_url.removesuffix("/v1"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        return self._tables(peer("claude-agent-acp"), variables)


class HermesAcp(_AcpProgram):
    """`hermes acp` of hermes-agent, as an editor would run it."""

    shell = "terminal"
    knows_of_denial = HermesAgent.knows_of_denial

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        found = peer("hermes-agent")
        folder = shared / "hermes"
        folder.mkdir()
        folder.chmod(0o777)
        settings = {
            "model": {
                "default": "fake",
                "provider": "custom",
                "base_url": model.base_url,
                "api_key": "none",
                "api_mode": "chat_completions",
                "context_length": 100_000,
            },
            "agent": {"environment_probe": False},
            "approvals": {"mode": "manual"},
        }
        # JSON is YAML too.
        (folder / "config.yaml").write_text(json.dumps(settings))
        return self._tables(found, {"HERMES_HOME": str(folder)}, "acp")


KINDS: dict[str, Kind] = {
    "python 3.13": OtherPython(),
    "hermes": HermesAgent(),
    "hermes acp": HermesAcp(),
    "opencode": OpenCode(),
    "Claude Code": ClaudeCode(),
}
