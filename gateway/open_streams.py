"""Streams that are open: they are woken for events, kept alive by beats, and ended with their token.

A stream is a task of the server that waits most of the time. One timer for all of them looks twice a second
which have been silent, and whether tokens have changed: a timer for each would be most of the work of a
gateway with thousands of idle readers.
"""

import asyncio
from time import monotonic

from gateway.tokens import Token, TokenStore

# Proxies and phones drop connections that are silent for half a minute or a minute.
BEAT_SECONDS = 15.0
_LOOK_SECONDS = 0.5


class OpenStream:
    """One stream. `ended` is the reason why it has to end; empty while it goes on.

    With `has_beats` it is woken when it is silent. A WebSocket is not: the server sends pings of its own.
    """

    __slots__ = ("_has_beats", "_is_woken", "_waiter", "ended", "sent_at", "token")

    def __init__(self, token: Token, has_beats: bool = True) -> None:
        self.token = token
        self._has_beats = has_beats
        self.ended = ""
        self.sent_at = monotonic()
        self._is_woken = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_silent(self) -> bool:
        return self._has_beats and monotonic() - self.sent_at >= BEAT_SECONDS

    @property
    def is_waiting(self) -> bool:
        """Its task is in `wait`, and nothing has woken it."""
        return self._waiter is not None and not self._waiter.done()

    def wake(self) -> None:
        self._is_woken = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, reason: str) -> None:
        self.ended = self.ended or reason
        self.wake()

    async def wait(self) -> None:
        """Returns when the stream was woken since the last call."""
        if not self._is_woken:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._is_woken = False


class OpenStreams:
    def __init__(self, tokens: TokenStore) -> None:
        self._tokens = tokens
        self._open: set[OpenStream] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, stream: OpenStream) -> None:
        self._open.add(stream)

    def remove(self, stream: OpenStream) -> None:
        self._open.discard(stream)

    def end_all(self, reason: str) -> None:
        for stream in self._open:
            stream.end(reason)

    async def watch(self) -> None:
        """Runs as long as the gateway."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        if self._tokens.has_changed():
            self.end_revoked()
        for stream in self._open:
            if stream.is_silent:
                stream.wake()

    def end_revoked(self) -> None:
        used = {stream.token.id for stream in self._open}
        revoked = {id for id in used if not self._tokens.is_valid(id)}
        for stream in self._open:
            if stream.token.id in revoked:
                stream.end("the token was revoked")
