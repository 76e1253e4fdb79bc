"""Pages of a session's journal: when they end, which are shared or kept; the supervisor is played."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import journal_pages
from gateway.errors import HttpError, Unavailable
from gateway.journal_pages import JournalPages, Page, _PageReading
from gateway.supervisor_client import Subscriber, SupervisorClient
from ipc.messages import Event, Subscribe, Subscribed, Unsubscribe
from tests.gateway.test_feed_upkeep import HEAD, Supervisor
from tests.waiting import soon

KIB = 1024

Scene = Callable[[Supervisor, SupervisorClient, JournalPages], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene) -> None:
    """No callback of the loop raises."""

    async def run() -> None:
        broken: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
        supervisor = Supervisor(str(folder / "s.sock"))
        client = SupervisorClient(str(folder / "s.sock"))
        try:
            await soon(lambda: client.is_up)
            await scene(supervisor, client, JournalPages(client))
        finally:
            client.close()
            supervisor.close()
        assert not broken

    asyncio.run(run())


def event(seq: int) -> Event:
    return Event(seq, "demo", "tool.started", 1.0, {})


def seqs(page: Page) -> list[int]:
    return [item.seq for item in page]


async def number_of_next(supervisor: Supervisor, earlier: int) -> int:
    """The number of the subscription that follows so many."""
    await soon(lambda: len(supervisor.of(Subscribe)) > earlier)
    number, _ = supervisor.of(Subscribe)[earlier]
    return number


async def read(supervisor: Supervisor, pages: JournalPages, session: str, *found: int) -> Page:
    """A page that is not kept, of these events."""
    earlier = len(supervisor.of(Subscribe))
    reading = pages.page(session, 0)
    number = await number_of_next(supervisor, earlier)
    for seq in found:
        supervisor.send(number, event(seq))
    return await reading


def test_a_page_ends_with_the_last_event_and_its_subscription_with_it(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        reading = pages.page("demo", 1)
        assert pages.page("demo", 1) is reading, "those that read at the same time share it"
        number = await number_of_next(supervisor, 0)
        # One that the reader has, and one that is sent twice.
        for seq in (1, 2, 2, 3):
            supervisor.send(number, event(seq))
        assert seqs(await reading) == [2, 3]
        await soon(lambda: supervisor.of(Unsubscribe))
        assert [request for _, request in supervisor.requests] == [Subscribe("demo", 1), Unsubscribe(number)]
        assert not client._subscribers
        assert seqs(await pages.page("demo", 1)) == [2, 3]
        assert len(supervisor.of(Subscribe)) == 1, "it was kept"

    play(tmp_path, scene)


def test_a_page_without_events_is_asked_for_again(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        assert await pages.page("demo", HEAD) == ()
        assert await pages.page("demo", HEAD) == ()
        assert len(supervisor.of(Subscribe)) == 2

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("size_bytes", "count"), [(1, 512), (128 * KIB, 4), (128 * KIB - 1, 5), (600 * KIB, 1)]
)
def test_a_page_is_full_after_512_events_or_512_kib(size_bytes: int, count: int) -> None:
    async def scene() -> None:
        reading = _PageReading(0)
        reading.take(1, Subscribed(10_000), 10)
        for seq in range(1, count + 1):
            assert not reading.done.done()
            reading.take(1, event(seq), size_bytes)
        # The supervisor sends more until it has read that the subscription ended.
        reading.take(1, event(count + 1), size_bytes)
        reading.lost(1)
        assert seqs(reading.done.result()) == list(range(1, count + 1))

    asyncio.run(scene())


def test_eight_pages_are_read_at_a_time_and_the_next_one_waits(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        readings = [pages.page(f"s{number}", 0) for number in range(9)]
        await soon(lambda: len(supervisor.of(Subscribe)) >= 8)
        assert len(client._subscribers) == 8
        first, _ = supervisor.of(Subscribe)[0]
        supervisor.send(first, event(HEAD))
        await readings[0]
        number = await number_of_next(supervisor, 8)
        assert supervisor.of(Subscribe)[8] == (number, Subscribe("s8", 0))
        for number, _ in supervisor.of(Subscribe)[1:]:
            supervisor.send(number, event(HEAD))
        await asyncio.gather(*readings)

    play(tmp_path, scene)


def test_of_the_pages_that_are_kept_those_go_first_that_were_read_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        (item,) = await read(supervisor, pages, "a", 3)
        monkeypatch.setattr(journal_pages, "_KEPT_BYTES", 3 * item.size_bytes)
        await read(supervisor, pages, "b", 3)
        await read(supervisor, pages, "c", 3)
        assert pages.page("a", 0).done()
        await read(supervisor, pages, "d", 3)
        assert [session for session, _ in pages._kept] == ["c", "a", "d"]
        assert pages._kept_bytes == 3 * item.size_bytes
        await read(supervisor, pages, "e", 2, 3)
        assert [session for session, _ in pages._kept] == ["d", "e"]
        assert pages._kept_bytes == 3 * item.size_bytes

    play(tmp_path, scene)


def test_16_mib_of_pages_are_kept() -> None:
    def subscribe(session: str, after: int, subscriber: Subscriber) -> int:
        subscriber.take(1, Subscribed(10_000), 10)
        subscriber.take(1, event(after + 1), 512 * KIB)
        return 1

    async def scene() -> None:
        client = SimpleNamespace(subscribe=subscribe, unsubscribe=lambda number: None)
        pages = JournalPages(cast(SupervisorClient, client))
        for after in range(33):
            await pages.page("demo", after)
        assert [after for _, after in pages._kept] == list(range(1, 33))

    asyncio.run(scene())


def test_what_was_kept_is_read_again_after_the_connection_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        (item,) = await read(supervisor, pages, "demo", 3)
        monkeypatch.setattr(journal_pages, "_KEPT_BYTES", item.size_bytes)
        pages.forget()
        assert seqs(await read(supervisor, pages, "demo", 2, 3)) == [2, 3], "of the next journal"
        pages.forget()
        await read(supervisor, pages, "demo", 3)
        assert pages.page("demo", 0).done(), "as much is kept as before"

    play(tmp_path, scene)


def test_a_page_fails_with_the_refusal_and_is_asked_for_again(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        supervisor.refuses = True
        with pytest.raises(HttpError, match="it has fewer") as refused:
            await pages.page("demo", 0)
        assert (refused.value.status, refused.value.hint) == (400, "look")
        await soon(lambda: supervisor.of(Unsubscribe))
        supervisor.refuses = False
        assert seqs(await read(supervisor, pages, "demo", 3)) == [3]

    play(tmp_path, scene)


def test_a_page_fails_with_the_connection(tmp_path: Path) -> None:
    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        reading = pages.page("demo", 0)
        await number_of_next(supervisor, 0)
        supervisor.close()
        with pytest.raises(Unavailable, match="is not there"):
            await reading
        with pytest.raises(Unavailable, match="is not there"):
            await pages.page("demo", 0)
        assert not pages._being_read
        assert not pages._kept

    play(tmp_path, scene)


def test_a_supervisor_has_30_seconds_to_send_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    timeout = asyncio.timeout

    def over_at_once(seconds: float) -> asyncio.Timeout:
        given.append(seconds)
        return timeout(0)

    monkeypatch.setattr(asyncio, "timeout", over_at_once)

    async def scene(supervisor: Supervisor, client: SupervisorClient, pages: JournalPages) -> None:
        with pytest.raises(Unavailable, match="does not send the events"):
            await pages.page("demo", 0)
        assert given == [30.0]
        await soon(lambda: supervisor.of(Unsubscribe))
        assert not client._subscribers

    play(tmp_path, scene)
