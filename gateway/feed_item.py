"""Items of a session's feed, and batches of them: encoded once for all readers of the session."""

from collections.abc import Iterator, Sequence
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


class Batch:
    """Items that follow each other, for every reader that is at the same place. There is at least one."""

    __slots__ = ("_first_seq", "_frames", "_sse", "items", "seq")

    def __init__(self, items: Sequence[FeedItem]) -> None:
        self.items = items
        # Of the first and the last durable item; 0 when there is none.
        self._first_seq = next((item.seq for item in items if item.seq), 0)
        self.seq = next((item.seq for item in reversed(items) if item.seq), 0)
        # By namespace, as those of the items.
        self._sse: dict[str, bytes] = {}
        self._frames: dict[str, tuple[str, ...]] = {}

    def after(self, seq: int) -> "Batch | None":
        """The batch without durable items up to this seq, which a reader has; None when nothing is left."""
        if not 0 < self._first_seq <= seq:
            return self
        items = [item for item in self.items if not 0 < item.seq <= seq]
        return Batch(items) if items else None

    def sse(self, namespace: Namespace) -> bytes:
        found = self._sse.get(namespace.owner)
        if found is None:
            found = self._sse[namespace.owner] = b"".join([item.sse(namespace) for item in self.items])
        return found

    def frames(self, namespace: Namespace) -> tuple[str, ...]:
        """Texts of the live socket. Deltas that continue each other are one: a page draws once a frame."""
        found = self._frames.get(namespace.owner)
        if found is None:
            texts = (item.json(namespace).decode() for item in _joined(self.items))
            found = self._frames[namespace.owner] = tuple(texts)
        return found


def _joined(items: Sequence[FeedItem]) -> Iterator[FeedItem]:
    run: list[FeedItem] = []
    for item in items:
        if run and not _continues(item, run[-1]):
            yield _one(run)
            run = []
        run.append(item)
    yield _one(run)


def _continues(item: FeedItem, before: FeedItem) -> bool:
    one, next = before.message, item.message
    return (
        isinstance(one, Delta)
        and isinstance(next, Delta)
        and (next.turn, next.attempt, next.offset) == (one.turn, one.attempt, one.offset + len(one.text))
    )


def _one(run: Sequence[FeedItem]) -> FeedItem:
    first = run[0].message
    if len(run) == 1 or not isinstance(first, Delta):
        return run[0]
    text = "".join(item.message.text for item in run if isinstance(item.message, Delta))
    return FeedItem(msgspec.structs.replace(first, text=text), sum(item.size_bytes for item in run))


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
