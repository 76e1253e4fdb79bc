"""`/v1/responses` with the SDK of OpenAI: streams that resume, background, cancel with proof, the journal."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import gateway_sdk, named, sessions, turns
from tests.gateway.test_messages import QUESTION, SPIN, calling
from tests.service import Service
from tests.waiting import until

SLOW = "[[slow count=40 interval=0.03]]"
SLOW_TEXT = "".join(f"word{number} " for number in range(40))
ENDLESS = "[[slow count=1000 interval=0.5]]"


@pytest.fixture
def sdk(gateway: GatewayProcess) -> Iterator[openai.OpenAI]:
    with gateway_sdk(gateway) as client:
        yield client


def text_in(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def settled(sdk: openai.OpenAI, id: str) -> Any:
    def look() -> Any:
        found = sdk.responses.retrieve(id)
        return found if found.status not in ("queued", "in_progress") else None

    return until(look)


def test_a_response_has_the_answer_and_is_read_again_from_the_journal(
    sdk: openai.OpenAI, gateway: GatewayProcess
) -> None:
    made = sdk.responses.create(model="default", input="hello", metadata={"a": "b"})
    assert (made.status, made.output_text) == ("completed", "You said: hello")
    assert made.usage is not None
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens > 0
    assert made.metadata == {"a": "b"}
    gateway.kill()
    gateway.start()
    again = sdk.responses.retrieve(made.id)
    assert (again.id, again.status, again.output_text) == (made.id, "completed", "You said: hello")
    assert (again.usage, again.model) == (made.usage, "default")
    assert [item.id for item in again.output] == [item.id for item in made.output]


def test_a_stream_has_numbered_events_in_the_order_of_the_api(sdk: openai.OpenAI) -> None:
    events = list(sdk.responses.create(model="default", input=SLOW, stream=True))
    types = [event.type for event in events]
    assert types[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert types[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert set(types[4:-4]) == {"response.output_text.delta"}
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    assert text_in(events) == SLOW_TEXT
    last: Any = events[-1]
    assert last.response.output_text == SLOW_TEXT


def test_the_streams_of_the_sdk_accept_it(sdk: openai.OpenAI) -> None:
    with sdk.responses.stream(model="default", input="hello") as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text == "You said: hello"


def test_a_conversation_goes_on_behind_any_response(sdk: openai.OpenAI, service: Service) -> None:
    first = sdk.responses.create(model="default", input="one", conversation="thread")
    second = sdk.responses.create(model="default", input="two", previous_response_id=first.id)
    assert turns(service, "thread") == [("thread/1", ["one"], "done"), ("thread/2", ["two"], "done")]
    other = sdk.responses.create(model="default", input="deux", previous_response_id=first.id)
    assert other.output_text == "You said: deux"
    (branch,) = [name for name in sessions(service, "thread") if name != "thread"]
    assert turns(service, branch) == [("", ["one"], "past"), (f"{branch}/1", ["deux"], "done")]
    sdk.responses.create(model="default", input="three", previous_response_id=second.id)
    assert [turn for turn, _, _ in turns(service, "thread")] == ["thread/1", "thread/2", "thread/3"]
    sdk.responses.create(model="default", input="four", conversation={"id": "thread"})
    assert [turn for turn, _, _ in turns(service, "thread")][-1] == "thread/4"


def test_input_may_be_a_whole_conversation(sdk: openai.OpenAI, service: Service) -> None:
    items: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "first"}]},
        {"role": "user", "content": "[[recite]] two"},
    ]
    made = sdk.responses.create(model="default", input=items, extra_headers=named("imported"))
    assert "user, assistant, user" in made.output_text
    assert turns(service, "imported")[0] == ("", ["one"], "past")


def test_a_background_response_runs_without_its_client_and_its_stream_resumes(
    sdk: openai.OpenAI, gateway: GatewayProcess
) -> None:
    """The gateway is killed in between: the numbers of the events stay the same."""
    made = sdk.responses.create(model="default", input=SLOW, background=True)
    assert made.status in ("queued", "in_progress")
    seen: list[Any] = []
    with sdk.responses.retrieve(made.id, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if text_in(seen).count("word") >= 5:
                break
    gateway.kill()
    gateway.start()
    rest = list(sdk.responses.retrieve(made.id, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [event.sequence_number for event in seen + rest]
    assert numbers == sorted(set(numbers))
    assert text_in(seen) + text_in(rest) == SLOW_TEXT
    assert rest[-1].type == "response.completed"
    assert settled(sdk, made.id).output_text == SLOW_TEXT


def test_a_stream_resumes_behind_every_number_of_it(sdk: openai.OpenAI) -> None:
    """Also behind numbers that were never sent: those within a delta."""
    made = sdk.responses.create(model="default", input="[[slow text='some words here' interval=0]]")
    whole = list(sdk.responses.retrieve(made.id, stream=True))
    for event in whole:
        after = event.sequence_number
        rest = list(sdk.responses.retrieve(made.id, stream=True, starting_after=after))
        assert [each.type for each in rest] == [each.type for each in whole if each.sequence_number > after]
    begun = next(event for event in whole if event.type == "response.content_part.added")
    for count in range(len(made.output_text)):
        after = begun.sequence_number + 9 + count
        rest = list(sdk.responses.retrieve(made.id, stream=True, starting_after=after))
        assert text_in(rest) == made.output_text[count:]


def test_cancel_answers_with_the_proof(sdk: openai.OpenAI, service: Service) -> None:
    made = sdk.responses.create(model="default", input=calling(SPIN), background=True, conversation="spin")
    listener = service.listen("spin")
    listener.until(lambda: listener.of_type("tool.started"))
    cancelled = sdk.responses.cancel(made.id)
    assert cancelled.status == "cancelled"
    proof = cancelled.to_dict()["killed"]
    assert isinstance(proof, dict)
    assert proof["all_dead"]
    assert proof["processes"] >= 1
    assert listener.ending("spin/1").type == "turn.interrupted"
    assert sdk.responses.cancel(made.id).status == "cancelled"
    done = sdk.responses.create(model="default", input="hello")
    assert sdk.responses.cancel(done.id).status == "completed"


def test_a_response_that_waits_is_dropped_by_its_cancel(sdk: openai.OpenAI, service: Service) -> None:
    service.say("queue", ENDLESS)
    until(lambda: [row for row in service.show("turns", session="queue") if row["state"] == "running"])
    made = sdk.responses.create(model="default", input="later", background=True, conversation="queue")
    assert sdk.responses.retrieve(made.id).status == "queued"
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert [row["state"] for row in service.show("turns", session="queue")] == ["running"]
    service.interrupt("queue")


def test_a_failed_response_says_why_and_a_cut_one_is_incomplete(sdk: openai.OpenAI) -> None:
    failed = sdk.responses.create(model="default", input="[[400]]")
    assert failed.status == "failed"
    assert failed.error is not None
    assert "fake invalid_request_error" in failed.error.message
    events = list(sdk.responses.create(model="default", input="[[400]]", stream=True))
    assert events[-1].type == "response.failed"
    cut = sdk.responses.create(model="default", input="[[normal finish=length]] x")
    assert cut.incomplete_details is not None
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_a_question_is_an_item_and_the_next_response_answers_it(
    sdk: openai.OpenAI, gateway: GatewayProcess
) -> None:
    asked = sdk.responses.create(model="default", input=calling(QUESTION), conversation="paint")
    assert (asked.status, asked.output_text) == ("completed", "Which colour?\n- red\n- blue")
    answered = sdk.responses.create(model="default", input="blue", previous_response_id=asked.id)
    assert answered.output_text == "Done."
    gateway.kill()
    gateway.start()
    for made in (asked, answered):
        assert sdk.responses.retrieve(made.id).output_text == made.output_text


def test_a_strangers_response_does_not_exist(sdk: openai.OpenAI, gateway: GatewayProcess) -> None:
    with gateway_sdk(gateway, gateway.token("dora", "dora")) as dora:
        made = dora.responses.create(model="default", input="mine")
        with gateway_sdk(gateway, gateway.token("emil", "emil")) as emil:
            for id in (made.id, "resp_none", "m_" + made.id, "resp_", "resp_a/b", "../x"):
                with pytest.raises(openai.NotFoundError):
                    emil.responses.retrieve(id)
            with pytest.raises(openai.NotFoundError):
                emil.responses.cancel(made.id)
            with pytest.raises(openai.NotFoundError):
                emil.responses.create(model="default", input="x", previous_response_id=made.id)


def test_bad_requests_are_refused_with_a_sentence(gateway: GatewayProcess) -> None:
    client = gateway.client()
    made = client.post("/v1/responses", json={"model": "default", "input": "x"}).json()["id"]
    for body in (
        {"model": "default"},
        {"model": "nemo", "input": "x"},
        {"model": "default", "input": ""},
        {"model": "default", "input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"model": "default", "input": "x", "text": {"format": {"type": "json_schema"}}},
        {"model": "default", "input": "x", "conversation": " "},
    ):
        answer = client.post("/v1/responses", json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["type"] == "invalid_request_error"
    for query in ("starting_after=3", "starting_after=x&stream=true", "colour=red"):
        assert client.get(f"/v1/responses/{made}?{query}").status_code == 400
