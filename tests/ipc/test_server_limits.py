"""The limits of a listener, the place it listens at, and how it closes with its peers."""

import asyncio
import os
from pathlib import Path

import pytest

from ipc import server as limits
from ipc.channel import Channel
from ipc.errors import PlaceError
from ipc.server import Server, Servers
from ipc.zmtp import Sent
from tests.ipc.test_server import Listening, play

_LARGE = b"x" * 100_000


def test_the_limits_of_a_listener_bound_its_descriptors_its_memory_and_its_patience() -> None:
    assert (limits.CONNECTIONS_MAX, limits.UNSENT_BYTES_MAX) == (256, 1024 * 1024)
    assert limits.MEMORY_BYTES_MAX == 64 * 1024 * 1024
    assert (limits._INTRODUCTION_SECONDS_MAX, limits.UNREAD_SECONDS_MAX) == (10.0, 30.0)
    assert limits._LOOK_SECONDS == 1.0


def test_what_a_peer_holds_is_charged_to_the_listener_and_bounded(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        await listening.known(b"one")
        sent = 0
        while listening.server.send([b"one", _LARGE]) is Sent.SENT:
            sent += 1
            await asyncio.sleep(0)
        assert limits.UNSENT_BYTES_MAX < listening.server._budget.used <= limits.UNSENT_BYTES_MAX + 100_100

    play(tmp_path, act)


def test_a_listener_takes_the_place_of_a_file_that_was_left(tmp_path: Path) -> None:
    (tmp_path / "s.sock").touch()

    async def act(listening: Listening) -> None:
        await listening.known(b"one")

    play(tmp_path, act)


def test_a_path_that_no_socket_can_have_is_named(tmp_path: Path) -> None:
    async def scene() -> None:
        path = str(tmp_path / ("x" * 120))
        with pytest.raises(PlaceError, match="cannot listen on") as refused:
            Server(path, lambda parts: None)
        assert path in refused.value.fault

    asyncio.run(scene())


def test_a_peer_that_a_drop_finds_gone_is_told_once(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        made = await listening.known(b"one")
        (peer,) = listening.server._peers
        made.close()
        listening.server.send([b"one", b"x"])
        listening.server._drop(peer)
        assert (listening.left, listening.peers) == ([b"one"], 0)

    play(tmp_path, act)


def test_a_closed_server_looks_no_more_and_accepts_no_more(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        listening.server.close()
        assert listening.server._looking.cancelled()
        listening.server._accept_again()

    play(tmp_path, act)


def test_all_peers_of_a_closing_server_share_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(listening: Listening) -> None:
        for name in (b"one", b"two", b"three"):
            await listening.known(name)
        loop, given, passed = asyncio.get_running_loop(), list[float](), [0.0]
        monkeypatch.setattr(loop, "time", lambda: passed[0])
        for peer in listening.server._peers:
            monkeypatch.setattr(peer, "channel", _SlowToClose(peer.channel, given, passed))
        listening.server.close(5.0)
        monkeypatch.undo()
        assert given == [5.0, 2.0, 0.0]

    play(tmp_path, act)


class _SlowToClose:
    """A channel whose close takes three seconds of the clock `passed`."""

    def __init__(self, channel: Channel, given: list[float], passed: list[float]) -> None:
        self._channel, self._given, self._passed = channel, given, passed

    def close(self, flush_seconds: float = 0.0) -> None:
        self._given.append(flush_seconds)
        self._passed[0] += 3.0
        self._channel.close()


def test_servers_are_flushed_and_closed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(Server, "flush", lambda server: done.append("flush"))
    monkeypatch.setattr(Server, "close", lambda server, seconds=0.0: done.append(seconds))
    servers = Servers()
    for _ in range(2):
        servers.add(Server.__new__(Server))
    servers.flush()
    servers.close(3.0)
    assert done == ["flush", "flush", 3.0, 3.0]


def test_a_listener_leaves_the_mask_of_new_files_as_it_was(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        assert (listening.left, os.umask(0o022)) == ([], 0o022)

    before = os.umask(0o022)
    try:
        play(tmp_path, act)
    finally:
        os.umask(before)
