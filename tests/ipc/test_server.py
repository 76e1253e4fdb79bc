"""A listener and peers of plain bytes: who is let in, who is dropped, and what is given back."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipc import server as limits
from ipc.server import Server
from ipc.zmtp import OPENING, Sent
from tests.raw_client import sent_as
from tests.waiting import soon

_READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity\x00\x00\x00"
_LARGE = b"x" * 100_000


def greeting(identity: bytes) -> bytes:
    body = _READY + bytes((len(identity),)) + identity
    return OPENING[:64] + bytes((4, len(body))) + body


class Listening:
    """A server, and what it tells."""

    def __init__(self, path: str, connections_max: int) -> None:
        self.path = path
        self.received: list[list[bytes]] = []
        self.left: list[bytes] = []
        self.server = Server(
            path, self.received.append, left=self.left.append, connections_max=connections_max
        )
        self._sockets: list[socket.socket] = []

    def connect(self, identity: bytes | None = None) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        self._sockets.append(made)
        return self.connect_with(made, identity)

    def connect_with(self, made: socket.socket, identity: bytes | None) -> socket.socket:
        made.connect(self.path)
        if identity is not None:
            made.send(greeting(identity) + sent_as([b"hello"]))
        made.setblocking(False)
        return made

    async def known(self, identity: bytes) -> socket.socket:
        made = self.connect(identity)
        await soon(lambda: [identity, b"hello"] in self.received)
        return made

    @property
    def peers(self) -> int:
        return len(self.server._peers)

    def close(self) -> None:
        self.server.close()
        for each in self._sockets:
            each.close()


def is_cut(peer: socket.socket) -> bool:
    try:
        while peer.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def play(folder: Path, act: Callable[[Listening], Awaitable[None]], connections_max: int = 4) -> None:
    async def scene() -> None:
        listening = Listening(str(folder / "s.sock"), connections_max)
        try:
            await act(listening)
        finally:
            listening.close()

    asyncio.run(scene())


@contextmanager
def other_process(path: str, count: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with so many connections that say nothing."""
    lines = (
        "import socket, sys",
        f"held = [socket.socket(socket.AF_UNIX) for _ in range({count})]",
        "[each.connect(sys.argv[1]) for each in held]",
        "print('up', flush=True)",
        "sys.stdin.read()",
    )
    command = [sys.executable, "-c", "\n".join(lines), path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as made:
        try:
            assert made.stdout is not None
            # The kernel connects it; nothing of that waits for this loop.
            made.stdout.readline()
            yield made
        finally:
            made.kill()


def test_a_peer_that_left_is_told_once_and_its_name_is_free_again(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        for time in range(1, 4):
            peer = await listening.known(b"one")
            assert listening.server.send([b"one", b"x"]) is Sent.SENT
            listening.received.clear()
            peer.close()
            await soon(lambda time=time: listening.left == [b"one"] * time)  # type: ignore[misc]
            assert listening.server.send([b"one", b"x"]) is Sent.GONE
        assert listening.peers == 0
        assert listening.server._held == {}

    play(tmp_path, act)


def test_the_first_of_two_peers_with_one_name_stays_and_nobody_is_told_that_it_left(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        await listening.known(b"one")
        thief = listening.connect(b"one")
        await soon(lambda: is_cut(thief))
        assert listening.server.send([b"one", b"x"]) is Sent.SENT
        assert (listening.left, listening.peers) == ([], 1)
        assert listening.received == [[b"one", b"hello"]]

    play(tmp_path, act)


def test_peers_without_a_name_are_told_apart(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        first, second = listening.connect(b""), listening.connect(b"")
        await soon(lambda: len(listening.received) == 2)
        names = [parts[0] for parts in listening.received]
        assert names[0] != names[1]
        assert all(listening.server.send([name, b"answer"]) is Sent.SENT for name in names)
        # Each gets its own answer, once the loop has sent it.
        await asyncio.sleep(0)
        assert all(peer.recv(1 << 16).endswith(sent_as([b"answer"])) for peer in (first, second))

    play(tmp_path, act)


def test_a_flush_gives_every_peer_what_it_was_sent_at_once(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        first, second = await listening.known(b"first"), await listening.known(b"second")
        first.recv(1 << 16), second.recv(1 << 16)  # the server's side of the handshake
        for text in (b"one", b"two"):
            listening.server.send([b"first", text])
        listening.server.flush()
        assert first.recv(1 << 16) == sent_as([b"one"]) + sent_as([b"two"])
        assert not is_cut(second)
        # What follows in the same iteration of the loop waits for its end, or for the next flush.
        listening.server.send([b"first", b"three"])
        listening.server.send([b"second", b"one"])
        assert not is_cut(first)
        await asyncio.sleep(0)
        assert [each.recv(1 << 16) for each in (first, second)] == [sent_as([b"three"]), sent_as([b"one"])]
        listening.server.flush()
        assert not is_cut(first)

    play(tmp_path, act)


def test_a_flush_that_finds_a_peer_gone_tells_so_and_serves_the_others(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        gone, other = await listening.known(b"gone"), await listening.known(b"other")
        other.recv(1 << 16)
        gone.close()
        for name in (b"gone", b"other"):
            assert listening.server.send([name, b"x"]) is Sent.SENT
        listening.server.flush()
        assert listening.left == [b"gone"]
        assert other.recv(1 << 16) == sent_as([b"x"])

    play(tmp_path, act)


def test_a_process_with_all_connections_loses_the_silent_ones_to_another_process(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        # This process has three, of which the middle one is silent.
        first = await listening.known(b"first")
        silent = listening.connect()
        await soon(lambda: listening.peers == 2)
        last = await listening.known(b"last")
        with other_process(listening.path, 1) as other:
            await soon(lambda: is_cut(silent))
            assert listening.peers == 3
            assert not is_cut(first)
            assert not is_cut(last)
            # Two of us, one of them: a second of theirs displaces none of ours, since we have no more then.
            assert listening.server._held[other.pid] == 1
            # One more of ours would be the third, while two is the most: it is refused.
            refused = listening.connect(b"too many")
            await soon(lambda: is_cut(refused))
            assert not is_cut(first)
        await soon(lambda: listening.peers == 2)
        assert listening.left == []
        await listening.known(b"again")

    play(tmp_path, act, connections_max=3)


def test_where_none_is_silent_the_newest_is_displaced(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        first, second = await listening.known(b"first"), await listening.known(b"second")
        with other_process(listening.path, 1):
            await soon(lambda: is_cut(second))
            assert not is_cut(first)
            assert listening.left == [b"second"]

    play(tmp_path, act, connections_max=2)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits themselves stay: peers are made older than they are."""
    monkeypatch.setattr(limits, "_LOOK_SECONDS", 0.01)


@pytest.mark.usefixtures("quick_looks")
def test_a_peer_that_says_nothing_is_dropped_and_others_stay(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        known = await listening.known(b"one")
        for _ in range(2):
            silent, young = listening.connect(), listening.connect()
            await soon(lambda: listening.peers == 3)
            for peer in list(listening.server._peers)[:2]:
                peer.came_at -= limits._INTRODUCTION_SECONDS_MAX
            await soon(lambda silent=silent: is_cut(silent))  # type: ignore[misc]
            assert not is_cut(known)
            assert not is_cut(young)
            young.close()
            await soon(lambda: listening.peers == 1)
        assert listening.left == []

    play(tmp_path, act)


@pytest.mark.usefixtures("quick_looks")
def test_a_peer_that_has_stopped_reading_is_dropped_and_a_slow_one_is_not(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        for name in (b"idle", b"slow", b"stopped"):
            await listening.known(name)
        for name in (b"slow", b"stopped"):
            sent = 0
            while listening.server.send([name, _LARGE]) is Sent.SENT:
                sent += 1
                await asyncio.sleep(0)
        channels = {peer.identity: peer.channel for peer in listening.server._peers}
        for name in (b"idle", b"stopped"):
            channels[name].moved_at -= limits.UNREAD_SECONDS_MAX
        await soon(lambda: listening.left)
        # Another look goes by.
        other = listening.connect()
        await soon(lambda: listening.peers == 3)
        list(listening.server._peers)[-1].came_at -= limits._INTRODUCTION_SECONDS_MAX
        await soon(lambda: is_cut(other))
        assert listening.left == [b"stopped"]
        assert listening.server.send([b"idle", b"x"]) is Sent.SENT

    play(tmp_path, act)


def test_a_connection_that_has_ended_gives_back_its_descriptor_and_its_memory(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        (await listening.known(b"first")).close()
        await soon(lambda: listening.peers == 0)
        before = len(os.listdir("/proc/self/fd"))
        for number in range(20):
            peer = await listening.known(str(number).encode())
            listening.server.send([str(number).encode(), _LARGE])
            peer.close()
            await soon(lambda: listening.peers == 0)
        assert len(os.listdir("/proc/self/fd")) == before
        assert listening.server._budget.used == 0

    play(tmp_path, act)


def test_more_connections_than_one_round_accepts_are_all_served(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        count = 2 * limits._ACCEPTED_MAX + 1
        for number in range(count):
            listening.connect(str(number).encode())
        await soon(lambda: len(listening.received) == count)

    play(tmp_path, act, connections_max=3 * limits._ACCEPTED_MAX)


def test_without_a_free_descriptor_the_listener_rests_and_later_serves_who_waited(tmp_path: Path) -> None:
    """It would wake the loop without end: who waits to be let in is still there."""

    async def act(listening: Listening) -> None:
        listener = listening.server._listener
        listened_to = vars(asyncio.get_running_loop())["_selector"].get_map()
        assert listener.fileno() in listened_to
        with no_free_descriptor():
            listening.connect_with(waiting, b"one")
            await soon(lambda: listener.fileno() not in listened_to, deadline_seconds=5.0)
            assert listening.received == []
        await soon(lambda: listening.received == [[b"one", b"hello"]])

    with socket.socket(socket.AF_UNIX) as waiting:
        play(tmp_path, act)


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """This process can open nothing; what is open stays so."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_closed_server_has_no_socket_file_and_no_peer(tmp_path: Path) -> None:
    async def act(listening: Listening) -> None:
        peer = await listening.known(b"one")
        assert listening.server.send([b"one", b"last"]) is Sent.SENT
        descriptor = listening.server._listener.fileno()
        listening.server.close(5.0)
        assert os.listdir(tmp_path) == []
        assert peer.recv(1 << 16).endswith(sent_as([b"last"]))
        assert is_cut(peer)
        with pytest.raises(OSError, match="No such file"):
            listening.connect()
        # Its number may be that of another file by now, which the loop must not take for it.
        assert not asyncio.get_running_loop().remove_reader(descriptor)
        listening.server.close()

    play(tmp_path, act)
