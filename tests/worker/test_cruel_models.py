"""A model server that means harm, over real HTTP: the request fails by name, nothing goes elsewhere."""

import asyncio
import base64
import copy
import itertools
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ipc.messages import ModelEndpoint, Usage
from tests.fake_model import FakeModel
from tests.raw_server import dripping, raw_server
from tests.worker.test_model import KEY, QUICK, WORDS, Heard, ask, fault, say
from worker.model import Model, ToolCall

# Beyond the few megabytes of an event and what is made of them.
PEAK_BYTES_MAX = 300 * 1024 * 1024
PATIENT = replace(QUICK, stall_seconds=10)


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    """The peak of this process is nowhere near what a server wanted it to be."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < PEAK_BYTES_MAX


def nothing() -> Iterator[bytes]:
    return iter(())


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_h15_a_redirect_carries_nothing_elsewhere(fake: FakeModel, status: int) -> None:
    with raw_server(nothing) as elsewhere:
        fake.set_mode("redirect", to=f"{elsewhere.base_url}/chat/completions", status=status)
        error = fault(say(fake.base_url))
        assert f"redirects to http://127.0.0.1:{elsewhere.port} (HTTP {status})" in error.error
        assert "[model] base_url" in error.hint
        assert elsewhere.heard == []
    assert len(fake.requests()) == 1


@pytest.mark.parametrize(
    ("to", "named"),
    [
        ("/v2/chat/completions", "redirects to http://127.0.0.1:"),
        ("https://somebody:secret@evil.example/x", "redirects to https://evil.example ("),
        ("javascript:alert(1)", "redirects ("),
        ("http://[broken", "redirects"),
        ("//" + "x" * 300 + "\u202e", "redirects ("),
    ],
)
def test_h15_where_a_redirect_leads_is_told_without_secrets(fake: FakeModel, to: str, named: str) -> None:
    fake.set_mode("redirect", to=to)
    error = fault(say(fake.base_url))
    assert named in error.error
    assert "secret" not in error.error
    assert error.error.isascii()
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, identity"])
@pytest.mark.parametrize("status", [200, 500])
def test_h15_a_packed_body_is_not_unpacked(fake: FakeModel, encoding: str, status: int) -> None:
    fake.set_mode("bomb", encoding=encoding, status=status)
    assert "packs its answers" in fault(say(fake.base_url, limits=PATIENT)).error


def test_h15_the_text_of_an_error_is_decoded_by_no_codec_of_the_servers(fake: FakeModel) -> None:
    fake.set_mode("bomb", encoding="charset=zlib_codec", status=400, mebibytes=200)
    # On a busy machine the server packs for a while before it has something to send.
    limits = replace(PATIENT, stall_seconds=60)
    assert "refused the request (HTTP 400)" in fault(say(fake.base_url, limits=limits)).error


@pytest.mark.parametrize("kind", ["line", "event", "carriage", "error"])
def test_h15_what_has_no_end_is_cut_off(fake: FakeModel, kind: str) -> None:
    fake.set_mode("endless", kind=kind)
    assert "more than one answer may hold" in fault(say(fake.base_url, limits=PATIENT)).error


def test_h15_a_stream_that_says_nothing_is_cut_off_by_its_size(fake: FakeModel) -> None:
    fake.set_mode("endless", kind="silence")
    limits = replace(PATIENT, bytes_max=4 * 1024 * 1024)
    assert "more than one answer may hold" in fault(say(fake.base_url, limits=limits)).error


def test_h15_what_follows_the_end_of_an_answer_does_not_hold_it_up(fake: FakeModel) -> None:
    fake.set_mode("endless", kind="after")
    began = time.monotonic()
    heard = say(fake.base_url, limits=PATIENT)
    assert heard.text == "whole"
    assert time.monotonic() - began < PATIENT.stall_seconds


def test_h15_a_header_that_is_too_long_is_refused(fake: FakeModel) -> None:
    fake.set_mode("endless", kind="header")
    assert "does not keep to HTTP" in fault(say(fake.base_url, limits=PATIENT)).error


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("first", "again", "said"),
    [
        (HEAD, b"x-more: " + b"x" * 1000 + b"\r\n", "does not keep to HTTP"),
        (HEAD + b"x-line: ", b"x" * 1000, "does not keep to HTTP"),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n", "sent nothing for"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1;" + b"x" * 1000, "does not keep to HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", b"x" * 1000, "does not keep to HTTP"),
    ],
    ids=["fields", "one field", "informational", "chunk extension", "another protocol"],
)
def test_h15_a_header_without_end_ends_in_time(first: bytes, again: bytes, said: str) -> None:
    with raw_server(lambda: itertools.chain([first], itertools.repeat(again))) as server:
        limits = replace(QUICK, stall_seconds=1, connect_seconds=1, tries_max=1)
        assert said in fault(say(server.base_url, limits=limits)).error


def test_h15_a_header_that_drips_ends_in_time() -> None:
    with raw_server(lambda: dripping(HEAD, b"x: y\r\n")) as server:
        limits = replace(QUICK, stall_seconds=0.5, connect_seconds=0.5, tries_max=1)
        assert "sent nothing for" in fault(say(server.base_url, limits=limits)).error


@pytest.mark.parametrize("tokens", [str(2**63), str(10**30), "-1", "1e400", "NaN", "1000000001", "-0.5"])
def test_h15_a_count_that_cannot_be_fails_the_call_by_name(fake: FakeModel, tokens: str) -> None:
    fake.set_mode("usage", tokens=tokens)
    assert "reports a number of tokens that cannot be" in fault(say(fake.base_url)).error


@pytest.mark.parametrize(
    ("tokens", "counted"), [("12", Usage(12, 12)), ('"5"', Usage(5, 5)), ('"x"', Usage()), ("null", Usage())]
)
def test_a_count_of_another_kind_is_read_where_it_can_be(
    fake: FakeModel, tokens: str, counted: Usage
) -> None:
    fake.set_mode("usage", tokens=tokens)
    reply = say(fake.base_url).reply
    assert reply is not None
    assert reply.usage == counted


@pytest.mark.parametrize("depth", [900, 100_000])
def test_h15_nested_json_is_no_answer(fake: FakeModel, depth: int) -> None:
    fake.set_mode("nested", depth=depth)
    assert "not an OpenAI chat stream" in fault(say(fake.base_url)).error


def test_h15_halves_of_characters_are_joined_or_replaced(fake: FakeModel) -> None:
    fake.set_mode("halves")
    heard = say(fake.base_url)
    assert heard.text == "smile 😀 lone � and � nul �."
    assert heard.reply is not None
    assert heard.reply.text == heard.text


def test_h15_a_call_can_be_repeated_to_the_model_whatever_it_holds(fake: FakeModel) -> None:
    fake.set_mode("halves", kind="call")
    reply = say(fake.base_url).reply
    assert reply is not None
    assert reply.calls == (ToolCall("", "sh�ell", '{"command": "�\\u0000"}'),)
    json.dumps([call.name + call.arguments for call in reply.calls], ensure_ascii=False).encode()


@pytest.mark.parametrize("kind", ["calls", "at once", "arguments"])
def test_h15_a_flood_of_calls_is_cut_off(fake: FakeModel, kind: str) -> None:
    fake.set_mode("flood", kind=kind)
    assert "more than one answer may hold" in fault(say(fake.base_url, limits=PATIENT)).error


def test_h15_long_names_and_ids_are_not_kept(fake: FakeModel) -> None:
    fake.set_mode("flood", kind="names")
    reply = say(fake.base_url, limits=replace(PATIENT, characters_max=2_000_000)).reply
    assert reply is not None
    [call] = reply.calls
    assert (call.call, len(call.name)) == ("", 128)


CHUNK: dict[str, Any] = {
    "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake",
    "choices": [
        {
            "index": 0, "finish_reason": "stop", "logprobs": None,
            "delta": {
                "role": "assistant", "content": "words", "refusal": None,
                "reasoning_content": "hm", "reasoning": "hm", "thinking": "hm",
                "tool_calls": [
                    {
                        "index": 0, "id": "c1", "type": "function",
                        "function": {"name": "shell", "arguments": "{}"},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "prompt_tokens_details": None},
}  # fmt: skip
PARTS: dict[str, Any] = copy.deepcopy(CHUNK)
PARTS["choices"][0]["delta"] = {
    "content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "words"},
    ]
}
WRONG: tuple[Any, ...] = (
    None,
    True,
    -7,
    2**70,
    1.5,
    "x",
    "\ud800",
    [],
    [[]],
    [None],
    [7],
    {},
    {"x": {}},
    [{}],
)


def wrong_chunks(right: dict[str, Any]) -> Iterator[Any]:
    """The chunk with each of its parts replaced by each wrong value."""

    def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        yield path
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, inner in items:
            yield from paths(inner, (*path, key))

    for path, wrong in itertools.product(paths(right), WRONG):
        if not path:
            yield wrong
            continue
        chunk = copy.deepcopy(right)
        at = chunk
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = wrong
        yield chunk


def test_h15_every_field_may_hold_anything(fake: FakeModel) -> None:
    """Each time there is a reply that can be sent and stored, or an error by name; never anything else."""

    async def all_of_them() -> int:
        model, count = Model(replace(QUICK, tries_max=1)), 0
        endpoint = ModelEndpoint(fake.base_url, "fake", KEY)
        for chunk in itertools.chain(wrong_chunks(CHUNK), wrong_chunks(PARTS)):
            events = base64.b64encode(json.dumps([chunk]).encode()).decode()
            heard: Heard = await ask(model, endpoint, f"{WORDS} [[content events={events}]]", [])
            if heard.error is None:
                assert heard.reply is not None
                texts = [
                    heard.reply.text,
                    heard.reply.finish,
                    *heard.reply.reasoning.values(),
                    *(call.call + call.name + call.arguments for call in heard.reply.calls),
                ]
                "".join(texts).encode()
                assert 0 <= heard.reply.usage.input_tokens < 2**63
            else:
                fault(heard)
            count += 1
        await model.close()
        return count

    assert asyncio.run(all_of_them()) > 300


def test_h15_a_servers_cookies_do_not_come_back(fake: FakeModel) -> None:
    answer = b"HTTP/1.1 500 No\r\nset-cookie: who=session-a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    with raw_server(lambda: iter([answer])) as server:
        fault(say(server.base_url, limits=replace(QUICK, tries_max=3)))
        assert len(server.heard) == 3
        assert not any(b"session-a" in request for request in server.heard)
