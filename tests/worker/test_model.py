"""The model client against a real HTTP server in each of its moods."""

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

import pytest

from ipc.messages import ModelEndpoint, Usage
from tests.fake_model import FakeModel
from worker.errors import ContextOverflow, ModelError
from worker.model import Limits, Model, Reply

QUICK = Limits(stall_seconds=0.5, back_off_seconds=0.01, characters_max=50_000)
KEY = "sk-very-secret"
WORDS = "the words of a person"


@dataclass
class Heard:
    """What came out of one request."""

    texts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Of the notes those that stand in place of the one before.
    counts: list[str] = field(default_factory=list)
    reply: Reply | None = None
    error: ModelError | None = None

    @property
    def text(self) -> str:
        return "".join(self.texts)


async def ask(model: Model, endpoint: ModelEndpoint, text: str, tools: list[dict[str, Any]]) -> Heard:
    heard = Heard()

    async def hear(piece: str) -> None:
        heard.texts.append(piece)

    def note(told: str, *, replaces: bool = False) -> None:
        (heard.counts if replaces else heard.notes).append(told)

    try:
        messages = [{"role": "user", "content": text}]
        heard.reply = await model.answer(endpoint, messages, tools, hear, note)
    except ModelError as error:
        heard.error = error
    return heard


def say(
    base_url: str,
    text: str = WORDS,
    *,
    name: str = "fake",
    key: str = KEY,
    limits: Limits = QUICK,
    tools: list[dict[str, Any]] | None = None,
    away: bool = False,
) -> Heard:
    """One request with a client of its own."""

    async def once() -> Heard:
        model = Model(limits)
        try:
            return await ask(model, ModelEndpoint(base_url, name, key, away), text, tools or [])
        finally:
            await model.close()

    return asyncio.run(once())


def fault(heard: Heard) -> ModelError:
    """The one sentence of an error, free of secrets and of what the person said."""
    assert heard.error is not None
    told = heard.error.error + heard.error.hint + " ".join(heard.notes)
    assert KEY not in told
    assert WORDS not in told
    assert "\n" not in told
    return heard.error


def test_an_answer_is_streamed_and_counted(fake: FakeModel) -> None:
    heard = say(fake.base_url)
    assert heard.reply == Reply(f"You said: {WORDS}", (), Usage(5, 7))
    assert len(heard.texts) == 7
    assert heard.notes == []
    assert fake.requests()[0].key == KEY


def test_a_server_that_counts_no_tokens_is_tolerated(fake: FakeModel) -> None:
    fake.set_mode("normal", usage="off")
    heard = say(fake.base_url)
    assert heard.reply is not None
    assert heard.reply.usage == Usage()


def test_turns_share_a_connection_until_the_endpoint_changes(fake: FakeModel) -> None:
    async def talk() -> None:
        model = Model(QUICK)
        for key in ("one", "one", "two"):
            heard = await ask(model, ModelEndpoint(fake.base_url, "fake", key), "hello", [])
            assert heard.reply is not None
        await model.close()

    asyncio.run(talk())
    first, second, third = fake.requests()
    assert first.port == second.port
    assert third.port != second.port
    assert third.key == "two"


def test_a_server_without_keys_needs_none(fake: FakeModel) -> None:
    assert say(fake.base_url, key="").reply is not None


@pytest.mark.parametrize("mode", ["429", "500"])
def test_a_passing_refusal_is_retried_visibly(fake: FakeModel, mode: str) -> None:
    fake.set_mode(mode, times=2)
    heard = say(fake.base_url)
    assert heard.text == f"You said: {WORDS}"
    assert len(heard.notes) == 2
    assert f"HTTP {mode}" in heard.notes[0]
    assert "2 of 3" in heard.notes[0]
    assert len(fake.requests()) == 3


@pytest.mark.parametrize(("mode", "status"), [("429", 429), ("500", 500)])
def test_a_lasting_refusal_is_an_outage_after_bounded_tries(fake: FakeModel, mode: str, status: int) -> None:
    fake.set_mode(mode)
    error = fault(say(fake.base_url))
    assert f"HTTP {status}" in error.error
    assert (error.again, error.outage, error.wait_seconds) == (False, True, 0)
    assert len(fake.requests()) == QUICK.tries_max


