"""Clients that go: their turn is interrupted, and nothing else. Deaths of the host are not theirs."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from gateway.openai import open_requests
from gateway.openai.conversation_rule import LOST_WORDS
from ipc.messages import Queue, Table
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import gateway_sdk, named, user
from tests.gateway.test_openai_repeats import running
from tests.service import Listener, Service
from tests.waiting import until

ENDLESS = "[[slow count=1000 interval=0.2]]"


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with gateway_sdk(gateway, max_retries=0) as client:
        yield client


def ended(service: Service, session: str, number: int = 1) -> Any:
    return service.listen(session).ending(f"{session}/{number}")


def begin(sdk: openai.OpenAI, session: str, text: str = ENDLESS, **headers: str) -> Any:
    """A stream of which the first words have come."""
    stream = sdk.chat.completions.create(
        model="default", messages=[user(text)], stream=True, extra_headers=named(session, **headers)
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            return stream
    raise AssertionError("there were no words")


def test_a_client_that_goes_interrupts_its_turn_and_no_other(sdk: openai.OpenAI, service: Service) -> None:
    stream = begin(sdk, "gone")
    service.say("gone", "what waits", busy="queue")
    service.say("bystander", ENDLESS)
    until(lambda: running(service, "bystander"))
    stream.close()
    ending = ended(service, "gone")
    assert (ending.type, ending.fields["by"]) == ("turn.interrupted", "first")
    assert ending.fields["killed"]["all_dead"]
    assert ending.fields["partial"].startswith("word0")
    assert running(service, "bystander")
    assert [row["text"] for row in _queue(service, "gone")] == ["what waits"]
    service.interrupt("bystander")


def _queue(service: Service, session: str) -> list[dict[str, Any]]:
    client = service.client()
    return list(client.ask(Queue(session), Table).rows)


def leave_running(gateway: GatewayProcess, service: Service, session: str, text: str) -> None:
    """Sends a request that is not streamed, and closes the connection when its turn runs."""
    body = json.dumps({"model": "default", "messages": [user(text)]})
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    head = [
        "POST /v1/chat/completions HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {gateway.first_secret}",
        f"X-Session: {session}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall("\r\n".join([*head, "", body]).encode())
        until(lambda: running(service, session))


def test_a_client_that_goes_before_the_first_word_interrupts_a_little_later(
    gateway: GatewayProcess, service: Service
) -> None:
    """In between it may send the request again (test_openai_repeats.py)."""
    leave_running(gateway, service, "silent", "[[stall tokens=0]]")
    assert ended(service, "silent").type == "turn.interrupted"


def test_the_turn_after_that_of_a_client_that_went_is_not_interrupted(
    gateway: GatewayProcess, service: Service
) -> None:
    """Its own turn ends while the request might still come again."""
    leave_running(gateway, service, "heir", "[[slow text='short' interval=1]]")
    service.say("heir", ENDLESS, busy="queue")
    listener = service.listen("heir")
    # It takes longer than the gateway waits.
    listener.until(lambda: listener.words.count("word") > 2 * open_requests.AGAIN_SECONDS / 0.2)
    assert listener.ending("heir/1").type == "turn.done"
    assert [row["turn"] for row in running(service, "heir")] == ["heir/2"]
    service.interrupt("heir")


def test_a_message_that_waits_is_dropped_with_its_client(sdk: openai.OpenAI, service: Service) -> None:
    service.say("line", ENDLESS)
    until(lambda: running(service, "line"))
    stream = sdk.chat.completions.create(
        model="default", messages=[user("late")], stream=True, extra_headers=named("line")
    )
    until(lambda: _queue(service, "line"))
    stream.close()
    until(lambda: not _queue(service, "line"))
    assert running(service, "line")
    service.interrupt("line")


def test_a_client_may_leave_its_turn_running(sdk: openai.OpenAI, service: Service) -> None:
    text = "[[slow count=30 interval=0.05]]"
    begin(sdk, "leave", text, **{"X-On-Disconnect": "detach"}).close()
    ending = ended(service, "leave")
    assert (ending.type, ending.fields["text"].count("word")) == ("turn.done", 30)


def test_one_of_two_clients_that_goes_interrupts_nothing(gateway: GatewayProcess, service: Service) -> None:
    text = "[[slow count=40 interval=0.05]]"
    with gateway_sdk(gateway, max_retries=0) as one, gateway_sdk(gateway, max_retries=0) as other:
        first = begin(one, "both", text)
        second = begin(other, "both", text)
        first.close()
        words = sum((chunk.choices[0].delta.content or "").count("word") for chunk in second if chunk.choices)
    assert words >= 30
    assert ended(service, "both").type == "turn.done"


def test_the_death_of_the_gateway_interrupts_nothing(
    sdk: openai.OpenAI, gateway: GatewayProcess, service: Service
) -> None:
    begin(sdk, "survives", "[[slow count=30 interval=0.05]]")
    gateway.kill()
    gateway.start()
    assert ended(service, "survives").type == "turn.done"


def test_the_end_of_the_gateway_interrupts_nothing_and_is_told(
    sdk: openai.OpenAI, gateway: GatewayProcess, service: Service
) -> None:
    stream = begin(sdk, "outlives", "[[slow count=60 interval=0.05]]")
    assert gateway.process is not None
    gateway.process.terminate()
    with pytest.raises(openai.APIError, match="the turn goes on"):
        for _ in stream:
            pass
    gateway.process.wait(60)
    gateway.start()
    assert ended(service, "outlives").type == "turn.done"


def test_a_background_response_is_not_its_clients(sdk: openai.OpenAI, service: Service) -> None:
    stream = sdk.responses.create(
        model="default",
        input="[[slow count=30 interval=0.05]]",
        background=True,
        stream=True,
        conversation="bg",
    )
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    stream.close()
    assert ended(service, "bg").type == "turn.done"


def test_a_restart_of_the_supervisor_is_a_pause_and_the_lost_attempt_is_told(
    sdk: openai.OpenAI, service: Service
) -> None:
    """In words in a chat, as another item in a response; both have every word that stands, in order."""
    text = "[[goon count=100 interval=0.1]]"
    chat = begin(sdk, "pause", text)
    response = sdk.responses.create(model="default", input=text, stream=True, conversation="pause-too")
    events: list[Any] = []
    for event in response:
        events.append(event)
        if event.type == "response.output_text.delta":
            break
    service.kill()
    service.start()
    rest = "".join(chunk.choices[0].delta.content or "" for chunk in chat if chunk.choices)
    events += list(response)
    whole = " ".join(f"word{number}" for number in range(100))
    _, told, last = rest.rpartition(LOST_WORDS)
    assert told
    assert whole.endswith(last.strip())
    final: Any = events[-1]
    assert final.type == "response.completed"
    assert [item.status for item in final.response.output][-1] == "completed"
    assert len([each for each in events if each.type == "response.output_item.added"]) == 2
    assert final.response.output_text == whole
    again = sdk.responses.retrieve(final.response.id)
    assert again.output_text == whole
    assert [item.to_dict() for item in again.output] == [item.to_dict() for item in final.response.output]
    numbers = [each.sequence_number for each in events]
    assert numbers == sorted(set(numbers))
    listener: Listener = service.listen("pause")
    assert listener.ending("pause/1").fields["text"] == whole
    assert listener.of_type("attempt.lost")
