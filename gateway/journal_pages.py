"""Pages of a session's journal, for readers that are behind its feed.

The supervisor has no request for a page of events: a page is a subscription that is ended after so many
events. Readers that return at the same time want the same pages (after a restart of the gateway, or of a
network), so a page that is being read is shared, and a few megabytes of them are kept. Events never change,
so a page that is kept is never wrong.
"""

import asyncio
from collections import OrderedDict

from gateway.errors import HttpError, Unavailable
from gateway.feed_item import FeedItem
from gateway.supervisor_client import SupervisorClient, refusal
from ipc.messages import Answer, Event, Refused, Subscribed

_PAGE_EVENTS = 512
_PAGE_BYTES = 512 * 1024
# Subscriptions for pages at a time. The supervisor shares its loop among all that are behind.
_AT_ONCE = 8
_KEPT_BYTES = 16 * 1024 * 1024
_PATIENCE_SECONDS = 30.0

Page = tuple[FeedItem, ...]


class _PageReading:
    """A subscription that ends with its page."""

    def __init__(self, after: int) -> None:
        self.done: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
        self._seq = after
        self._last = 0
        self._items: list[FeedItem] = []
        self._bytes = 0

    def take(self, number: int, answer: Answer, size_bytes: int) -> None:
        if self.done.done():
            return
        match answer:
            case Subscribed():
                self._last = answer.seq
            case Event() if answer.seq > self._seq:
                self._seq = answer.seq
                self._items.append(FeedItem(answer, size_bytes))
                self._bytes += size_bytes
            case Refused():
                self.done.set_exception(refusal(answer))
                return
        is_full = len(self._items) >= _PAGE_EVENTS or self._bytes >= _PAGE_BYTES
        if is_full or self._seq >= self._last:
            self.done.set_result(tuple(self._items))

    def lost(self, number: int) -> None:
        if not self.done.done():
            self.done.set_exception(Unavailable())


class JournalPages:
    def __init__(self, supervisor: SupervisorClient) -> None:
        self._supervisor = supervisor
        self._permits = asyncio.Semaphore(_AT_ONCE)
        self._being_read: dict[tuple[str, int], asyncio.Task[Page]] = {}
        self._kept: OrderedDict[tuple[str, int], Page] = OrderedDict()
        self._kept_bytes = 0

    def page(self, session: str, after: int) -> "asyncio.Future[Page]":
        """Returns the events after a seq; none when there are no more. HttpError when they cannot be had.

        The future is shared by several readers: none may cancel it.
        """
        place = (session, after)
        if (kept := self._kept.get(place)) is not None:
            self._kept.move_to_end(place)
            done: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
            done.set_result(kept)
            return done
        if (reading := self._being_read.get(place)) is None:
            reading = self._being_read[place] = asyncio.ensure_future(self._read(session, after))
            reading.add_done_callback(lambda task: self._finished(place, task))
        return reading

    def forget(self) -> None:
        """Called when a connection was lost: the next supervisor may have another journal."""
        self._kept.clear()
        self._kept_bytes = 0

    async def _read(self, session: str, after: int) -> Page:
        async with self._permits:
            reading = _PageReading(after)
            number = self._supervisor.subscribe(session, after, reading)
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    return await reading.done
            except TimeoutError:
                raise Unavailable("the supervisor does not send the events") from None
            finally:
                self._supervisor.unsubscribe(number)

    def _finished(self, place: tuple[str, int], task: "asyncio.Task[Page]") -> None:
        del self._being_read[place]
        if task.cancelled() or isinstance(task.exception(), HttpError) or not task.result():
            return
        self._kept[place] = task.result()
        self._kept_bytes += _size(task.result())
        while self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= _size(self._kept.popitem(last=False)[1])


def _size(page: Page) -> int:
    return sum(item.size_bytes for item in page)
