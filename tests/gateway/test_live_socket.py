"""The live socket by itself: one reader for each session, its bounds, cuts, and what is left at its end."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import live_socket
from gateway.exchange import Exchange
from gateway.limiter import Limiter
from gateway.live_socket import live
from gateway.open_streams import OpenStreams
from gateway.parts import Parts
from gateway.session_feed import SessionFeed, SessionFeeds
from gateway.tokens import TokenStore
from gateway.traffic import Traffic
from ipc.messages import Event
from tests.gateway.test_feed_upkeep import HEAD, Supervisor, play
from tests.waiting import soon


class Page:
    """A client of the socket; it takes nothing while `is_reading` is cleared. Sessions have three events."""

    def __init__(self, tokens: TokenStore, feeds: SessionFeeds, owner: str) -> None:
        self.feeds = feeds
        self.streams = OpenStreams(tokens)
        self.traffic = Traffic()
        self.limiter = Limiter(monotonic)
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        # Messages that the socket has begun to send, and those that the client has taken.
        self.begun = 0
        self.sent: list[dict[str, Any]] = []
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.received.put_nowait({"type": "websocket.connect"})
        parts = SimpleNamespace(feeds=feeds, streams=self.streams, traffic=self.traffic, limiter=self.limiter)
        scope = {"type": "websocket", "headers": [], "query_string": b""}
        exchange = Exchange(scope, self.received.get, self._send)
        exchange.token, _ = tokens.add("page", owner, ["watch"])
        self.serving = asyncio.ensure_future(live(cast(Parts, parts), exchange))

    async def _send(self, message: dict[str, Any]) -> None:
        self.begun += 1
        await self.is_reading.wait()
        self.sent.append(json.loads(message["text"]) if "text" in message else message)

    def ask(self, **command: Any) -> None:
        self.received.put_nowait({"type": "websocket.receive", "text": json.dumps(command)})

    def of(self, type: str) -> list[dict[str, Any]]:
        return [each for each in self.sent if each["type"] == type]

    async def answers(self, type: str, count: int = 1) -> list[dict[str, Any]]:
        await soon(lambda: len(self.of(type)) >= count)
        return self.of(type)

    def feed(self, session: str = "demo") -> SessionFeed:
        return self.feeds._feeds[session]

    def write(self, seq: int, size_bytes: int = 10) -> None:
        """An event of the session, as its subscription brings it."""
        feed = self.feed()
        feed.take(feed._number, Event(seq, "demo", "tool.started", 1.0, {}), size_bytes)

    async def leave(self) -> None:
        self.received.put_nowait({"type": "websocket.disconnect"})
        await self.serving


def on_socket(folder: Path, scene: Callable[[Page], Coroutine[Any, Any, None]], owner: str = "") -> None:
    async def run(supervisor: Supervisor, feeds: SessionFeeds) -> None:
        tokens = TokenStore(folder / "tokens.db")
        page = Page(tokens, feeds, owner)
        await scene(page)
        await page.leave()
        tokens.close()

    play(folder, run)


def test_a_session_that_is_subscribed_again_has_one_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_socket, "_SESSIONS_MAX", 1)

    async def scene(page: Page) -> None:
        for count in (1, 2):
            page.ask(subscribe="demo")
            await page.answers("subscribed", count)
        (reader,) = page.feed().readers
        assert reader.is_paced
        assert not page.of("error"), "it is no further session"
        page.write(HEAD + 1)
        await page.answers("tool.started")
        # What is there already comes without another event.
        page.ask(subscribe="demo", after=HEAD)
        await page.answers("tool.started", 2)
        assert [each["seq"] for each in page.of("tool.started")] == [HEAD + 1] * 2

    on_socket(tmp_path, scene)


def test_a_socket_has_so_many_sessions_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert live_socket._SESSIONS_MAX == 200
    monkeypatch.setattr(live_socket, "_SESSIONS_MAX", 2)

    async def scene(page: Page) -> None:
        for name in ("a", "b", "c"):
            page.ask(subscribe=name)
        (refused,) = await page.answers("error")
        assert (refused["session"], refused["error"]["code"]) == ("c", "full")
        assert "has 2 sessions" in refused["error"]["message"]
        page.ask(unsubscribe="a")
        page.ask(subscribe="c")
        assert [each["session"] for each in await page.answers("subscribed", 3)] == ["a", "b", "c"]
        assert not page.feed("a").readers

    on_socket(tmp_path, scene)


def test_a_socket_that_ends_leaves_nothing_open(tmp_path: Path) -> None:
    async def scene(page: Page) -> None:
        for name in ("a", "b"):
            page.ask(subscribe=name)
        await page.answers("subscribed", 2)
        assert len(page.streams) == 1
        assert page.limiter.streams._open
        await page.leave()
        assert [page.feed(name).readers for name in ("a", "b")] == [set(), set()]
        assert len(page.streams) == 0
        assert not page.limiter.streams._open

    on_socket(tmp_path, scene)


def test_a_socket_that_was_ended_obeys_no_more(tmp_path: Path) -> None:
    async def scene(page: Page) -> None:
        await soon(lambda: page.sent)
        page.streams.end_all("the token was revoked")
        await page.serving
        assert page.sent[-1] == {"type": "websocket.close", "code": 1008, "reason": "the token was revoked"}
        page.ask(subscribe="demo")
        for _ in range(5):
            await asyncio.sleep(0)
        assert page.received.qsize() == 1, "it is not read"

    on_socket(tmp_path, scene)


def test_a_session_that_is_cut_says_behind_which_event_once_and_the_others_go_on(tmp_path: Path) -> None:
    async def scene(page: Page) -> None:
        for count, name in enumerate(("demo", "other"), 1):
            page.ask(subscribe=name)
            await page.answers("subscribed", count)
        page.is_reading.clear()
        page.write(HEAD + 1)
        # It is being sent while the next ones push each other out of the ring.
        await soon(lambda: page.begun > len(page.sent))
        for seq in range(HEAD + 2, HEAD + 5):
            page.write(seq, 600_000)
        page.is_reading.set()
        (cut,) = await page.answers("cut")
        assert (cut["session"], cut["after"]) == ("demo", HEAD + 1)
        assert "slower than its session" in cut["reason"]
        assert "hermes_gateway_streams_cut_total 1" in page.traffic.text(0)
        assert not page.feed().readers
        page.write(HEAD + 5)
        page.ask(unsubscribe="other")
        await page.answers("unsubscribed")
        assert len(page.of("cut")) == 1
        assert [each["seq"] for each in page.of("tool.started")] == [HEAD + 1]

    on_socket(tmp_path, scene)


def test_a_client_that_asks_and_does_not_read_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_socket, "_ANSWERS_MAX", 3)

    async def scene(page: Page) -> None:
        await soon(lambda: page.sent)
        (stream,) = page.streams._open
        page.is_reading.clear()
        page.ask(unsubscribe="being sent")
        await soon(lambda: page.begun > len(page.sent))
        for number in range(3):
            page.ask(unsubscribe=str(number))
        await soon(page.received.empty)
        assert stream.ended == ""
        page.ask(unsubscribe="one too many")
        await soon(lambda: stream.ended)
        page.is_reading.set()
        await page.serving
        assert page.sent[-1]["reason"] == "it asks and does not read"

    on_socket(tmp_path, scene)


def test_a_refusal_on_a_socket_names_the_session_as_its_owner_does(tmp_path: Path) -> None:
    async def scene(page: Page) -> None:
        page.ask(subscribe="demo", after=99)
        (refused,) = await page.answers("error")
        assert refused["session"] == "demo"
        assert refused["error"]["message"].startswith("session demo has 3 events")

    on_socket(tmp_path, scene, owner="anna")
