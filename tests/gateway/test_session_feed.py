"""The feed of a session: who is woken for what, and what is encoded once for all."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from gateway import feed_ring
from gateway.feed_item import Batch, FeedItem
from gateway.feed_ring import FeedRing
from gateway.journal_pages import JournalPages
from gateway.namespace import Namespace
from gateway.session_feed import PACE_SECONDS, Reader, SessionFeed
from gateway.supervisor_client import SupervisorClient
from ipc.messages import Delta, Event, Noted, Subscribed
from tests.waiting import soon

_ALL = Namespace("")


def delta(offset: int, text: str, attempt: int = 1, turn: str = "demo/1") -> Delta:
    return Delta("demo", turn, attempt, offset, text)


def event(seq: int) -> Event:
    return Event(seq, "demo", "tool.started", 1.0, {"turn": "demo/1", "call": "c"})


def batch(*messages: Delta | Event | Noted) -> Batch:
    return Batch([FeedItem(message, 100) for message in messages])


def shown(found: Batch) -> list[tuple[Any, ...]]:
    """The frames of a batch: deltas with their offsets and texts, anything else by its type."""
    rows = map(json.loads, found.frames(_ALL))
    return [(row["offset"], row["text"]) if row["type"] == "delta" else (row["type"],) for row in rows]


def test_deltas_that_continue_each_other_are_one_frame() -> None:
    assert shown(batch(delta(5, " a"), delta(7, " é👍"), delta(10, " c"))) == [(5, " a é👍 c")]
    (frame,) = batch(delta(5, " a"), delta(7, " b")).frames(_ALL)
    alone = json.loads(FeedItem(delta(5, " a b"), 1).json(_ALL))
    assert json.loads(frame) == alone


def test_other_deltas_and_what_is_between_them_stay_apart_and_in_order() -> None:
    note = Noted("demo/1", 1, "reads", "c")
    assert shown(batch(delta(0, "a"), event(4), delta(1, "b"), note, delta(2, "c"), delta(3, "d"))) == [
        (0, "a"),
        ("tool.started",),
        (1, "b"),
        ("note",),
        (2, "cd"),
    ]
    # A gap, a repetition, the next attempt, the next turn.
    for other in (delta(2, "b"), delta(0, "b"), delta(1, "b", attempt=2), delta(1, "b", turn="demo/2")):
        assert shown(batch(delta(0, "a"), other)) == [(0, "a"), (other.offset, "b")]


def test_server_sent_events_stay_apart() -> None:
    assert batch(delta(0, "a"), delta(1, "b")).sse(_ALL).count(b"data: ") == 2


def in_feed(tmp_path: Path, scene: Callable[[SessionFeed, JournalPages], Coroutine[Any, Any, None]]) -> None:
    """Runs it with the feed of a session that has three events; no supervisor is there to send more."""

    async def run() -> None:
        supervisor = SupervisorClient(str(tmp_path / "absent.sock"))
        feed = SessionFeed("demo", supervisor)
        feed.take(0, Subscribed(3), 10)
        try:
            await scene(feed, JournalPages(supervisor))
        finally:
            supervisor.close()

    asyncio.run(run())


async def turns_of_the_loop() -> None:
    """So many that all that is due at once is done."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_readers_at_the_same_place_get_the_same_batch(tmp_path: Path) -> None:
    async def scene(feed: SessionFeed, pages: JournalPages) -> None:
        first, second = (Reader(feed, pages, None, lambda: None, is_paced=False) for _ in range(2))
        feed.take(0, event(4), 100)
        feed.take(0, delta(0, "a"), 100)
        found = first.take()
        assert found is not None
        assert found is second.take()
        assert (first.seq, second.seq) == (4, 4)
        assert not first.is_behind
        assert first.take() is None
        feed.take(0, event(5), 100)
        # One that joins has the text so far as a delta of its own, behind the events.
        late = Reader(feed, pages, 3, lambda: None, is_paced=False).take()
        assert late is not None
        assert shown(late) == [("tool.started",), ("tool.started",), (0, "a")]
        assert first.is_behind
        found = first.take()
        assert found is not None
        assert shown(found) == [("tool.started",)]
        assert (first.seq, second.seq) == (5, 4)

    in_feed(tmp_path, scene)