def test_a_short_retry_after_is_waited_for(fake: FakeModel) -> None:
    fake.set_mode("429", times=1, retry_after="0.3")
    heard = say(fake.base_url)
    assert heard.reply is not None
    assert "trying again in 0.3 s" in heard.notes[0]


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("3600", 3600), ("2.5", 3), ("inf", 86400), ("1e300", 86400), ("Fri, 31 Dec 1999 23:59:59 GMT", 30)],
)
def test_a_long_retry_after_is_an_outage_at_once(fake: FakeModel, asked: str, seconds: int) -> None:
    """Whoever waits for it holds no seat meanwhile."""
    fake.set_mode("429", retry_after=asked)
    heard = say(fake.base_url)
    error = fault(heard)
    assert (error.outage, error.wait_seconds, heard.notes) == (True, seconds, [])
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("asked", ["nan", "-5"])
def test_a_retry_after_that_is_no_time_asks_for_nothing(fake: FakeModel, asked: str) -> None:
    fake.set_mode("429", times=1, retry_after=asked)
    assert say(fake.base_url).reply is not None


@pytest.mark.parametrize("mode", ["500", "429", "drop"])
def test_a_server_that_is_away_is_asked_once(fake: FakeModel, mode: str) -> None:
    """A probe says nothing before its server has answered: the supervisor takes any word for an answer."""
    fake.set_mode(mode, **({"tokens": 0} if mode == "drop" else {}))
    heard = say(fake.base_url, away=True)
    assert fault(heard).outage
    assert len(fake.requests()) == 1
    assert heard.notes == (["the model server answers again"] if mode == "drop" else [])


def test_a_server_that_is_back_is_told_before_its_first_word(fake: FakeModel) -> None:
    fake.set_mode("stall", tokens=0)
    heard = say(fake.base_url, away=True)
    assert heard.notes == ["the model server answers again"]
    assert fault(heard).outage is False


def test_an_empty_account_is_not_retried(fake: FakeModel) -> None:
    fake.set_mode("429", code="insufficient_quota")
    assert "quota" in fault(say(fake.base_url)).error
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_named_with_its_setting(fake: FakeModel, status: int) -> None:
    fake.set_mode("401", status=status)
    error = fault(say(fake.base_url))
    assert "refused the API key" in error.error
    assert "[model] api_key_env" in error.hint
    assert len(fake.requests()) == 1


def test_a_missing_key_is_told_apart_from_a_wrong_one(fake: FakeModel) -> None:
    fake.set_mode("401")
    assert "none is set" in fault(say(fake.base_url, key="")).error


@pytest.mark.parametrize("mode", ["404", "html"])
def test_a_wrong_url_is_named_with_its_setting(fake: FakeModel, mode: str) -> None:
    fake.set_mode(mode)
    error = fault(say(fake.base_url))
    assert "not an OpenAI-compatible API" in error.error
    assert "[model] base_url" in error.hint
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("url", ["127.0.0.1:8000/v1", "ftp://x/v1", "http://", "http://[::1", ""])
def test_an_address_that_is_no_url_is_refused_before_anything_is_sent(url: str) -> None:
    assert "[model] base_url" in fault(say(url)).hint


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(fake: FakeModel) -> None:
    assert "api_key_file" in fault(say(fake.base_url, key=KEY + "\n")).hint
    assert fake.requests() == []


def test_an_unknown_model_is_told_apart_from_a_wrong_url(fake: FakeModel) -> None:
    fake.set_mode("404", kind="model")
    error = fault(say(fake.base_url, name="nobody"))
    assert "no model named 'nobody'" in error.error
    assert "[model] name" in error.hint


def test_a_refused_connection_is_named_with_its_setting() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        heard = say(f"http://user:{KEY}@127.0.0.1:{unheard.getsockname()[1]}/v1")
    error = fault(heard)
    assert "nothing answers at http://127.0.0.1:" in error.error
    assert "[model] base_url" in error.hint
    assert len(heard.notes) == QUICK.tries_max - 1
    assert error.outage


def test_an_unknown_host_is_named_with_its_setting() -> None:
    error = fault(say("http://no-such-host.invalid/v1"))
    assert "http://no-such-host.invalid/v1" in error.error
    assert "[model] base_url" in error.hint


def test_tls_to_a_plain_server_is_named(fake: FakeModel) -> None:
    error = fault(say(fake.base_url.replace("http:", "https:")))
    assert "does not speak TLS" in error.error


