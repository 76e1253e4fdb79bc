"""The newest items of a session, and the text of its open turn: what readers of its feed take from. No I/O.

A position counts all items that the feed ever had; a ring holds those from `first` to `end`. Every event
above `floor` is in it.
"""

from collections import deque

from gateway.feed_item import Batch, FeedItem
from gateway.streamed_text import StreamedText
from ipc.messages import Noted

# Some seconds of a fast stream, and what a reconnecting client has missed.
_ITEMS_MAX = 4_096
_BYTES_MAX = 1024 * 1024
# A batch is full when it has so many: a fraction of what the server buffers before it waits for a client.
BATCH_BYTES = 32 * 1024


class FeedRing:
    def __init__(self, session: str) -> None:
        self._session = session
        self._items: deque[FeedItem] = deque()
        self._bytes = 0
        self._first = 0
        self.floor = 0
        self._streamed = StreamedText()
        # The last one that was taken, and its position: most readers are at the same place. It stays right
        # when the ring grows: then a reader takes the rest as its next one.
        self._batch: Batch | None = None
        self._batch_position = 0

    @property
    def end(self) -> int:
        """The position behind the last item."""
        return self._first + len(self._items)

    def append(self, item: FeedItem) -> None:
        if not isinstance(item.message, Noted):
            self._streamed.take(item.message)
        self._items.append(item)
        self._bytes += item.size_bytes
        while len(self._items) > 1 and (len(self._items) > _ITEMS_MAX or self._bytes > _BYTES_MAX):
            oldest = self._items.popleft()
            self._first += 1
            self._bytes -= oldest.size_bytes
            self.floor = oldest.seq or self.floor

    def has(self, position: int) -> bool:
        """False when the item at the position has left the ring."""
        return position >= self._first

    def batch(self, position: int) -> Batch | None:
        """The items at a position that has not left the ring; None when they are yet to come."""
        if self._batch is None or self._batch_position != position:
            items: list[FeedItem] = []
            size = 0
            while size < BATCH_BYTES and position + len(items) < self.end:
                items.append(self._items[position + len(items) - self._first])
                size += items[-1].size_bytes
            self._batch, self._batch_position = (Batch(items) if items else None), position
        return self._batch

    def since(self, seq: int) -> list[FeedItem]:
        """The durable items above a seq that is not below the floor, then the text of the open turn."""
        found = [item for item in self._items if item.seq > seq]
        if (delta := self._streamed.delta(self._session)) is not None:
            found.append(FeedItem(delta, len(delta.text)))
        return found
