"""`/v1/models` and `/v1/chat/completions` with the SDK of OpenAI, a real gateway and a real supervisor."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_messages import QUESTION, calling
from tests.service import Service
from tests.waiting import until

MIB = 1024 * 1024


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with gateway_sdk(gateway) as client:
        yield client


def gateway_sdk(gateway: GatewayProcess, secret: str | None = None, **options: Any) -> openai.OpenAI:
    """The SDK as people use it; only the certificates of the system are not loaded, which takes long."""
    transport = httpx2.HTTPTransport(verify=False)
    return openai.OpenAI(
        base_url=f"{options.pop('address', gateway.address)}/v1",
        api_key=gateway.first_secret if secret is None else secret,
        http_client=httpx2.Client(transport=transport, timeout=60),
        **options,
    )


def named(session: str, **headers: str) -> dict[str, str]:
    return {"X-Session": session, **headers}


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def assistant(text: str) -> Any:
    return {"role": "assistant", "content": text}


def ask(sdk: openai.OpenAI, *messages: Any, **options: Any) -> str:
    answer = sdk.chat.completions.create(model="default", messages=list(messages), **options)
    return answer.choices[0].message.content or ""


def streamed(sdk: openai.OpenAI, *messages: Any, **options: Any) -> str:
    chunks = sdk.chat.completions.create(model="default", messages=list(messages), stream=True, **options)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def turns(service: Service, session: str) -> list[tuple[str, list[str], str]]:
    """Turns of a session, oldest first: the past ones, too."""
    rows = reversed(service.show("history", session=session))
    return [(row["turn"], [each["text"] for each in row["messages"]], row["state"]) for row in rows]


def sessions(service: Service, prefix: str) -> list[str]:
    return sorted(row["session"] for row in service.show("sessions", prefix=prefix))


def test_the_models_are_the_agents(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["default"]
    assert sdk.models.retrieve("default").object == "model"
    with pytest.raises(openai.NotFoundError, match="there is no model 'nemo'"):
        sdk.models.retrieve("nemo")


def test_a_completion_has_the_answer_its_finish_and_its_usage(sdk: openai.OpenAI, service: Service) -> None:
    answer = sdk.chat.completions.create(
        model="default", messages=[user("hello")], extra_headers=named("whole")
    )
    assert answer.choices[0].message.content == "You said: hello"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.model == "default"
    assert turns(service, "whole") == [("whole/1", ["hello"], "done")]
    cut = sdk.chat.completions.create(
        model="default", messages=[user("[[normal finish=length]] x")], extra_headers=named("cut")
    )
    assert cut.choices[0].finish_reason == "length"


def test_a_stream_has_the_same_answer_in_chunks(sdk: openai.OpenAI) -> None:
    messages = [user("[[slow count=20 interval=0.01]]")]
    chunks = list(
        sdk.chat.completions.create(
            model="default", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "".join(f"word{number} " for number in range(20))
    assert len([text for text in texts if text]) > 3
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_a_stream_has_no_event_names_and_ends_with_done(gateway: GatewayProcess) -> None:
    """Clients fail at names that they do not know; comments pass."""
    body = {"model": "default", "messages": [user("hello")], "stream": True}
    answer = gateway.client().post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    lines = [line for line in answer.text.splitlines() if line]
    assert all(line.startswith(("data: ", ":")) for line in lines)
    assert lines[-1] == "data: [DONE]"


def test_a_silent_stream_is_kept_alive_by_comments(gateway: GatewayProcess, service: Service) -> None:
    body = {"model": "default", "messages": [user("[[stall tokens=1]]")], "stream": True}
    with gateway.client().stream(
        "POST", "/v1/chat/completions", json=body, headers=named("silence")
    ) as answer:
        comment = next(line for line in answer.iter_lines() if line and not line.startswith("data: "))
    assert comment == ": "
    assert service.listen("silence").ending("silence/1").type == "turn.interrupted"


def test_instructions_go_to_the_agent_and_not_into_the_message(
    sdk: openai.OpenAI, service: Service, model_server: Any
) -> None:
    rules = [{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Rhyme."}]
    assert ask(sdk, *rules, user("hello"), extra_headers=named("rules")) == "You said: hello"
    shown = next(
        request.messages
        for request in reversed(model_server.requests())
        if request.messages[-1]["content"] == "hello" and "Rhyme." in request.messages[0]["content"]
    )
    assert "Be brief." in shown[0]["content"]
    assert turns(service, "rules") == [("rules/1", ["hello"], "done")]


def test_a_failed_turn_is_an_error_whole_and_in_a_stream(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as whole:
        ask(sdk, user("[[400]]"), extra_headers=named("fails"))
    assert whole.value.code == "failed"
    with pytest.raises(openai.APIError, match="fake invalid_request_error"):
        streamed(sdk, user("[[400]]"), extra_headers=named("fails-too"))


def test_a_session_is_in_the_namespace_of_its_token(gateway: GatewayProcess, service: Service) -> None:
    with gateway_sdk(gateway, gateway.token("clara", "clara")) as sdk:
        ask(sdk, user("mine"), extra_headers=named("diary"))
        ask(sdk, user("no name"))
    assert turns(service, "clara:diary") == [("clara:diary/1", ["mine"], "done")]
    assert len(sessions(service, "clara:chat-")) == 1


def test_parts_of_a_message_are_joined_and_pictures_are_refused(sdk: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert ask(sdk, {"role": "user", "content": parts}) == "You said: one\ntwo"
    picture = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    with pytest.raises(openai.BadRequestError, match="'image_url'"):
        ask(sdk, {"role": "user", "content": picture})


def test_tools_of_the_client_are_ignored(sdk: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}
    assert ask(sdk, user("hello"), tools=[tool] * 36, temperature=0.3, max_tokens=5) == "You said: hello"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        ({"messages": [user("x")]}, 400),
        ({"model": "nemo", "messages": [user("x")]}, 400),
        ({"model": "default", "messages": []}, 400),
        ({"model": "default", "messages": [user(" \n")]}, 400),
        ({"model": "default", "messages": [user("x"), assistant("y")]}, 400),
        ({"model": "default", "messages": [user("x")], "n": 2}, 400),
        ({"model": "default", "messages": [user("x")], "response_format": {"type": "json_object"}}, 400),
        ({"model": "default", "messages": [user("x")], "modalities": ["text", "audio"]}, 400),
        ({"model": "default", "messages": [user("x" * (MIB + 1))]}, 413),
        ({"model": "default", "messages": [{"role": "system", "content": "x" * MIB}, user("x")]}, 413),
        ({"model": "default", "messages": [user("x" * (17 * MIB))]}, 413),
    ],
    ids=lambda value: str(value)[:50],
)
def test_bad_input_is_refused_with_a_sentence_in_the_clients_shape(
    gateway: GatewayProcess, body: Any, status: int
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    answer = gateway.client().post("/v1/chat/completions", content=content, headers=headers)
    error = answer.json()["error"]
    assert answer.status_code == status, answer.text
    assert error["message"].endswith(error["hint"])
    assert set(error) == {"message", "type", "param", "code", "hint"}


@pytest.mark.parametrize("path", ["chat/completions", "models", "nothing/here"])
def test_without_a_valid_token_nothing_is_served(gateway: GatewayProcess, path: str) -> None:
    for secret in ("", "hermes_wrong"):
        answer = gateway.client(secret).post(f"/v1/{path}", json={})
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"


def test_bad_headers_are_refused_by_name(gateway: GatewayProcess) -> None:
    body = {"model": "default", "messages": [user("x")]}
    for header, value in (("X-Session", "n" * 121), ("X-Session", "a\tb"), ("X-On-Disconnect", "explode")):
        answer = gateway.client().post("/v1/chat/completions", json=body, headers={header: value})
        assert answer.status_code == 400, answer.text
        assert header in answer.json()["error"]["message"]


def test_a_full_queue_is_told_with_the_time_to_wait(gateway: GatewayProcess, service: Service) -> None:
    client = gateway.client()
    slow = "[[slow count=1000 interval=0.5]]"
    send = {"model": "default", "messages": [user(slow)], "stream": True}
    service.say("jam", slow)
    until(lambda: [row for row in service.show("turns", session="jam") if row["state"] == "running"])
    for number in range(3):
        service.say("jam", f"number {number}", busy="queue")
    answer = client.post("/v1/chat/completions", json=send, headers=named("jam"))
    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "rate_limit_error")
    assert int(answer.headers["Retry-After"]) >= 1
    service.interrupt("jam", drop=True)


def test_a_question_is_text_and_the_next_message_answers_it(sdk: openai.OpenAI, service: Service) -> None:
    first = streamed(sdk, user(calling(QUESTION)), extra_headers=named("wall"))
    assert first == "Which colour?\n- red\n- blue"
    past = [user(calling(QUESTION)), assistant(first)]
    assert ask(sdk, *past, user("blue"), extra_headers=named("wall")) == "Done."
    assert sessions(service, "wall") == ["wall"]
    (row,) = service.show("history", session="wall")
    assert (row["state"], row["answered"][0]["answer"]) == ("done", "blue")
    past += [user("blue"), assistant("Done.")]
    assert ask(sdk, *past, user("thanks"), extra_headers=named("wall")) == "You said: thanks"
    assert [turn for turn, _, _ in turns(service, "wall")] == ["wall/1", "wall/2"]
