"""The feed of a session: one subscription at the supervisor, shared by all readers of the session.

Problem: thousands of readers, each at its own place and speed, each to get every durable event once and in
order; one supervisor, whose loop must not do work for each of them; bounded memory.

The feed keeps a ring of the newest items (gateway/feed_ring.py). A reader has a position in it and is woken
when there is more. What it takes is a batch, the same one for all readers at its position, so that it is
encoded once. A reader whose position has left the ring is too slow: it is cut, and its client resumes by seq.
Memory does not depend on how slow readers are.

A reader that begins before the ring reads pages of the journal first (gateway/journal_pages.py), until its
next event is in the ring:

    paging ── next event is in the ring ──► joined ── position left the ring ──► cut

Invariants. Every event above `floor` is in the ring. The subscription ends with the connection or by a cut
and begins again after the last seq that was taken (client/resuming.py), so the ring has no gap and no repeat.
A page is asked for behind the last seq that a reader has taken, and a reader joins the ring behind it too.
They overlap all the same: the journal has an event a moment before the supervisor sends it to subscribers, so
a page may end with events that the ring gets later. Therefore a reader takes no event up to its own seq.
Deltas have no seq: a reader that joins gets the text of the open turn so far as one delta, and then those
that follow.

A browser draws sixty times a second at most, and pays for every frame that it is sent. Its reader is paced:
deltas that follow each other wake it once in `PACE_SECONDS`. Anything else wakes it at once, and it takes the
deltas before that first.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from client.resuming import Resuming
from gateway.errors import HttpError, Unavailable
from gateway.feed_item import Batch, FeedItem
from gateway.feed_ring import BATCH_BYTES, FeedRing
from gateway.supervisor_client import SupervisorClient, refusal
from ipc.messages import Answer, Cut, Delta, Event, Noted, Refused, Subscribed

# Between two wakes for deltas: a browser draws twice in this time.
PACE_SECONDS = 0.033
# A feed without readers stays for so long: a client that was cut or lost its network is back soon.
_IDLE_SECONDS = 30.0
# The report of a cut can itself be lost; a feed that is silent for so long subscribes again.
_QUIET_SECONDS = 60.0
_LOOK_SECONDS = 5.0
# Between two subscriptions of a feed that is cut again and again.
_RESUBSCRIBE_SECONDS = 1.0
# A page of the journal that could not be had is asked for again after this.
_PAGE_AGAIN_SECONDS = 0.5


class Pages(Protocol):
    def page(self, session: str, after: int) -> "asyncio.Future[tuple[FeedItem, ...]]": ...
    def forget(self) -> None: ...


class SessionFeed:
    """`started` is done when the supervisor has answered the first subscription."""

    def __init__(self, session: str, supervisor: SupervisorClient) -> None:
        self.session = session
        self._supervisor = supervisor
        self._resuming = Resuming()
        self.ring = FeedRing(session)
        self._number = 0
        self.readers: set[Reader] = set()
        self.idle_since = monotonic()
        self.taken_at = monotonic()
        self._subscribed_at = 0.0
        self._is_waking = False
        # Something other than a delta has come since paced readers were woken, and when that was.
        self._is_urgent = False
        self._paced_at = 0.0
        self._pace_timer: asyncio.TimerHandle | None = None
        self._again_timer: asyncio.TimerHandle | None = None
        # Its events are no longer those of the journal.
        self.is_void = False
        self.started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    @property
    def head(self) -> int:
        """The seq of the last durable event."""
        return self._resuming.place(self.session)

    def subscribe(self) -> None:
        """Starts the subscription, or starts it again where it was."""
        self.unsubscribe()
        self.taken_at = self._subscribed_at = monotonic()
        after = self.head if self._is_started else None
        try:
            self._number = self._supervisor.subscribe(self.session, after, self)
        except Unavailable:
            # The connection takes no more now. Where it is gone, `connected` calls this sooner.
            self._subscribe_later()
        else:
            self._resuming.subscribed(self._number)

    def _subscribe_later(self) -> None:
        self._stay_unsubscribed()
        wait = max(0.0, self._subscribed_at + _RESUBSCRIBE_SECONDS - monotonic())
        self._again_timer = asyncio.get_running_loop().call_later(wait, self.subscribe)

    def unsubscribe(self) -> None:
        self._stay_unsubscribed()
        self._supervisor.unsubscribe(self._number)

    def _stay_unsubscribed(self) -> None:
        if self._again_timer is not None:
            self._again_timer.cancel()

    def take(self, number: int, answer: Answer, size_bytes: int) -> None:
        self.taken_at = monotonic()
        match answer:
            case Event() | Delta() | Noted():
                if self._is_started and self._resuming.take(number, answer):
                    self._append(FeedItem(answer, size_bytes))
            case Subscribed() if not self._is_started:
                self._resuming.move(self.session, answer.seq)
                self.ring.floor = answer.seq
                self.started.set_result(answer.seq)
            case Cut() if number == self._number:
                self._subscribe_later()
            case Refused() if not self._is_started:
                self.started.set_exception(refusal(answer))
            case Refused():
                # The journal has fewer events than were read: it was replaced by an older one.
                self.fail(answer.error)

    def lost(self, number: int) -> None:
        """The connection is gone; the container of the feeds subscribes again when there is another."""

    def fail(self, reason: str) -> None:
        """Ends all readers; their clients find out what there is now."""
        self.is_void = True
        self.unsubscribe()
        for reader in list(self.readers):
            reader.cut(reason)

    @property
    def _is_started(self) -> bool:
        return self.started.done() and self.started.exception() is None

    def _append(self, item: FeedItem) -> None:
        self.ring.append(item)
        self._is_urgent = self._is_urgent or not isinstance(item.message, Delta)
        if not self._is_waking:
            # Once for all that arrives together.
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        now = asyncio.get_running_loop().time()
        is_due = self._is_urgent or now - self._paced_at >= PACE_SECONDS
        is_held_back = False
        for reader in tuple(self.readers):
            if is_due or not reader.is_paced:
                reader.wake()
            else:
                is_held_back = True
        if is_due:
            self._paced_at, self._is_urgent = now, False
        elif is_held_back and self._pace_timer is None:
            due_at = self._paced_at + PACE_SECONDS
            self._pace_timer = asyncio.get_running_loop().call_at(due_at, self._wake_paced)

    def _wake_paced(self) -> None:
        self._pace_timer = None
        self._paced_at = asyncio.get_running_loop().time()
        for reader in tuple(self.readers):
            if reader.is_paced:
                reader.wake()


class Reader:
    """A place in a feed. `seq` is the last durable event that was taken from it.

    `wake` is called when there may be something to take.
    """

    def __init__(
        self, feed: SessionFeed, pages: Pages, after: int | None, wake: Callable[[], None], is_paced: bool
    ) -> None:
        self.feed = feed
        self._pages = pages
        self.wake = wake
        self.is_paced = is_paced
        self.seq = feed.head if after is None else after
        # Not empty: why it was cut.
        self.cut_reason = ""
        # In the ring; None while it reads pages.
        self._position: int | None = None
        self._page: asyncio.Future[tuple[FeedItem, ...]] | None = None
        self._waiting: deque[FeedItem] = deque()
        feed.readers.add(self)
        self._join()

    def close(self) -> None:
        self.feed.readers.discard(self)
        self.feed.idle_since = monotonic()

    def cut(self, reason: str) -> None:
        self.cut_reason = reason
        self.wake()

    @property
    def is_behind(self) -> bool:
        """There is more to take, or a page is being read."""
        return bool(self._waiting) or self._position is None or self._position < self.feed.ring.end

    def take(self) -> Batch | None:
        """Returns the next items, in order; None when there are no more now.

        A reader that is too slow cuts itself.
        """
        while (found := self._next()) is not None:
            if (batch := found.after(self.seq)) is not None:
                self.seq = batch.seq or self.seq
                return batch
        return None

    def _next(self) -> Batch | None:
        if not self._waiting and self._position is None:
            self._read_page()
        if self.cut_reason:
            return None
        return self._take_waiting() if self._waiting else self._take_from_ring()

    def _take_waiting(self) -> Batch:
        taken: list[FeedItem] = []
        size = 0
        while self._waiting and size < BATCH_BYTES:
            taken.append(self._waiting.popleft())
            size += taken[-1].size_bytes
        return Batch(taken)

    def _take_from_ring(self) -> Batch | None:
        if self._position is None:
            return None
        if not self.feed.ring.has(self._position):
            self.cut("this reader was slower than its session")
            return None
        batch = self.feed.ring.batch(self._position)
        if batch is not None:
            self._position += len(batch.items)
        return batch

    def _join(self) -> None:
        if self.seq >= self.feed.ring.floor:
            self._waiting.extend(self.feed.ring.since(self.seq))
            self._position = self.feed.ring.end

    def _read_page(self) -> None:
        """Takes the page that was asked for, and asks for the next one while the ring is not reached."""
        if self._page is not None and self._page.done():
            page, self._page = self._page, None
            error = page.exception()
            if isinstance(error, Unavailable):
                asyncio.get_running_loop().call_later(_PAGE_AGAIN_SECONDS, self.wake)
                return
            if isinstance(error, HttpError):
                self.cut(error.fault)
                return
            self._waiting.extend(page.result())
            if not page.result():  # pruned: the first event that is left is in the ring
                self.seq = max(self.seq, self.feed.ring.floor)
        if not self._waiting:
            self._join()
        if not self._waiting and self._position is None and self._page is None:
            self._page = self._pages.page(self.feed.session, self.seq)
            self._page.add_done_callback(lambda page: self.wake())


class SessionFeeds:
    """The feeds that have readers, or had some a moment ago."""

    def __init__(self, supervisor: SupervisorClient, pages: Pages) -> None:
        self._supervisor = supervisor
        self._pages = pages
        self._feeds: dict[str, SessionFeed] = {}
        supervisor.connected = self._connected

    async def open(
        self, session: str, after: int | None, wake: Callable[[], None], is_paced: bool = False
    ) -> Reader:
        """Returns a reader. HttpError when there is no such session, or no such place in it."""
        if not self._supervisor.is_up:
            raise Unavailable()
        feed = self._feeds.get(session)
        if feed is None or feed.is_void:
            feed = self._feeds[session] = SessionFeed(session, self._supervisor)
            feed.subscribe()
        try:
            async with asyncio.timeout(10.0):
                await asyncio.shield(feed.started)
        except (HttpError, TimeoutError) as error:
            self._remove(feed)
            raise error if isinstance(error, HttpError) else Unavailable() from None
        if not feed.head:
            # A session begins with its first message.
            self._remove(feed)
            raise unknown_session(session)
        if after is not None and after > feed.head:
            fault = f"session {session} has {feed.head} events, so there is nothing after number {after} yet"
            raise HttpError(400, fault, "read on after the seq of the last event that you have")
        return Reader(feed, self._pages, after, wake, is_paced)

    async def require(self, session: str) -> None:
        """HttpError when there is no such session."""
        (await self.open(session, None, lambda: None)).close()

    async def watch(self) -> None:
        """Runs as long as the gateway."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._look()

    def _look(self) -> None:
        """Drops feeds that have no readers, subscribes again where it is suspiciously quiet."""
        now = monotonic()
        for feed in list(self._feeds.values()):
            if not feed.readers and now - feed.idle_since > _IDLE_SECONDS:
                self._remove(feed)
            elif now - feed.taken_at > _QUIET_SECONDS:
                feed.subscribe()

    def _connected(self) -> None:
        self._pages.forget()
        for feed in list(self._feeds.values()):
            feed.subscribe()

    def _remove(self, feed: SessionFeed) -> None:
        if self._feeds.get(feed.session) is feed and not feed.readers:
            del self._feeds[feed.session]
            feed.unsubscribe()


def unknown_session(session: str) -> HttpError:
    return HttpError(
        404, f"there is no session {session}", "send it a message first, or see GET /api/sessions"
    )
