"""The polls of the watched tables: who is served when, and that no row is missed or older than before."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import watching
from gateway.namespace import Namespace
from gateway.supervisor_client import SupervisorClient
from gateway.watching import Watcher, Watching
from ipc.messages import Show, Table
from tests.waiting import soon

Ask = Callable[[Show, type[Table]], Awaitable[Table]]


def poll(ask: Ask, scene: Callable[[Watching], Coroutine[Any, Any, None]]) -> None:
    """With a supervisor that answers so, and no watcher in the end."""

    async def run() -> None:
        polled = Watching(cast(SupervisorClient, SimpleNamespace(is_up=True, ask=ask)))
        try:
            await scene(polled)
        finally:
            if polled._poller is not None:
                polled._poller.cancel()

    asyncio.run(run())


async def _no_questions(request: Show, kind: type[Table]) -> Table:
    return Table(())


def watcher_of(topic: watching.Topic) -> Watcher:
    return Watcher(Namespace(""), [topic], lambda: None)


def types_of(watcher: Watcher) -> set[str]:
    return {json.loads(frame)["type"] for frame in watcher.take()}


def test_the_first_watcher_after_a_time_without_any_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_POLL_SECONDS", 0.01)

    async def scene(polled: Watching) -> None:
        for _ in range(2):
            watcher = watcher_of("questions")
            polled.add(watcher)
            await soon(lambda watcher=watcher: not watcher.missing)  # type: ignore[misc]
            assert types_of(watcher) == {"supervisor", "questions"}
            polled.remove(watcher)
            await soon(lambda: polled._poller is not None and polled._poller.done())

    poll(_no_questions, scene)


def test_a_new_watcher_does_not_wait_for_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_POLL_SECONDS", 1_000.0)
    monkeypatch.setattr(watching, "_SOON_SECONDS", 0.0)

    async def scene(polled: Watching) -> None:
        for _ in range(2):
            watcher = watcher_of("questions")
            polled.add(watcher)
            await soon(lambda watcher=watcher: not watcher.missing)  # type: ignore[misc]

    poll(_no_questions, scene)


def test_no_row_of_before_follows_the_first_rows_of_a_watcher() -> None:
    """A session that has an event between the two looks of a poll."""
    seq = 0

    async def ask(request: Show, kind: type[Table]) -> Table:
        nonlocal seq
        seq += 1
        return Table(({"session": "demo", "seq": seq, "last_at": float(seq)},))

    async def scene(polled: Watching) -> None:
        watcher = watcher_of("sessions")
        polled._watchers.add(watcher)
        await polled._poll()
        assert [row["seq"] for row in json.loads(watcher.take()[0])["rows"]] == [2]

    poll(ask, scene)


def test_a_poll_reads_on_among_sessions_whose_events_were_written_in_another_order() -> None:
    rows = [
        [{"session": "a", "seq": 1, "last_at": 100.0}],
        # Half a second before the newest of the last poll, and changed since.
        [{"session": "b", "seq": 1, "last_at": 99.5}],
        [{"session": "c", "seq": 1, "last_at": 99.4}],
        [{"session": "d", "seq": 1, "last_at": 98.0}],
        [{"session": "e", "seq": 1, "last_at": 97.0}],
    ]

    async def ask(request: Show, kind: type[Table]) -> Table:
        return Table(tuple(rows.pop(0)), "more")

    async def scene(polled: Watching) -> None:
        assert [row["session"] for row in await polled._changed()] == ["a"]
        assert [row["session"] for row in await polled._changed()] == ["b", "c", "d"]

    poll(ask, scene)
