"""The reader of an answer: through cuts and beside other readers, with nothing left open behind it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.limiter import Limiter, _Holders
from gateway.live_socket import live
from gateway.open_streams import OpenStream, OpenStreams
from gateway.openai.answer_reader import attended, read_answer
from gateway.openai.answer_steps import End, Lost, Piece, Step
from gateway.openai.chat_api import _Chunks, _Completion, _whole, post_chat
from gateway.openai.conversation_rule import LOST_WORDS
from gateway.openai.open_requests import OpenRequest
from gateway.openai.openai_requests import ChatRequest
from gateway.openai.response_events import ResponseStream
from gateway.openai.responses_api import _Events, get_response, post_cancel, post_response
from gateway.openai.session_choice import Placed
from gateway.parts import Parts
from gateway.session_feed import SessionFeed, SessionFeeds
from gateway.sse import get_events
from gateway.tokens import Token, TokenStore
from ipc.message_parts import Killed
from ipc.messages import Delta, Done, Event, Interrupt, Request, Show
from tests.gateway.test_feed_upkeep import HEAD, Supervisor, feed_of, play
from tests.waiting import soon

TOKEN = Token("t_1", "phone", "", frozenset({"talk", "watch"}))
PLACED = Placed("demo", "m", HEAD + 1)


class Story:
    """Events and deltas of the session, as its subscription brings them."""

    def __init__(self, feed: SessionFeed) -> None:
        self.feed = feed
        self._seq = HEAD

    def event(self, type: str, **fields: Any) -> None:
        self._seq += 1
        self.feed.take(self.feed._number, Event(self._seq, "demo", type, 1.0, fields), 10)

    def open(self) -> None:
        self.event("message.accepted", message="m", text="hello")
        self.event("turn.opened", turn="demo/1", messages=["m"])

    def delta(self, offset: int, text: str) -> None:
        self.feed.take(self.feed._number, Delta("demo", "demo/1", 1, offset, text), 10)

    def end(self, text: str) -> None:
        self.event("turn.done", turn="demo/1", text=text)


def on_feed(folder: Path, scene: Callable[[Parts, Story], Coroutine[Any, Any, None]]) -> None:
    """The feed is there and another reader has it, which alone is left in the end."""

    async def run(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        other = await feeds.open("demo", None, lambda: None)
        async with asyncio.timeout(20):
            await scene(cast(Parts, SimpleNamespace(feeds=feeds)), Story(feed_of(feeds)))
        assert feed_of(feeds).readers == {other}

    play(folder, run)


def test_an_answer_that_began_before_its_reader_is_read_from_its_beginning(tmp_path: Path) -> None:
    async def scene(parts: Parts, story: Story) -> None:
        story.open()
        story.end("hello")
        request = OpenRequest("d", "anna")
        steps = [each async for each in read_answer(parts, PLACED, OpenStream(TOKEN), request)]
        assert [type(each) for each in steps] == [Piece, End]
        assert (request.turn, request.is_ended) == ("demo/1", True)

    on_feed(tmp_path, scene)


def test_a_reader_that_is_cut_goes_on_behind_what_it_has(tmp_path: Path) -> None:
    async def scene(parts: Parts, story: Story) -> None:
        steps: list[Any] = []

        async def read() -> None:
            async for step in read_answer(parts, PLACED, OpenStream(TOKEN)):
                steps.append(step)
                if isinstance(step, Lost):
                    for reader in list(story.feed.readers):
                        reader.cut("it was slow")
                    story.end("one deux")

        reading = asyncio.create_task(read())
        await soon(lambda: len(story.feed.readers) == 2)
        story.open()
        story.delta(0, "one two")
        story.event("attempt.lost", turn="demo/1", offset=4)
        await reading
        assert steps[:-1] == [Piece("one two", 0), Lost(4), Piece("deux", 4)]

    on_feed(tmp_path, scene)


def test_a_client_that_goes_in_the_middle_leaves_no_reader(tmp_path: Path) -> None:
    async def scene(parts: Parts, story: Story) -> None:
        story.open()
        story.delta(0, "one")
        async with aclosing(read_answer(parts, PLACED, OpenStream(TOKEN))) as reading:
            assert await anext(reading) == Piece("one", 0)

    on_feed(tmp_path, scene)


def exchange_with(body: bytes = b"", query: bytes = b"", sent: list[bytes] | None = None) -> Exchange:
    """A request whose client stays; `sent` gets the parts of its answer."""
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        if sent is not None:
            sent.append(message.get("body", b""))

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "path": "/", "headers": headers, "query_string": query}
    exchange = Exchange(scope, receive, send)
    exchange.token = TOKEN
    exchange.parameters = {"session": "demo", "response": "resp_1", "message": "m_1"}
    return exchange


def test_an_answer_that_was_given_leaves_no_stream_and_no_task(tmp_path: Path) -> None:
    async def scene() -> None:
        tokens = TokenStore(tmp_path / "tokens.db")
        left: list[bool] = []
        requests = SimpleNamespace(leave=lambda request, is_gone: left.append(is_gone))
        parts = cast(Parts, SimpleNamespace(streams=OpenStreams(tokens), requests=requests))
        async with attended(parts, exchange_with(), OpenRequest("d", "anna")):
            await asyncio.sleep(0)
            assert len(parts.streams) == 1
        await asyncio.sleep(0)
        assert (len(parts.streams), left) == (0, [False])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        tokens.close()

    asyncio.run(scene())


CHAT = b'{"model": "default", "messages": [{"role": "user", "content": "x"}]}'
STORED = {"session": "demo", "turn": "demo/1", "turn_state": "done", "state": "taken", "clip": "c1"}
EVENT = {"type": "turn.opened", "seq": 1, "session": "demo", "at": 1.0, "agent": "default"}


@pytest.mark.parametrize(
    ("handler", "body", "query"),
    [
        (get_events, b"", b""),
        (live, b"", b""),
        (post_chat, CHAT, b""),
        (post_response, b'{"model": "default", "input": "x"}', b""),
        (get_response, b"", b"stream=true"),
    ],
)
def test_each_kind_of_stream_counts_as_one_of_its_token(handler: Any, body: bytes, query: bytes) -> None:
    async def rows(request: Show) -> list[dict[str, Any]]:
        return [{"agent": "default"}] if request.what == "agents" else [STORED, EVENT]

    limiter = Limiter(monotonic)
    limiter.streams = _Holders(0, "it has all of its {} streams", "close some")
    parts = cast(Parts, SimpleNamespace(limiter=limiter, supervisor=SimpleNamespace(rows=rows)))
    with pytest.raises(HttpError, match="all of its 0 streams"):
        asyncio.run(handler(parts, exchange_with(body, query)))


def whole(*steps: Step) -> str:
    async def run() -> dict[str, Any]:
        async def given() -> Any:
            for step in steps:
                yield step

        return await _whole(_Completion("1", ChatRequest("default", [])), given())

    return str(asyncio.run(run())["choices"][0]["message"]["content"])


def test_a_whole_answer_has_nothing_of_what_was_lost() -> None:
    end = End("done", {}, 1.0)
    assert whole(Piece("one two", 0), Lost(4), Piece("deux", 4), end) == "one deux"
    # The answer to a message that joined a running turn begins in the middle of its text.
    assert whole(Piece("one two", 10), Lost(14), Piece("deux", 14), end) == "one deux"
    assert whole(Piece("one", 10), Lost(10), Piece("un", 10), Lost(11), Piece("ne", 11), end) == "une"


def test_a_chat_is_told_of_a_loss_only_behind_text_that_it_has() -> None:
    async def given(*steps: Step) -> Any:
        for step in steps:
            yield step

    async def told(*steps: Step) -> str:
        sent: list[bytes] = []
        exchange, completion = exchange_with(sent=sent), _Completion("1", ChatRequest("default", []))
        chunks = _Chunks(exchange, OpenStream(TOKEN), OpenRequest("d", "anna"), completion)
        await chunks.send(given(*steps, End("done", {}, 1.0)))
        return b"".join(sent).decode()

    assert LOST_WORDS in asyncio.run(told(Piece("one", 0), Lost(0), Piece("un", 0)))
    assert LOST_WORDS not in asyncio.run(told(Lost(0), Piece("un", 0)))


def test_a_cancel_while_the_journal_cannot_be_written_has_the_proof_of_its_own_turn() -> None:
    running = STORED | {"turn_state": "running"}
    killed = (Killed("demo/9", 7, True, 1.5, "cgroup"), Killed("demo/1", 2, True, 1.5, "cgroup"))
    done = Done(("demo/9", "demo/1"), killed=killed, unwritten="the disk is full")
    asked: list[Request] = []

    async def rows(request: Show) -> list[dict[str, Any]]:
        return [running, EVENT]

    async def ask(request: Request, expected: type) -> Done:
        asked.append(request)
        return done

    parts = cast(Parts, SimpleNamespace(supervisor=SimpleNamespace(rows=rows, ask=ask)))
    sent: list[bytes] = []
    asyncio.run(post_cancel(parts, exchange_with(sent=sent)))
    shown = json.loads(b"".join(sent))
    assert asked == [Interrupt("demo", "phone", "demo/1")]
    assert (shown["status"], shown["unwritten"]) == ("cancelled", "the disk is full")
    assert shown["killed"] == {"processes": 2, "all_dead": True, "ms": 1.5, "how": "cgroup"}


@pytest.mark.parametrize("is_chat", [True, False])
def test_a_request_knows_whether_a_part_of_its_answer_was_sent(is_chat: bool) -> None:
    """Then its client does not send it again, and its turn is stopped at once when it goes."""

    async def given(*steps: Step) -> Any:
        for step in steps:
            yield step

    async def run(*steps: Step) -> bool:
        request, exchange, stream = OpenRequest("d", "anna"), exchange_with(), OpenStream(TOKEN)
        if is_chat:
            completion = _Completion("1", ChatRequest("default", []))
            await _Chunks(exchange, stream, request, completion).send(given(*steps))
        else:
            await _Events(exchange, stream, ResponseStream("resp_1", {}), request).send(given(*steps))
        return request.has_sent

    assert asyncio.run(run(Piece("one", 0), End("done", {}, 1.0)))
    assert not asyncio.run(run(End("done", {}, 1.0)))


def test_a_response_goes_on_behind_one_that_has_ended_or_asks_and_no_other() -> None:
    asked = EVENT | {"type": "question.asked", "seq": 2}

    def refused(*told: dict[str, Any]) -> str:
        async def rows(request: Show) -> list[dict[str, Any]]:
            return [{"agent": "default"}] if request.what == "agents" else list(told)

        async def continue_after(*place: Any) -> None:
            raise HttpError(400, "it goes on", "look")

        parts = SimpleNamespace(
            limiter=Limiter(monotonic),
            supervisor=SimpleNamespace(rows=rows),
            sessions=SimpleNamespace(continue_after=continue_after),
            requests=SimpleNamespace(enter=lambda wish, place: place()),
        )
        body = b'{"model": "default", "input": "x", "previous_response_id": "resp_1"}'
        with pytest.raises(HttpError) as error:
            asyncio.run(post_response(cast(Parts, parts), exchange_with(body)))
        return error.value.fault

    assert refused(STORED, EVENT) == "it goes on"
    running = STORED | {"turn_state": "running"}
    assert refused(running, EVENT) == "the response resp_1 has not ended"
    assert refused(running, EVENT, asked) == "it goes on"
    answered = asked | {"type": "question.answered", "seq": 3}
    assert refused(running, EVENT, asked, answered) == "the response resp_1 has not ended"
    assert refused(STORED | {"turn": None, "state": "waiting"}, EVENT) == "the response resp_1 has not ended"