class _Pages:
    """Pages of a journal that has events already which subscribers are not sent yet."""

    def page(self, session: str, after: int) -> "asyncio.Future[tuple[FeedItem, ...]]":
        found = asyncio.get_running_loop().create_future()
        found.set_result(tuple(FeedItem(event(seq), 100) for seq in range(after + 1, 6)))
        return found

    def forget(self) -> None: ...


def test_an_event_that_a_page_had_before_it_was_sent_is_taken_once(tmp_path: Path) -> None:
    async def scene(feed: SessionFeed, pages: JournalPages) -> None:
        reader = Reader(feed, _Pages(), 0, lambda: None, is_paced=False)
        assert reader.take() is None
        found = reader.take()
        assert found is not None
        assert [item.seq for item in found.items] == [1, 2, 3, 4, 5]
        feed.take(0, event(4), 100)
        assert reader.take() is None
        feed.take(0, event(5), 100)
        feed.take(0, delta(0, "a"), 100)
        feed.take(0, event(6), 100)
        found = reader.take()
        assert found is not None
        assert shown(found) == [(0, "a"), ("tool.started",)]
        assert (reader.seq, reader.is_behind) == (6, False)

    in_feed(tmp_path, scene)


def test_a_batch_has_an_end_and_the_reader_knows_that_there_is_more(tmp_path: Path) -> None:
    async def scene(feed: SessionFeed, pages: JournalPages) -> None:
        reader = Reader(feed, pages, None, lambda: None, is_paced=False)
        for number in range(6):
            feed.take(0, delta(number, "x"), 10_000)
        sizes = []
        while (found := reader.take()) is not None:
            sizes.append((len(found.items), reader.is_behind))
        assert sizes == [(4, True), (2, False)]

    in_feed(tmp_path, scene)


def test_a_paced_reader_is_woken_for_some_deltas_and_for_every_event(tmp_path: Path) -> None:
    async def scene(feed: SessionFeed, pages: JournalPages) -> None:
        clock = asyncio.get_running_loop().time
        paced: list[FeedItem] = []
        wakes = prompt_wakes = 0

        def wake() -> None:
            nonlocal wakes
            wakes += 1
            while (found := reader.take()) is not None:
                paced.extend(found.items)

        def wake_prompt() -> None:
            nonlocal prompt_wakes
            prompt_wakes += 1

        reader = Reader(feed, pages, None, wake, is_paced=True)
        Reader(feed, pages, None, wake_prompt, is_paced=False)
        began = clock()
        deltas = [delta(number, "x") for number in range(200)]
        for number, each in enumerate(deltas):
            feed.take(0, each, 10)
            await turns_of_the_loop()
            # The first one is not held back.
            assert (prompt_wakes, bool(paced)) == (number + 1, True)
        assert wakes <= 2 + (clock() - began) / PACE_SECONDS
        # Nor are the last ones forgotten.
        await soon(lambda: len(paced) == len(deltas))
        assert [item.message for item in paced] == deltas
        for seq in (4, 5, 6):
            feed.take(0, delta(196 + seq, "x"), 10)
            feed.take(0, event(seq), 10)
            await turns_of_the_loop()
            assert paced[-1].seq == seq

    in_feed(tmp_path, scene)


def test_a_ring_holds_as_many_bytes_as_it_may_however_many_have_left_it() -> None:
    ring = FeedRing("demo")
    for seq in range(1, 101):
        ring.append(FeedItem(event(seq), feed_ring._BYTES_MAX // 10))
    assert len(ring._items) == 10
    assert ring.floor == 90
    assert [each.seq for each in ring.since(90)] == list(range(91, 101))


def test_a_ring_holds_4096_items_and_its_floor_is_the_last_event_that_left() -> None:
    ring = FeedRing("demo")
    ring.append(FeedItem(event(7), 1))
    for number in range(4_095):
        ring.append(FeedItem(delta(number, "x"), 1))
    assert (len(ring._items), ring.floor) == (4_096, 0)
    ring.append(FeedItem(delta(4_095, "x"), 1))
    assert (len(ring._items), ring.floor) == (4_096, 7)
    # A delta has no seq: when it leaves, the floor stays.
    ring.append(FeedItem(delta(4_096, "x"), 1))
    assert (len(ring._items), ring.floor) == (4_096, 7)
