"""A stream of server-sent events and its connection: written at once, or when the client reads on."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.exchange import Exchange
from gateway.journal_pages import JournalPages
from gateway.limiter import Limiter
from gateway.open_streams import OpenStreams
from gateway.parts import Parts
from gateway.session_feed import Reader, SessionFeed
from gateway.sse import get_events
from gateway.supervisor_client import SupervisorClient
from gateway.tokens import TokenStore
from gateway.traffic import Traffic
from ipc.messages import Delta, Event, Subscribed
from tests.waiting import soon


class Connection:
    """The server's side of one request: `is_writable` is cleared while the client does not read."""

    def __init__(self, stage: "Stage") -> None:
        self.is_writable = asyncio.Event()
        self.is_writable.set()
        self.parts: list[bytes] = []
        self.fault: Exception | None = None
        scope = {"type": "http", "headers": [], "query_string": b""}
        exchange = Exchange(scope, asyncio.Queue[dict[str, Any]]().get, self._send)
        exchange.token = stage.token
        exchange.parameters = {"session": "demo"}
        self.serving = asyncio.ensure_future(get_events(stage.parts, exchange))

    async def _send(self, message: dict[str, Any]) -> None:
        await self.is_writable.wait()
        if self.fault is not None:
            raise self.fault
        if message["type"] == "http.response.body":
            self.parts.append(message["body"])

    @property
    def seqs(self) -> list[list[int]]:
        """Of the events in each part."""
        lines = [[line for line in part.split(b"\n") if line.startswith(b"data: ")] for part in self.parts]
        return [[json.loads(line[6:])["seq"] for line in part] for part in lines if part]


class Stage:
    """A feed of a session with three events, and what a handler needs; no supervisor is there."""

    def __init__(self, folder: Path) -> None:
        self._supervisor = SupervisorClient(str(folder / "absent.sock"))
        self._tokens = TokenStore(folder / "tokens.db")
        self.token, _ = self._tokens.add("reader", "", ["watch"])
        self.feed = SessionFeed("demo", self._supervisor)
        self.feed.take(0, Subscribed(3), 10)
        self.traffic = Traffic()
        self.streams = OpenStreams(self._tokens)
        self.parts = cast(
            Parts,
            SimpleNamespace(
                feeds=self, streams=self.streams, traffic=self.traffic, limiter=Limiter(monotonic)
            ),
        )
        self._seq = 3

    async def open(self, session: str, after: int | None, wake: Callable[[], None]) -> Reader:
        return Reader(self.feed, JournalPages(self._supervisor), after, wake, is_paced=False)

    async def connect(self) -> Connection:
        """A connection whose stream waits for events."""
        known = set(self.streams._open)
        connection = Connection(self)
        (stream,) = await soon(lambda: self.streams._open - known)
        await soon(lambda: stream.is_waiting)
        return connection

    async def write(self, *sizes: int) -> None:
        """Events that arrive together, and all that is done about them at once."""
        for size in sizes:
            self._seq += 1
            self.feed.take(0, Event(self._seq, "demo", "tool.started", 1.0, {"turn": "demo/1"}), size)
        for _ in range(3):
            await asyncio.sleep(0)

    def close(self) -> None:
        self._supervisor.close()
        self._tokens.close()


def on_stage(folder: Path, scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        stage = Stage(folder)
        try:
            await scene(stage)
        finally:
            stage.close()

    asyncio.run(run())


def test_events_that_arrive_together_are_one_part(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        connection = await stage.connect()
        await stage.write(10)
        await stage.write(10, 10)
        assert connection.seqs == [[4], [5, 6]]
        # More than one batch: the task writes the others.
        await stage.write(40_000, 40_000, 10)
        await soon(lambda: len(connection.seqs) == 5)
        assert connection.seqs == [[4], [5, 6], [7], [8], [9]]

    on_stage(tmp_path, scene)


def test_a_client_that_pauses_gets_everything_in_order_when_it_reads_on(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        paused, other = await stage.connect(), await stage.connect()
        paused.is_writable.clear()
        for _ in range(4):
            await stage.write(10)
        assert (paused.seqs, other.seqs) == ([], [[4], [5], [6], [7]])
        paused.is_writable.set()
        await soon(lambda: len(paused.seqs) == 2)
        assert paused.seqs == [[4], [5, 6, 7]]
        await stage.write(10)
        assert paused.seqs[2:] == [[8]]
        paused.is_writable.clear()
        await stage.write(10)
        paused.is_writable.set()
        await soon(lambda: paused.seqs[3:] == [[9]])

    on_stage(tmp_path, scene)


def test_a_client_that_pauses_for_too_long_is_cut_behind_what_was_begun(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        paused = await stage.connect()
        paused.is_writable.clear()
        await stage.write(10)
        for _ in range(3):
            await stage.write(600_000)
        paused.is_writable.set()
        await paused.serving
        assert paused.seqs == [[4]]
        assert paused.parts[-2:] == [b": cut\n\n", b""]
        assert "hermes_gateway_streams_cut_total 1" in stage.traffic.text(0)
        assert not stage.feed.readers

    on_stage(tmp_path, scene)


def test_a_connection_that_fails_costs_the_others_nothing(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        connections = [await stage.connect() for _ in range(3)]
        connections[1].fault = RuntimeError("broken")
        await stage.write(10)
        with pytest.raises(RuntimeError, match="broken"):
            await connections[1].serving
        await stage.write(10)
        assert [each.seqs for each in connections] == [[[4], [5]], [], [[4], [5]]]
        assert len(stage.feed.readers) == 2

    on_stage(tmp_path, scene)


def test_an_ended_stream_is_written_to_no_more(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        connection = await stage.connect()
        stage.feed.take(0, Delta("demo", "demo/1", 1, 0, "x"), 10)
        stage.streams.end_all("the gateway stops")
        await connection.serving
        await stage.write(10)
        assert connection.seqs == []
        assert connection.parts[-1] == b""

    on_stage(tmp_path, scene)


def test_a_stream_that_has_ended_leaves_no_task_and_is_open_no_more(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        connection = await stage.connect()
        stage.streams.end_all("the gateway stops")
        await connection.serving
        await asyncio.sleep(0)
        assert len(stage.streams) == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    on_stage(tmp_path, scene)
