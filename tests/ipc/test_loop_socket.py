"""A worker's end of a line that is closed while its loop goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import zmq

from ipc.channel import Channel, connected_pair
from ipc.server import UNSENT_BYTES_MAX, Server
from ipc.sockets import Wire
from ipc.zmtp import Sent
from tests.waiting import soon


def test_a_closed_line_is_forgotten_by_its_loop(tmp_path: Path) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        wire = Wire()
        ours, line = connected_pair(str(tmp_path))
        channel = Channel(ours, lambda parts: None, lambda reason: None, UNSENT_BYTES_MAX)
        opened = wire.line(line.detach(), arrived.append)
        await soon(lambda: channel.send([b"hello"]) is Sent.SENT)
        await soon(lambda: arrived)
        descriptor = opened._descriptor
        opened.close()
        # Its number may be that of another file by now, which the loop must not take for it.
        assert not asyncio.get_running_loop().remove_reader(descriptor)
        channel.close()
        wire.close()

    asyncio.run(talk())


def test_a_connection_is_watched_before_it_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libzmq may complete it at once, and reports it once: a report before the watch would be lost."""
    steps: list[str] = []
    watch, connect = zmq.Socket.get_monitor_socket, zmq.Socket.connect

    def watched(socket: Any, events: int) -> Any:
        steps.append("watch")
        return watch(socket, events)

    def connected(socket: Any, address: str) -> Any:
        if not address.startswith("inproc:"):  # those are the monitors' own
            steps.append("connect")
        return connect(socket, address)

    async def dial() -> None:
        monkeypatch.setattr(zmq.Socket, "get_monitor_socket", watched)
        monkeypatch.setattr(zmq.Socket, "connect", connected)
        states: list[bool] = []
        server, wire = Server(str(tmp_path / "s.sock"), lambda parts: None), Wire()
        wire.watched_dealer(str(tmp_path / "s.sock"), "peer", lambda parts: None, states.append)
        await soon(lambda: states == [True])
        wire.close()
        server.close()

    asyncio.run(dial())
    assert steps == ["watch", "connect"]
