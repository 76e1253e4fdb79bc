"""An item of a session's feed: encoded once for all readers, whatever they read it through."""

from typing import Any

import msgspec

from gateway.namespace import Namespace
from ipc.messages import Delta, Event, Noted

FeedMessage = Event | Delta | Noted


class FeedItem:
    """An event, a delta or a note. `seq` is 0 for the two that are not durable."""

    __slots__ = ("_json", "_sse", "message", "seq", "size_bytes")

    def __init__(self, message: FeedMessage, size_bytes: int) -> None:
        self.message = message
        self.seq = message.seq if isinstance(message, Event) else 0
        self.size_bytes = size_bytes
        # By namespace: at most the owner's, and the empty one.
        self._json: dict[str, bytes] = {}
        self._sse: dict[str, bytes] = {}

    def json(self, namespace: Namespace) -> bytes:
        found = self._json.get(namespace.owner)
        if found is None:
            found = self._json[namespace.owner] = msgspec.json.encode(namespace.row(plain(self.message)))
        return found

    def sse(self, namespace: Namespace) -> bytes:
        """A message of text/event-stream. JSON has no line breaks, so its data is one line."""
        found = self._sse.get(namespace.owner)
        if found is None:
            id_line = b"id: %d\n" % self.seq if self.seq else b""
            found = self._sse[namespace.owner] = b"%sdata: %s\n\n" % (id_line, self.json(namespace))
        return found


def plain(message: FeedMessage) -> dict[str, Any]:
    """The message as clients see it, the same as in `hermesctl tail --json`."""
    if isinstance(message, Event):
        common = {"seq": message.seq, "session": message.session, "type": message.type, "at": message.at}
        return common | {name: value for name, value in message.fields.items() if name not in common}
    if isinstance(message, Delta):
        place = {"turn": message.turn, "attempt": message.attempt, "offset": message.offset}
        return {"type": "delta", "session": message.session, **place, "text": message.text}
    return {
        "type": "note",
        "session": message.turn.rpartition("/")[0],
        "turn": message.turn,
        "attempt": message.attempt,
        "text": message.text,
        "call": message.call,
        "replaces": message.replaces,
    }
