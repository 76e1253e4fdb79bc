"""A server's own words about a request that it refuses: read, cleaned, without the key, and shown."""

from typing import Any

import pytest

from tests.fake_model import FakeModel
from tests.worker.test_model import KEY, say
from worker.errors import ContextOverflow
from worker.model_complaint import Complaint, read_complaint

LONG_KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"


@pytest.mark.parametrize(
    ("mode", "options", "begins"),
    [
        ("400", {}, "the model server at"),
        ("401", {}, "the model server at"),
        ("401", {"status": 403}, "the model server at"),
        ("404", {"kind": "model"}, "the model server at"),
    ],
)
def test_what_no_retry_mends_fails_at_once_with_the_servers_words(
    fake: FakeModel, mode: str, options: dict[str, Any], begins: str
) -> None:
    fake.set_mode(mode, message="The parameter\n`tools`\x07 is\u202e odd.", **options)
    error = say(fake.base_url).error
    assert error is not None
    assert error.error.startswith(begins)
    assert error.error.endswith(": “The parameter `tools` is odd.”")
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("mode", ["400", "401"])
def test_the_key_is_not_repeated(fake: FakeModel, mode: str) -> None:
    fake.set_mode(mode, message=f"Incorrect API key provided: {KEY}. See {KEY[:-1]}…")
    error = say(fake.base_url).error
    assert error is not None
    assert "Incorrect API key provided: [key]. See [key]…" in error.error


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        (f"key {LONG_KEY}!", "key [key]!"),
        (f"key {LONG_KEY[5:25]}!", "key [key]!"),
        (f"key {LONG_KEY[:12]}*{LONG_KEY[-12:]}", "key [key]*[key]"),
        (f"key {LONG_KEY[:8]}****{LONG_KEY[-4:]}", f"key {LONG_KEY[:8]}****{LONG_KEY[-4:]}"),
        (f"key {LONG_KEY[:20]}\0{LONG_KEY[20:]}", "key [key]"),
        ("x" * 190 + LONG_KEY, "x" * 190 + "[key]"),
        ("x" * 300, "x" * 199 + "…"),
        (" \n\t ", ""),
    ],
    ids=["whole", "a part", "two parts", "masked by the server", "split", "at the end", "long", "blank"],
)
def test_what_is_shown_of_a_sentence(sentence: str, shown: str) -> None:
    assert Complaint(sentence=sentence).shown(LONG_KEY) == shown


def test_a_short_key_is_replaced_where_it_stands_whole() -> None:
    assert Complaint(sentence="a tiny key: tiny").shown("tiny") == "a [key] key: [key]"
    assert Complaint(sentence="no key: tiny").shown("") == "no key: tiny"


@pytest.mark.parametrize(
    ("body", "codes", "sentence"),
    [
        ({"message": "no", "code": "c", "type": "t"}, ("c", "t"), "no"),
        ({"message": "no", "code": 400, "type": "t"}, ("t",), "no"),
        ({"detail": "no"}, (), "no"),
        ({"error": "no"}, (), "no"),
        ("no", (), "no"),
        ([{"error": {"message": "no", "status": "INVALID"}}], ("INVALID",), "no"),
        ({"message": ["no"], "code": {}}, (), ""),
        ([], (), ""),
        (None, (), ""),
        (7, (), ""),
    ],
)
def test_errors_of_many_shapes_are_read(body: object, codes: tuple[str, ...], sentence: str) -> None:
    assert read_complaint(body) == Complaint(codes, sentence)


def test_a_page_is_no_sentence(fake: FakeModel) -> None:
    fake.set_mode("404")
    error = say(fake.base_url).error
    assert error is not None
    assert error.error.endswith("is not an OpenAI-compatible API (HTTP 404)")


@pytest.mark.parametrize(
    "kind", ["openai", "llama.cpp", "vllm", "ollama", "tgi", "gemini", "rate", "413", "stream"]
)
def test_a_request_that_is_too_long_is_known_whoever_says_so(fake: FakeModel, kind: str) -> None:
    fake.set_mode("normal", context=10, overflow=kind)
    assert isinstance(say(fake.base_url).error, ContextOverflow)
    assert len(fake.requests()) == 1


def test_another_refusal_is_not_taken_for_a_long_request(fake: FakeModel) -> None:
    fake.set_mode("400", message="The model does not support tools.")
    assert not isinstance(say(fake.base_url).error, ContextOverflow)
    assert not Complaint(("rate_limit_exceeded",), "Please slow down.").is_overflow(429)
    assert not Complaint((), "the context window server is down").is_overflow(503)
