"""The WebSocket `/api/live`: many sessions over one connection, each with its seqs.

A browser opens six connections to a server; a page with ten sessions needs them in one. The client sends
`{"subscribe": SESSION, "after": SEQ}` and `{"unsubscribe": SESSION}`. It receives the events, deltas and
notes as in a stream of server-sent events, `subscribed` with the last seq, `cut` when a session has to be
subscribed again after a seq, and `error`. With `{"watch": [TOPIC, …]}` it also receives tables as they change
(gateway/watching.py).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gateway.errors import HttpError
from gateway.exchange import Exchange
from gateway.open_streams import OpenStream
from gateway.parts import Parts
from gateway.session_feed import Reader
from gateway.watching import Topic, Watcher

# Of one connection: more than a person can have open.
_SESSIONS_MAX = 200
# Answers that the client has not taken; a client that asks without reading is ended.
_ANSWERS_MAX = 1_000
_POLICY = 1008
_HINT = 'send {"subscribe": SESSION, "after": SEQ}, {"unsubscribe": SESSION} or {"watch": [TOPIC, …]}'


class _Command(msgspec.Struct, forbid_unknown_fields=True):
    """`subscribe` or `unsubscribe` names a session, `watch` lists topics; `after` is None for from now on."""

    subscribe: str | None = None
    unsubscribe: str | None = None
    after: int | None = None
    watch: tuple[Topic, ...] | None = None


class LiveSocket:
    def __init__(self, parts: Parts, exchange: Exchange, stream: OpenStream) -> None:
        self._parts = parts
        self._exchange = exchange
        self._stream = stream
        # By the client's name of the session.
        self._readers: dict[str, Reader] = {}
        self._ready: dict[str, None] = {}
        self._answers: deque[dict[str, Any]] = deque()
        self._watcher: Watcher | None = None

    async def run(self) -> None:
        stream = self._stream
        listening = asyncio.ensure_future(self._listen())
        try:
            while not stream.ended:
                sent = await self._send_answers()
                sent = await self._send_events() or sent
                sent = await self._send_tables() or sent
                if not sent:
                    await stream.wait()
            if not listening.done():
                await self._exchange.close_socket(_POLICY, stream.ended)
        finally:
            listening.cancel()
            for reader in self._readers.values():
                reader.close()
            self._watch(())

    async def _send_answers(self) -> bool:
        sent = bool(self._answers)
        while self._answers:
            await self._exchange.send_text(msgspec.json.encode(self._answers.popleft()).decode())
        return sent

    async def _send_events(self) -> bool:
        """Sends some of each session that has news, so that none waits for another."""
        ready, self._ready = self._ready, {}
        for name in ready:
            reader = self._readers.get(name)
            if reader is None:
                continue
            if (batch := reader.take()) is not None:
                for frame in batch.frames(self._exchange.namespace):
                    await self._exchange.send_text(frame)
                self._ready[name] = None
            elif reader.cut_reason:
                self._parts.traffic.cut()
                self._close(name)
                self._answer("cut", name, after=reader.seq, reason=reader.cut_reason)
        return bool(ready)

    async def _send_tables(self) -> bool:
        frames = self._watcher.take() if self._watcher is not None else []
        for frame in frames:
            await self._exchange.send_text(frame.decode())
        return bool(frames)

    async def _listen(self) -> None:
        """Carries out what the client asks for, one after the other."""
        try:
            while (received := await self._exchange.receive())["type"] != "websocket.disconnect":
                await self._obey(received.get("text") or received.get("bytes") or b"")
                if len(self._answers) > _ANSWERS_MAX:
                    self._stream.end("it asks and does not read")
        finally:
            self._stream.end("the client has gone")

    async def _obey(self, text: str | bytes) -> None:
        name = None
        try:
            command = msgspec.json.decode(text, type=_Command)
            name = command.subscribe or command.unsubscribe
            if command.subscribe:
                await self._subscribe(command.subscribe, command.after)
            elif command.unsubscribe:
                self._close(command.unsubscribe)
                self._answer("unsubscribed", command.unsubscribe)
            elif command.watch is not None:
                self._check_topics(command.watch)
                self._watch(command.watch)
            else:
                raise HttpError(400, "this asks for nothing", _HINT)
        except msgspec.MsgspecError as error:
            self._refuse(name, HttpError(400, f"this cannot be read: {str(error)[:200]}", _HINT))
        except HttpError as error:
            self._refuse(name, error)

    async def _subscribe(self, name: str, after: int | None) -> None:
        self._close(name)
        if len(self._readers) >= _SESSIONS_MAX:
            fault = f"this connection has {_SESSIONS_MAX} sessions"
            raise HttpError(429, fault, "unsubscribe some of them, or open another one")
        session = self._exchange.namespace.inward(name)
        reader = await self._parts.feeds.open(session, after, self._waking(name), is_paced=True)
        self._readers[name] = reader
        self._answer("subscribed", name, seq=reader.feed.head)
        reader.wake()

    def _check_topics(self, topics: Sequence[Topic]) -> None:
        assert self._exchange.token is not None
        if "service" in topics and "operate" not in self._exchange.token.rights:
            hint = "`hermesctl tokens add NAME --rights operate` makes a token that may"
            raise HttpError(403, "this token has no right to watch the service", hint)

    def _watch(self, topics: Sequence[Topic]) -> None:
        """Replaces what is watched; nothing ends it."""
        if self._watcher is not None:
            self._parts.watching.remove(self._watcher)
            self._watcher = None
        if topics:
            self._watcher = Watcher(self._exchange.namespace, topics, self._stream.wake)
            self._parts.watching.add(self._watcher)

    def _waking(self, name: str) -> Callable[[], None]:
        def wake() -> None:
            self._ready[name] = None
            self._stream.wake()

        return wake

    def _close(self, name: str) -> None:
        reader = self._readers.pop(name, None)
        if reader is not None:
            reader.close()

    def _answer(self, type: str, session: str | None, **fields: Any) -> None:
        self._answers.append({"type": type, "session": session, **fields})
        self._stream.wake()

    def _refuse(self, name: str | None, error: HttpError) -> None:
        fault, hint = map(self._exchange.namespace.sentence, (error.fault, error.hint))
        self._answer("error", name, error={"message": fault, "hint": hint, "code": error.code})


async def live(parts: Parts, exchange: Exchange) -> None:
    assert exchange.token is not None
    exchange.query()
    stream = OpenStream(exchange.token, has_beats=False)
    with parts.limiter.streams.one(exchange.token.id):
        await exchange.accept_socket()
        parts.streams.add(stream)
        try:
            await LiveSocket(parts, exchange, stream).run()
        finally:
            parts.streams.remove(stream)
