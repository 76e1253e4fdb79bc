"""Silent streams: those of server-sent events are woken for a comment, an idle socket is left alone."""

import asyncio
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

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
