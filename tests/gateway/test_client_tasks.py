"""Tasks of a chat program: answered from their own text, without a session."""

import json

import openai
import pytest

from gateway.errors import HttpError
from gateway.openai import client_tasks
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import ask, gateway_sdk, named, streamed, user
from tests.service import Service

TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Chat History:
<chat_history>
USER: How do I bake a loaf of bread with very little yeast?
Please be exact.
ASSISTANT: Take flour.
</chat_history>"""


def test_f15_a_task_touches_no_session(gateway: GatewayProcess, service: Service) -> None:
    before = service.show("sessions")
    headers = {**named("ghost"), "X-Task": "title_generation"}
    with gateway_sdk(gateway) as sdk:
        for call in (ask, streamed):
            title = call(sdk, user(TITLE), extra_headers=headers)
            assert json.loads(title) == {"title": "How do I bake a loaf of…"}
        with pytest.raises(openai.BadRequestError, match="'moa_response_generation' is not answered here"):
            ask(sdk, user("x"), extra_headers={"X-Task": "moa_response_generation"})
    assert service.show("sessions") == before


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>", "Hi"),
        ("<chat_history>USER: a\nb</chat_history>", "a b"),
        ("no template at all", "no template at all"),
        ("<chat_history></chat_history>", "Chat"),
        ("USER: " + "x" * 100, "x" * 60),
        (" ", "Chat"),
    ],
)
def test_a_title_is_the_beginning_of_the_first_message(prompt: str, title: str) -> None:
    assert json.loads(client_tasks.answer("title_generation", prompt)) == {"title": title}


def test_proposals_are_none(gateway: GatewayProcess) -> None:
    for task in ("tags_generation", "follow_up_generation", "query_generation", "autocomplete_generation"):
        (found,) = json.loads(client_tasks.answer(task, "x")).values()
        assert not found
    assert client_tasks.answer("emoji_generation", "x") == "💬"
    with pytest.raises(HttpError, match="'conquer' is not answered here"):
        client_tasks.answer("conquer", "the world")
