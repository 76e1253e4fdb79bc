"""Events and text of this host's sessions, for subscriptions here and for those at other hosts.

After each batch the other hosts are told how far the events of its sessions go; they read them from the
journal (remote_feed.py). Streamed text is collected for a tenth of a second and sent as it is. Both go to the
database only while another host is there. The text of a session is sent before its next event, so that it
arrives in that order.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from ipc import messages as wire
from ipc.codec import Decoder
from supervisor.core.records import Record

# A subscriber elsewhere waits for this and for the way; together less than 0.2 s.
_GATHER_SECONDS = 0.1
# A character has at most six bytes in a notice, whose size is limited to 7,900.
_TEXT_CHARACTERS_MAX = 1_000
_ENDINGS = frozenset({"turn.done", "turn.failed", "turn.interrupted"})

# Kinds of notices, and their entries.
EVENTS = "events"  # session, first seq, last seq, whether a turn has ended
TEXT = "text"  # session, turn, attempt, offset, text
NOTE = "note"  # session, turn, attempt, text


class Subscriptions(Protocol):
    def publish(self, records: Sequence[Record]) -> None: ...
    def delta(self, session: str, frame: bytes) -> None: ...


class Peers(Protocol):
    @property
    def others(self) -> object: ...
    def tell(self, life: int | None, notice: list[object]) -> None: ...


class _Text:
    """Text of one attempt that was not sent yet; it begins at `offset`."""

    __slots__ = ("attempt", "end", "offset", "pieces", "turn")

    def __init__(self, delta: wire.Delta) -> None:
        self.turn, self.attempt = delta.turn, delta.attempt
        self.offset = self.end = delta.offset
        self.pieces: list[str] = []

    def takes(self, delta: wire.Delta) -> bool:
        return (self.turn, self.attempt, self.end) == (delta.turn, delta.attempt, delta.offset)

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.end += len(text)


class SharedFeed:
    """Stands where a host alone has its subscriptions."""

    def __init__(self, subscriptions: Subscriptions, peers: Peers) -> None:
        self._subscriptions = subscriptions
        self._peers = peers
        self._decoder: Decoder[wire.Delta | wire.Noted] = Decoder(wire.Delta | wire.Noted)
        self._texts: dict[str, _Text] = {}
        self._flush: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def publish(self, records: Sequence[Record]) -> None:
        """Send what has just become durable."""
        self._subscriptions.publish(records)
        if self._peers.others:
            self._tell_events(records)

    def delta(self, session: str, frame: bytes) -> None:
        self._subscriptions.delta(session, frame)
        if self._peers.others:
            self._gather(session, self._decoder.decode(frame))

    def _tell_events(self, records: Sequence[Record]) -> None:
        told: dict[str, tuple[int, int, bool]] = {}
        for record in records:
            if record.type:
                first, _, has_ended = told.get(record.session, (record.seq, 0, False))
                told[record.session] = first, record.seq, has_ended or record.type in _ENDINGS
        for session, (first, last, has_ended) in told.items():
            if session in self._texts:
                self._tell_text(session)
            self._peers.tell(None, [EVENTS, session, first, last, has_ended])

    def _gather(self, session: str, message: wire.Delta | wire.Noted) -> None:
        if isinstance(message, wire.Noted):
            text = message.text[:_TEXT_CHARACTERS_MAX]
            self._peers.tell(None, [NOTE, session, message.turn, message.attempt, text])
            return
        waiting = self._texts.get(session)
        if waiting is not None and not waiting.takes(message):
            self._tell_text(session)
        self._texts.setdefault(session, _Text(message)).add(message.text)
        if self._flush is None:
            self._flush = self._loop.call_later(_GATHER_SECONDS, self._tell_texts)

    def _tell_texts(self) -> None:
        self._flush = None
        for session in list(self._texts):
            self._tell_text(session)

    def _tell_text(self, session: str) -> None:
        found = self._texts.pop(session)
        text = "".join(found.pieces)
        for begin in range(0, len(text), _TEXT_CHARACTERS_MAX):
            piece = text[begin : begin + _TEXT_CHARACTERS_MAX]
            self._peers.tell(None, [TEXT, session, found.turn, found.attempt, found.offset + begin, piece])