def test_a_cut_before_any_word_is_retried(fake: FakeModel) -> None:
    fake.set_mode("drop", tokens=0, times=1)
    heard = say(fake.base_url)
    assert heard.text == f"You said: {WORDS}"
    assert "closed the connection" in heard.notes[0]
    assert len(fake.requests()) == 2


def test_a_cut_after_the_first_word_is_left_to_another_attempt(fake: FakeModel) -> None:
    fake.set_mode("drop", tokens=3)
    heard = say(fake.base_url)
    error = fault(heard)
    assert "closed the connection" in error.error
    assert error.again is True
    assert heard.text == "word0 word1 word2 "
    assert len(fake.requests()) == 1


@pytest.mark.parametrize("mode", ["stall", "silent"])
def test_silence_is_noticed_and_the_server_released(fake: FakeModel, mode: str) -> None:
    fake.set_mode(mode)
    error = fault(say(fake.base_url))
    assert "sent nothing for 0.5 seconds" in error.error
    assert error.again is True
    assert len(fake.wait(lambda requests: requests[0].disconnected)) == 1


def test_a_slow_answer_is_not_a_stalled_one(fake: FakeModel) -> None:
    """More time in all than may pass without a word."""
    fake.set_mode("slow", interval=0.1, count=10)
    heard = say(fake.base_url)
    assert heard.reply is not None
    assert len(heard.texts) == 10


@pytest.mark.parametrize("kind", ["json", "shape", "bytes", "empty"])
def test_garbage_is_called_so(fake: FakeModel, kind: str) -> None:
    fake.set_mode("garbage", kind=kind)
    error = fault(say(fake.base_url))
    assert "not an OpenAI chat stream" in error.error
    assert len(fake.requests()) == 1


def test_half_an_answer_is_never_passed_off_as_whole(fake: FakeModel) -> None:
    fake.set_mode("garbage", kind="unfinished")
    heard = say(fake.base_url)
    assert heard.text == "half"
    assert fault(heard).again is True


@pytest.mark.parametrize("kind", ["tokens", "line"])
def test_an_endless_answer_is_ended(fake: FakeModel, kind: str) -> None:
    fake.set_mode("huge", kind=kind)
    heard = say(fake.base_url)
    assert "more than one answer may hold" in fault(heard).error
    assert len(heard.text) <= QUICK.characters_max
    (request,) = fake.wait(lambda requests: requests[0].disconnected)
    # What filled the sockets on the way is counted too; the bound on a whole answer would be thousands.
    assert request.tokens < 500


def test_a_conversation_too_long_for_the_model_is_told_apart(fake: FakeModel) -> None:
    fake.set_mode("400", code="context_length_exceeded")
    assert isinstance(fault(say(fake.base_url)), ContextOverflow)
    fake.set_mode("400")
    error = fault(say(fake.base_url))
    assert not isinstance(error, ContextOverflow)
    assert "HTTP 400, invalid_request_error" in error.error


def test_tool_calls_are_put_together_from_their_pieces(fake: FakeModel) -> None:
    calls = [{"name": "look", "arguments": {"where": "hère"}}, {"name": "wait", "arguments": {}}]
    fake.set_mode("tools", calls=calls)
    schema = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    heard = say(fake.base_url, tools=[schema])
    assert heard.reply is not None
    assert [(call.name, call.arguments) for call in heard.reply.calls] == [
        ("look", '{"where": "h\\u00e8re"}'),
        ("wait", "{}"),
    ]
    assert len({call.call for call in heard.reply.calls}) == 2
    assert fake.requests()[0].tools == ["look"]


def test_proxies_for_the_world_are_not_used_on_loopback(
    fake: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert say(fake.base_url).reply is not None


def test_a_cancelled_request_releases_the_server(fake: FakeModel) -> None:
    fake.set_mode("slow", interval=0.02, count=10_000)

    async def talk() -> None:
        model = Model()
        first = asyncio.Event()

        async def hear(_: str) -> None:
            first.set()

        def ignore(_: str, *, replaces: bool = False) -> None: ...

        endpoint = ModelEndpoint(fake.base_url, "fake")
        messages = [{"role": "user", "content": "go"}]
        task = asyncio.create_task(model.answer(endpoint, messages, [], hear, ignore))
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()

    asyncio.run(talk())
    assert len(fake.wait(lambda requests: requests[0].disconnected)) == 1
