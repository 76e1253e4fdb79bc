"""Requests with a key that wait for the next supervisor: one that cannot be sent again costs no other."""

import asyncio
from pathlib import Path

import pytest

from gateway.errors import Unavailable
from gateway.supervisor_client import SupervisorClient
from ipc import sockets
from ipc.codec import Decoder
from ipc.messages import Accepted, Request, Submit
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
