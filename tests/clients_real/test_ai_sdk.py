"""npm `ai` with `@ai-sdk/openai-compatible`."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.agents_real.peers import peer
from tests.gateway.cutting_proxy import CuttingProxy
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import assistant, named, sessions, turns, user
from tests.gateway.test_messages import QUESTION, calling
from tests.gateway.test_openai_repeats import SLOW, beside, cut_once
from tests.service import Service

_SCRIPT = Path(__file__).with_name("ai_sdk.mjs")
_SECONDS_MAX = 120


def run(gateway: GatewayProcess, session: str, *messages: Any, **wish: Any) -> dict[str, Any]:
    wish = {
        "address": gateway.address,
        "key": gateway.first_secret,
        "headers": named(session),
        "messages": messages,
        **wish,
    }
    command = ["node", str(_SCRIPT), str(peer("ai-sdk").folder), json.dumps(wish)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_conversation_is_streamed_and_goes_on_in_one_session(
    gateway: GatewayProcess, service: Service
) -> None:
    first = run(gateway, "ai", user("[[slow count=10 interval=0.02]]"), stream=True)
    assert first["text"] == "".join(f"word{number} " for number in range(10))
    assert (first["error"], first["finish"]) == (None, "stop")
    assert first["usage"]["totalTokens"] > 0
    past = [user("[[slow count=10 interval=0.02]]"), assistant(first["text"])]
    second = run(gateway, "ai", *past, user("hello"))
    assert (second["text"], second["finish"]) == ("You said: hello", "stop")
    assert [turn for turn, _, _ in turns(service, "ai")] == ["ai/1", "ai/2"]
    assert sessions(service, "ai") == ["ai"]


def test_a_stop_interrupts_the_turn(gateway: GatewayProcess, service: Service) -> None:
    found = run(gateway, "ai-stop", user("[[slow count=1000 interval=0.1]]"), stream=True, stopAfter="word3")
    assert "abort" in found["parts"]
    assert service.listen("ai-stop").ending("ai-stop/1").type == "turn.interrupted"


def test_a_failed_turn_is_an_error_and_a_question_is_text(gateway: GatewayProcess) -> None:
    failed = run(gateway, "ai-fails", user("[[400]]"), stream=True)
    assert "fake invalid_request_error" in failed["error"]
    asked = run(gateway, "ai-asks", user(calling(QUESTION)), stream=True)
    assert (asked["text"], asked["error"]) == ("Which colour?\n- red\n- blue", None)


def test_its_own_retry_after_a_cut_connection_is_one_message(
    gateway: GatewayProcess, service: Service
) -> None:
    """It marks nothing: the request is known by its text alone."""
    with CuttingProxy(gateway.address) as proxy:
        proxy.is_deaf = True
        answer = beside(lambda: run(gateway, "ai-retry", user(SLOW), address=proxy.address))
        cut_once(proxy, service, "ai-retry")
        assert answer.result(_SECONDS_MAX)["text"] == "late but true"
        assert proxy.connections == 2
    assert turns(service, "ai-retry") == [("ai-retry/1", [SLOW], "done")]
    assert sessions(service, "ai-retry") == ["ai-retry"]
