"""Open streams: silent ones are woken for a comment, an idle socket is not, a revoked token ends its own."""

import asyncio
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import open_streams
from gateway.exchange import Exchange
from gateway.limiter import Limiter
from gateway.live_socket import live
from gateway.open_streams import BEAT_SECONDS, OpenStream, OpenStreams
from gateway.parts import Parts
from gateway.tokens import TokenStore
from tests.waiting import soon


def test_a_stream_is_woken_when_it_was_silent_for_long(tmp_path: Path) -> None:
    async def scene() -> None:
        store = TokenStore(tmp_path / "tokens.db")
        token, _ = store.add("reader", "", ["watch"])
        streams = OpenStreams(store)
        stream = OpenStream(token)
        streams.add(stream)
        waiting = asyncio.ensure_future(stream.wait())
        await asyncio.sleep(0)
        streams.look()
        assert stream.is_waiting
        stream.sent_at = monotonic() - BEAT_SECONDS
        streams.look()
        assert not stream.is_waiting
        await waiting
        store.close()

    asyncio.run(scene())


def test_an_idle_socket_is_not_woken(tmp_path: Path) -> None:
    async def scene() -> None:
        store = TokenStore(tmp_path / "tokens.db")
        token, _ = store.add("page", "", ["watch"])
        streams = OpenStreams(store)
        parts = cast(Parts, SimpleNamespace(limiter=Limiter(monotonic), streams=streams))
        received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        sent: list[dict[str, Any]] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        received.put_nowait({"type": "websocket.connect"})
        exchange = Exchange({"type": "websocket", "headers": [], "query_string": b""}, received.get, send)
        exchange.token = token
        serving = asyncio.ensure_future(live(parts, exchange))
        (stream,) = await soon(lambda: streams._open)
        await soon(lambda: stream.is_waiting)
        stream.sent_at = monotonic() - 10 * BEAT_SECONDS
        streams.look()
        assert stream.is_waiting
        received.put_nowait({"type": "websocket.disconnect"})
        await serving
        assert [message["type"] for message in sent] == ["websocket.accept"]
        store.close()

    asyncio.run(scene())


def test_a_wake_before_the_wait_is_not_lost_and_the_first_reason_stands(tmp_path: Path) -> None:
    async def scene() -> None:
        store = TokenStore(tmp_path / "tokens.db")
        token, _ = store.add("reader", "", ["watch"])
        stream = OpenStream(token)
        stream.wake()
        stream.wake()
        await asyncio.wait_for(stream.wait(), 30)
        waiting = asyncio.ensure_future(stream.wait())
        await asyncio.sleep(0)
        assert stream.is_waiting, "it was woken once"
        stream.end("the token was revoked")
        stream.end("the gateway stops")
        await waiting
        assert stream.ended == "the token was revoked"
        store.close()

    asyncio.run(scene())


def test_a_stream_is_silent_after_15_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(open_streams, "monotonic", lambda: now)
    store = TokenStore(tmp_path / "tokens.db")
    token, _ = store.add("reader", "", ["watch"])
    stream, socket = OpenStream(token), OpenStream(token, has_beats=False)
    now = 114.9
    assert not stream.is_silent
    now = 115.0
    assert stream.is_silent
    assert not socket.is_silent
    store.close()


def test_a_token_that_another_process_revokes_ends_its_streams_and_no_other(tmp_path: Path) -> None:
    async def scene() -> None:
        store, elsewhere = TokenStore(tmp_path / "tokens.db"), TokenStore(tmp_path / "tokens.db")
        revoked, _ = store.add("lost phone", "", ["watch"])
        valid, _ = store.add("reader", "", ["watch"])
        streams = OpenStreams(store)
        of_revoked = [OpenStream(revoked), OpenStream(revoked, has_beats=False)]
        of_valid = OpenStream(valid)
        for stream in (*of_revoked, of_valid):
            streams.add(stream)
        waiting = [asyncio.ensure_future(stream.wait()) for stream in (*of_revoked, of_valid)]
        await asyncio.sleep(0)
        streams.look()
        assert [stream.ended for stream in of_revoked] == ["", ""]
        elsewhere.revoke(revoked.id)
        streams.look()
        assert [stream.ended for stream in of_revoked] == ["the token was revoked"] * 2
        assert (of_valid.ended, of_valid.is_waiting) == ("", True)
        streams.end_all("the gateway stops")
        assert of_valid.ended == "the gateway stops"
        await asyncio.gather(*waiting)
        for stream in (*of_revoked, of_valid):
            streams.remove(stream)
        assert len(streams) == 0
        store.close()
        elsewhere.close()

    asyncio.run(scene())


def test_streams_are_looked_at_twice_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        store = TokenStore(tmp_path / "tokens.db")
        streams = OpenStreams(store)
        story: list[Any] = []

        async def pause(seconds: float) -> None:
            story.append(seconds)
            if len(story) == 3:
                raise asyncio.CancelledError

        monkeypatch.setattr(asyncio, "sleep", pause)
        monkeypatch.setattr(streams, "look", lambda: story.append("looked"))
        with pytest.raises(asyncio.CancelledError):
            await streams.watch()
        assert story == [0.5, "looked", 0.5]
        store.close()

    asyncio.run(scene())
