"""Requests of the gateway and their answers; those with a key wait for the next supervisor."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway import supervisor_client
from gateway.errors import Unavailable
from gateway.supervisor_client import SupervisorClient
from ipc import sockets
from ipc.codec import Decoder
from ipc.messages import Accepted, Answer, Begin, Done, Request, Retry, Show, Submit, Table
from ipc.server import Server
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
