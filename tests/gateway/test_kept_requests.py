"""Requests of the gateway and their answers; those with a key wait for the next supervisor."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway import supervisor_client
from gateway.errors import HttpError, Unavailable
from gateway.supervisor_client import SupervisorClient, _Waiting, refusal
from ipc import sockets
from ipc.codec import Decoder
from ipc.messages import (
    Accepted,
    Answer,
    Begin,
    Done,
    RefusalCode,
    Refused,
    Request,
    Retry,
    Show,
    Submit,
    Subscribe,
    Table,
)
from ipc.server import Server
from ipc.zmtp import Sent
from tests.waiting import soon

# More than the kernel and libzmq hold before the next supervisor reads.
COUNT, TEXT = 64, "x" * 100_000


def test_what_cannot_be_sent_again_fails_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "SEND_FRAMES_MAX", 1)
    path = str(tmp_path / "s.sock")
    decoder: Decoder[Request] = Decoder(Request)

    async def act() -> None:
        asked: list[bytes] = []
        connections: list[bool] = []
        first = Server(path, lambda parts: asked.append(parts[1]))
        client = SupervisorClient(path)
        client.connected = lambda: connections.append(client.is_up)
        await soon(lambda: client.is_up)
        asking = []
        for number in range(COUNT):
            request = Submit("s", TEXT, str(number))
            asking.append(asyncio.create_task(client.ask(request, Accepted, timeout_seconds=60.0)))
            await soon(lambda: len(asked) == len(asking))
        first.close()
        await soon(lambda: not client.is_up)

        def answer(parts: list[bytes]) -> None:
            request = decoder.decode(parts[2])
            assert isinstance(request, Submit)
            second.answer(parts[0], parts[1], Accepted(request.key, 1))

        second = Server(path, answer)
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        found = [each for each in outcomes if isinstance(each, Accepted)]
        refused = [each for each in outcomes if isinstance(each, Unavailable)]
        assert found
        assert refused
        assert len(found) + len(refused) == COUNT
        assert connections == [True, True], "its subscriptions begin again"
        client.close()
        second.close()

    asyncio.run(act())


Reply = Callable[[Request], list[Answer]]


def play(folder: Path, reply: Reply, scene: Callable[[SupervisorClient], Coroutine[Any, Any, None]]) -> None:
    """A supervisor that answers each request so; no callback of the loop raises."""
    path, decoder = str(folder / "s.sock"), Decoder[Request](Request)

    async def run() -> None:
        broken: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))

        def receive(parts: list[bytes]) -> None:
            for answer in reply(decoder.decode(parts[2])):
                server.answer(parts[0], parts[1], answer)

        server = Server(path, receive)
        client = SupervisorClient(path)
        try:
            await soon(lambda: client.is_up)
            await scene(client)
        finally:
            client.close()
            server.close()
        assert not broken

    asyncio.run(run())


def test_a_second_answer_is_nobodys(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        for number in (1, 2):
            assert await client.ask(Submit("s", "hello", str(number)), Accepted) == Accepted("m", 1)

    play(tmp_path, lambda request: [Accepted("m", 1), Accepted("m", 2)], scene)


def test_a_table_is_read_to_its_last_page(tmp_path: Path) -> None:
    def reply(request: Request) -> list[Answer]:
        assert isinstance(request, Show)
        number = int(request.after or "0")
        return [Table(({"number": number},), str(number + 1) if number < 2 else "")]

    async def scene(client: SupervisorClient) -> None:
        rows = await asyncio.wait_for(client.rows(Show("workers")), 30)
        assert [row["number"] for row in rows] == [0, 1, 2]

    play(tmp_path, reply, scene)


def test_a_report_of_a_socket_that_was_closed_counts_no_more(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        client._changed(client._generation - 1, False)
        assert client.is_up
        assert await client.ask(Submit("s", "hello", "k"), Accepted) == Accepted("m", 1)

    play(tmp_path, lambda request: [Accepted("m", 1)], scene)


@pytest.mark.parametrize("request_", [Submit("s", "x", "k"), Retry("s/1", "k"), Begin("s", "k")])
def test_what_has_a_key_waits_for_the_next_supervisor(tmp_path: Path, request_: Request) -> None:
    path = str(tmp_path / "s.sock")

    async def act() -> None:
        asked: list[bytes] = []
        first = Server(path, lambda parts: asked.append(parts[1]))
        client = SupervisorClient(path)
        await soon(lambda: client.is_up)
        asking = asyncio.create_task(client.ask(request_, Done, timeout_seconds=60.0))
        await soon(lambda: asked)
        first.close()
        await soon(lambda: not client.is_up)
        second = Server(path, lambda parts: second.answer(parts[0], parts[1], Done()))
        assert await asking == Done()
        client.close()
        second.close()

    asyncio.run(act())


def test_so_many_requests_wait_for_the_supervisor_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_client, "_WAITING_MAX", 2)

    async def scene(client: SupervisorClient) -> None:
        asking = [asyncio.create_task(client.ask(Submit("s", "x", key), Accepted)) for key in ("1", "2")]
        await soon(lambda: len(client._waiting) == 2)
        with pytest.raises(Unavailable, match="too many requests"):
            await client.ask(Submit("s", "x", "3"), Accepted)
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
        assert client._waiting == {}

    play(tmp_path, lambda request: [], scene)


def test_5000_requests_wait_for_the_supervisor_at_most(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        client._waiting = dict.fromkeys(range(-4_999, 0), cast(Any, None))
        await client.ask(Submit("s", "x", "k"), Accepted)
        client._waiting[0] = cast(Any, None)
        with pytest.raises(Unavailable, match="too many requests"):
            await client.ask(Submit("s", "x", "k"), Accepted)

    play(tmp_path, lambda request: [Accepted("m", 1)], scene)


def test_the_supervisor_has_ten_seconds_to_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    timeout = asyncio.timeout

    def over_at_once(seconds: float) -> asyncio.Timeout:
        given.append(seconds)
        return timeout(0)

    async def scene(client: SupervisorClient) -> None:
        monkeypatch.setattr(asyncio, "timeout", over_at_once)
        with pytest.raises(Unavailable, match="did not answer within 10 s") as late:
            await client.ask(Submit("s", "x", "k"), Accepted)
        assert late.value.status == 503
        assert given == [10.0]
        assert client._waiting == {}

    play(tmp_path, lambda request: [], scene)


class Subscriber:
    """Records what is lost."""

    def __init__(self) -> None:
        self.was_lost: list[int] = []
        self.taken: list[Answer] = []

    def take(self, number: int, answer: Answer, size_bytes: int) -> None:
        self.taken.append(answer)

    def lost(self, number: int) -> None:
        self.was_lost.append(number)


def test_without_a_connection_everything_is_refused_and_nothing_sent(tmp_path: Path) -> None:
    async def act() -> None:
        client = SupervisorClient(str(tmp_path / "absent.sock"))
        sent: list[list[bytes]] = []
        client._socket = cast(Any, SimpleNamespace(send=sent.append))
        with pytest.raises(Unavailable, match="is not there"):
            await client.ask(Submit("s", "x", "k"), Accepted, timeout_seconds=0)
        with pytest.raises(Unavailable, match="is not there"):
            client.subscribe("s", None, Subscriber())
        assert client._waiting == {}
        assert client._subscribers == {}
        client._subscribers[1] = Subscriber()
        client.unsubscribe(1)
        assert client._subscribers == {}
        assert not sent
        client.close()

    asyncio.run(act())


def test_a_request_that_cannot_be_sent_is_answered_at_once(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        with pytest.raises(HttpError, match="Submit cannot be sent") as refused:
            await client.ask(Submit("s", "\ud800", "k"), Accepted)
        assert refused.value.status == 400
        assert "UTF-8" in refused.value.hint
        client._socket = cast(Any, SimpleNamespace(send=lambda parts: Sent.FULL))
        with pytest.raises(Unavailable, match="reads too slowly"):
            await client.ask(Submit("s", "x", "k"), Accepted, timeout_seconds=0)
        assert client._waiting == {}

    play(tmp_path, lambda request: [], scene)


def test_a_subscription_that_cannot_be_sent_is_none(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        client._socket = cast(Any, SimpleNamespace(send=lambda parts: Sent.FULL))
        with pytest.raises(Unavailable, match="reads too slowly"):
            client.subscribe("s", None, Subscriber())
        assert client._subscribers == {}

    play(tmp_path, lambda request: [], scene)


@pytest.mark.parametrize(
    ("code", "own", "told"),
    [
        ("full", None, 5.0),
        ("unavailable", None, 5.0),
        ("unavailable", 7.0, 7.0),
        ("invalid", None, None),
        ("internal", None, None),
    ],
)
def test_a_refusal_that_passes_says_when_to_ask_again(
    code: RefusalCode, own: float | None, told: float | None
) -> None:
    assert refusal(Refused("no", "look", own, code=code)).retry_after_seconds == told


def test_a_lost_connection_ends_what_has_no_key_and_the_next_one_begins_with_what_has(tmp_path: Path) -> None:
    path, decoder = str(tmp_path / "s.sock"), Decoder[Request](Request)

    async def act() -> None:
        asked: list[Request] = []
        first = Server(path, lambda parts: asked.append(decoder.decode(parts[2])))
        client = SupervisorClient(path)
        await soon(lambda: client.is_up)
        subscriber = Subscriber()
        number = client.subscribe("s", None, subscriber)
        kept = asyncio.create_task(client.ask(Submit("s", "x", "k"), Done, timeout_seconds=60.0))
        other = asyncio.create_task(client.ask(Show("workers"), Table, timeout_seconds=60.0))
        await soon(lambda: len(asked) == 3)
        generation = client._generation
        first.close()
        await soon(lambda: not client.is_up)
        with pytest.raises(Unavailable, match="was lost before it answered"):
            await other
        assert subscriber.was_lost == [number]
        assert client._subscribers == {}
        client._changed(generation, True)
        assert not client.is_up, "the report was of the socket that is closed"

        def answer(parts: list[bytes]) -> None:
            again.append(decoder.decode(parts[2]))
            second.answer(parts[0], parts[1], Done())
            second.answer(parts[0], number.to_bytes(8), Done())

        def connected() -> None:
            client.subscribe("s", 4, Subscriber())

        again: list[Request] = []
        second = Server(path, answer)
        client.connected = connected
        assert await kept == Done()
        await soon(lambda: len(again) == 2)
        assert again == [Submit("s", "x", "k"), Subscribe("s", 4)]
        assert subscriber.taken == [], "its subscription is gone"
        client.close()
        second.close()

    asyncio.run(act())


def test_a_client_that_is_closed_when_it_loses_its_supervisor_makes_no_other_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")

    async def act() -> None:
        server = Server(path, lambda parts: None)
        client = SupervisorClient(path)
        await soon(lambda: client.is_up)
        server.close()
        await soon(lambda: not client.is_up)
        client.close()
        client._reconnect()
        assert client._wire is None

    asyncio.run(act())


def test_a_request_whose_client_has_gone_holds_up_no_other_that_was_kept(tmp_path: Path) -> None:
    async def scene(client: SupervisorClient) -> None:
        first, second = (_Waiting(number, Submit("s", "x", str(number))) for number in (1, 2))
        client._waiting = {1: first, 2: second}
        first.future.cancel()
        client._socket = cast(Any, SimpleNamespace(send=lambda parts: Sent.FULL))
        client._send_kept()
        assert isinstance(second.future.exception(), Unavailable)

    play(tmp_path, lambda request: [], scene)
