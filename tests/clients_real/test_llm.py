"""The command `llm`: a question, and a conversation that it continues."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.agents_real.peers import peer
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import sessions, turns
from tests.service import Service

_SECONDS_MAX = 120


@pytest.fixture
def home(gateway: GatewayProcess, tmp_path: Path) -> Path:
    """Its settings: the gateway as one more model, with a session."""
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: hermes\n  model_name: default\n  api_base: {gateway.address}/v1\n"
        "  api_key_name: hermes\n  headers:\n    X-Session: terminal\n"
    )
    (tmp_path / "keys.json").write_text(f'{{"hermes": "{gateway.first_secret}"}}')
    return tmp_path


def llm(home: Path, *arguments: str) -> str:
    environment = {**os.environ, "LLM_USER_PATH": str(home)}
    command = [str(peer("llm").program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_conversation_is_one_session(home: Path, service: Service) -> None:
    assert llm(home, "-m", "hermes", "-s", "Be brief.", "hello") == "You said: hello"
    assert llm(home, "-c", "and again") == "You said: and again"
    assert llm(home, "-m", "hermes", "--no-stream", "a third") == "You said: a third"
    assert [users for _, users, _ in turns(service, "terminal")] == [["hello"], ["and again"], ["a third"]]
    assert sessions(service, "terminal") == ["terminal"]
