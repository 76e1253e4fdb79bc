"""The kinds with agents of this project: they need nothing that is not in the checkout."""

import shutil
import sys
from pathlib import Path

from tests.fake_model import FakeModel
from tests.kinds.kind import Kind, ModelKind, toml_list

_HERE = Path(__file__).resolve().parent
_ACP_AGENT = _HERE.parent / "acp_agent.py"


class Builtin(ModelKind):
    holds = False
    calls_again = False

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        return {
            "agents.careful": 'ask = ["shell(rm *)"]',
            'sessions."approval-*"': 'agent = "careful"',
        }


class Python(Kind):
    """A function of a user, users_agent.py, in the interpreter of the service or in another one."""

    interpreter = ""

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        folder = home / "agents"
        folder.mkdir()
        shutil.copy(_HERE / "users_agent.py", folder)
        lines = ['kind = "python"', 'entry = "users_agent:agent"', 'path = "agents"']
        if self.interpreter:
            lines.append(f'python = "{self.interpreter}"')
        return {"agents.default": "\n".join(lines)}

    def say(self, text: str) -> str:
        return f"say {text}"

    def stream(self) -> str:
        return "stream"

    def run(self, command: str) -> str:
        return f"run {command}"

    def run_approved(self, command: str, *, is_lost: bool = False) -> str:
        return f"approve {command}"

    def ask(self, question: str, *, is_lost: bool = False) -> str:
        return f"ask {question}"

    def recall(self) -> str:
        return "recall"

    def spend(self, tokens: int) -> str:
        return f"spend {tokens}"


class Acp(Kind):
    """The small ACP agent of the tests."""

    knows_of_loss = "a record"
    knows_of_denial = "selected no"

    def tables(self, home: Path, shared: Path, model: FakeModel) -> dict[str, str]:
        command = toml_list(sys.executable, "-E", "-s", _ACP_AGENT)
        return {
            "agents.default": f'kind = "acp"\ncommand = {command}\nask = ["execute(rm *)"]',
            "agents.default.sandbox": f"read = {toml_list(_ACP_AGENT.parent)}",
        }

    def say(self, text: str) -> str:
        return f"say {text}"

    def stream(self) -> str:
        return "forever"

    def run(self, command: str) -> str:
        return f"tool {command}"

    def run_approved(self, command: str, *, is_lost: bool = False) -> str:
        return f"permit {command}"

    def recall(self) -> str:
        return "first"

    def spend(self, tokens: int) -> str:
        return f"spend {tokens}"


KINDS: dict[str, Kind] = {"builtin": Builtin(), "python": Python(), "acp": Acp()}
