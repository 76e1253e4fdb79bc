"""Bodies and headers of the OpenAI API by themselves: what they ask for, what they name, what is refused."""

from typing import Any

import msgspec
import pytest

from gateway.errors import HttpError
from gateway.namespace import Namespace
from gateway.openai.models_api import get_model
from gateway.openai.openai_errors import TurnError, error_body
from gateway.openai.openai_requests import (
    ChatRequest,
    ResponseRequest,
    chat_asking,
    is_detached,
    response_asking,
    wish,
)
from gateway.openai.session_choice import Wish
from gateway.openai.transcriptions_api import _format
from gateway.tokens import Token
from ipc.bounds import INSTRUCTIONS_BYTES_MAX, MESSAGE_BYTES_MAX
from ipc.messages import Table
from tests.gateway.one_exchange import Asked, answered, exchange_of

USER = {"role": "user", "content": "hello"}


def chat(*messages: dict[str, Any], **more: Any) -> ChatRequest:
    return msgspec.convert({"model": "coder", "messages": messages or (USER,), **more}, ChatRequest)


def response(**body: Any) -> ResponseRequest:
    return msgspec.convert({"model": "coder", "input": "hello", **body}, ResponseRequest)


def wished(*headers: tuple[bytes, bytes], conversation: str = "", token: Token | None = None) -> Wish:
    exchange, _ = exchange_of(headers=headers)
    exchange.token = token or exchange.token
    request = chat()
    return wish(exchange, chat_asking(request), request, conversation)


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"n": 0}, "n is not 1"),
        ({"n": 2}, "n is not 1"),
        ({"modalities": ["text", "audio"]}, "not with audio"),
        ({"response_format": {"type": "json_object"}}, "the format 'json_object'"),
    ],
)
def test_what_an_answer_would_not_be_is_refused(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(HttpError, match=fault):
        chat_asking(chat(**more))
    chat_asking(chat(n=1, modalities=["text"], response_format={"type": "text"}))


def test_a_response_in_another_format_is_refused() -> None:
    with pytest.raises(HttpError, match="the format 'json_schema'"):
        response_asking(response(text={"format": {"type": "json_schema"}}))
    assert response_asking(response(text={})).conversation.new == ("hello",)


def test_instructions_come_from_the_field_first_and_from_both_roles() -> None:
    items = [{"role": "system", "content": "two"}, {"role": "developer", "content": "three"}, USER]
    asking = response_asking(response(input=items, instructions="one"))
    assert (asking.instructions, asking.conversation.new, asking.agent) == (
        "one\n\ntwo\n\nthree",
        ("hello",),
        "coder",
    )


def test_items_that_are_no_messages_are_not_what_was_said() -> None:
    call = {"type": "function_call_output", "role": "user", "content": "the result"}
    assert response_asking(response(input=[call, USER])).conversation.new == ("hello",)


def test_a_refusal_is_an_answer_too_and_a_past_picture_is_named() -> None:
    answer = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not"}]}
    asked = {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what is it?"}]}
    past = chat_asking(chat(asked, answer, USER)).conversation.past
    assert [said.text for said in past] == ["[image_url]\nwhat is it?", "I will not"]
    with pytest.raises(HttpError, match="a part of the type 'image_url'"):
        chat_asking(chat(asked))


def test_instructions_and_the_new_messages_together_are_bounded() -> None:
    system = {"role": "system", "content": "x" * INSTRUCTIONS_BYTES_MAX}
    half = {"role": "user", "content": "x" * (MESSAGE_BYTES_MAX // 2)}
    chat_asking(chat(system, half))
    with pytest.raises(HttpError, match="the instructions has"):
        chat_asking(chat(system, {"role": "system", "content": "y"}, USER))
    with pytest.raises(HttpError, match="the message has"):
        chat_asking(chat(half, half))


def test_a_repetition_is_known_by_its_digest_to_one_token_only() -> None:
    other = Token("t_2", "phone", "anna", frozenset({"talk"}))
    assert wished().digest == wished().digest
    assert wished().digest != wished(token=other).digest
    assert wished().digest != wished((b"x-session", b"chat")).digest
    counts = (b"", b"0", b"1")
    assert [wished((b"x-stainless-retry-count", count)).repeats for count in counts] == [False, False, True]


def test_a_header_names_the_session_before_the_body_does() -> None:
    assert wished((b"x-session", b"chat"), conversation="other").name == "anna:chat"
    assert wished((b"x-session", b""), conversation="other").name == "anna:other"
    assert wished().name == ""
    with pytest.raises(HttpError, match="several X-Session headers"):
        wished((b"x-session", b"chat"), (b"x-session", b"other"))
    assert wished((b"x-session", b"n" * 120)).name == "anna:" + "n" * 120
    for name in (b"n" * 121, b" chat", b"a\x00b"):
        with pytest.raises(HttpError, match="X-Session has not 1 to 120"):
            wished((b"x-session", name))


def test_templates_of_clients_without_a_parent_say_that_a_message_is_the_first() -> None:
    for parent in (b"", b"None", b"NULL", b"00000000-0000-0000-0000-000000000000"):
        assert wished((b"x-parent", parent)).begins
    assert not wished((b"x-parent", b"m_1")).begins
    assert not wished().begins


def test_a_turn_goes_on_without_its_client_only_on_request() -> None:
    for value, detached in ((b"", False), (b"Detach", True), (b"interrupt", False)):
        assert is_detached(exchange_of(headers=((b"x-on-disconnect", value),))[0]) is detached
    with pytest.raises(HttpError, match="X-On-Disconnect is 'stay'"):
        is_detached(exchange_of(headers=((b"x-on-disconnect", b"stay"),))[0])


def test_a_model_is_an_agent_of_the_service() -> None:
    agents = Table(({"agent": "coder"}, {"agent": "writer"}))
    assert answered(get_model, Asked(agents), model="writer")["id"] == "writer"
    with pytest.raises(HttpError, match="no model 'other'") as refused:
        answered(get_model, Asked(agents), model="other")
    assert (refused.value.status, "coder, writer" in refused.value.hint) == (404, True)


def test_an_error_has_its_hint_in_its_message_and_no_prefix_of_its_owner() -> None:
    kinds = {401: "authentication_error", 429: "rate_limit_error", 503: "server_error"}
    for status, kind in (kinds | {404: "invalid_request_error"}).items():
        error = HttpError(status, "session anna:chat is held", "see anna:chat/1")
        shown = error_body(error, Namespace("anna"))["error"]
        assert (shown["type"], shown["message"]) == (kind, "session chat is held; see chat/1")
    assert TurnError("it failed", "look").headers == ((b"x-should-retry", b"false"),)


def test_a_transcript_comes_whole_in_a_format_that_is_known() -> None:
    assert _format({"model": "whisper-1", "temperature": "0", "stream": "False"}) == "json"
    for fields, fault in (
        ({"stream": "True"}, "comes whole"),
        ({"response_format": "srt"}, "no transcript in the format 'srt'"),
        ({"timestamp_granularities[]": "word"}, "is not served"),
    ):
        with pytest.raises(HttpError, match=fault):
            _format(fields)
