"""A listening socket and its connected peers, each known by its identity.

A connection costs a descriptor before its peer has sent anything, so their number is bounded. When the limit
is reached, the process with the most connections loses one: first one without a completed handshake, then the
newest. A process that connects a thousand times therefore displaces itself, and others can still connect.
Processes are told apart by the pid that the kernel recorded when they connected.

A peer that does not complete its handshake in time is dropped, and so is one that reads nothing for half a
minute. Of two peers with one identity the first one is served. New connections are accepted at a bounded
rate, so that even refusing them is cheap.
"""

import contextlib
import ctypes
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable

from ipc.channel import Budget, Channel, Receive
from ipc.codec import encode
from ipc.errors import PlaceError
from ipc.messages import Answer
from ipc.zmtp import Sent

# Every client of this host, and as many again; a supervisor may open 1,024 descriptors or more.
CONNECTIONS_MAX = 256
# To one peer, before it counts as full: some seconds of a fast stream.
UNSENT_BYTES_MAX = 1024 * 1024
# Of all peers together: unfinished messages, and unsent data for slow readers.
MEMORY_BYTES_MAX = 64 * 1024 * 1024
# libzmq completes its handshake within a millisecond; this is for a machine under full load.
_INTRODUCTION_SECONDS_MAX = 10.0
# A reader that reads nothing for this long has stopped reading.
UNREAD_SECONDS_MAX = 30.0
_LOOK_SECONDS = 1.0
# Connections accepted in one iteration, and the pause after it.
_ACCEPTED_MAX = 64
_ACCEPT_PAUSE_SECONDS = 0.01


class Server:
    """`receive` gets messages with the sender's identity first; `left` gets the identity of a lost peer."""

    def __init__(
        self,
        path: str,
        receive: Receive,
        *,
        left: Callable[[bytes], None] = lambda identity: None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        # Imported here, because hermesctl has no loop and asyncio would be half of its start-up time.
        from asyncio import get_running_loop

        self._path = path
        self._receive = receive
        self._left = left
        self._connections_max = connections_max
        self._loop = get_running_loop()
        self._budget = Budget(MEMORY_BYTES_MAX)
        self._unflushed: dict[Channel, None] = {}
        self._peers: dict[_Peer, None] = {}  # in order of arrival
        self._held: Counter[int] = Counter()  # connections of each process
        self._known: dict[bytes, _Peer] = {}
        self._named = 0
        self._is_closed = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind_private(self._listener, path)
        except OSError as error:
            self._listener.close()
            fault = f"cannot listen on {path}: {error.strerror or error}"
            raise PlaceError(fault, "check the folder's owner and mode") from None
        self._listener.setblocking(False)
        self._listener.listen(self._connections_max)
        self._loop.add_reader(self._listener, self._accept)
        self._looking = self._loop.call_later(_LOOK_SECONDS, self._look)

    def send(self, parts: list[bytes]) -> Sent:
        """Sends to the peer whose identity is the first part; never blocks."""
        peer = self._known.get(parts[0])
        return Sent.GONE if peer is None else peer.channel.send(parts[1:])

    def answer(self, identity: bytes, number: bytes, message: Answer) -> None:
        """Answers the request of that number."""
        self.send([identity, number, encode(message)])

    def flush(self) -> None:
        """Gives the kernel what was sent in this iteration of the loop, instead of at its end."""
        for channel in list(self._unflushed):
            channel.flush()

    def close(self, flush_seconds: float = 0.0) -> None:
        """Drops every peer, after waiting at most `flush_seconds` for the kernel to accept unsent bytes."""
        if self._is_closed:
            return
        self._is_closed = True
        self._looking.cancel()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._listener)
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        deadline = self._loop.time() + flush_seconds
        for peer in list(self._peers):
            peer.channel.close(max(0.0, deadline - self._loop.time()))
        self._peers.clear()
        self._known.clear()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_MAX):
            try:
                connected, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                break  # the peer is gone again, or no descriptor is left: later
            self._let_in(connected)
        self._loop.remove_reader(self._listener)
        self._loop.call_later(_ACCEPT_PAUSE_SECONDS, self._accept_again)

    def _accept_again(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)

    def _let_in(self, connected: socket.socket) -> None:
        process = _process_of(connected)
        if len(self._peers) >= self._connections_max and not self._make_room(process):
            connected.close()
            return
        connected.setblocking(False)
        peer = _Peer(self, process, self._loop.time())
        self._peers[peer] = None
        self._held[process] += 1
        peer.channel = Channel(
            connected,
            peer.received,
            peer.ended,
            UNSENT_BYTES_MAX,
            opened=peer.introduced,
            budget=self._budget,
            unflushed=self._unflushed,
        )

    def _make_room(self, process: int) -> bool:
        """Returns false when no process holds more connections than the new peer would."""
        most, count = self._held.most_common(1)[0]
        if self._held[process] >= count:
            return False
        theirs = [peer for peer in self._peers if peer.process == most]
        silent = [peer for peer in theirs if not peer.channel.is_open]
        self._drop((silent or theirs)[-1])
        return True

    def _look(self) -> None:
        """Drops peers without a completed handshake and peers that have stopped reading."""
        self._looking = self._loop.call_later(_LOOK_SECONDS, self._look)
        now = self._loop.time()
        count = len(self._peers)
        for peer in list(self._peers):
            channel = peer.channel
            is_silent = not channel.is_open and now - peer.came_at > _INTRODUCTION_SECONDS_MAX
            has_stopped = channel.has_unsent and now - channel.moved_at > UNREAD_SECONDS_MAX
            if is_silent or has_stopped:
                self._drop(peer)
        if len(self._peers) < count:
            _give_back_memory()

    def _introduce(self, peer: "_Peer") -> None:
        identity = peer.channel.identity
        if not identity:
            # As libzmq does for a peer without an identity; one that a peer chooses cannot begin so.
            self._named += 1
            identity = b"\0" + self._named.to_bytes(8)
        if identity in self._known:
            self._drop(peer)
            return
        peer.identity = identity
        self._known[identity] = peer

    def _drop(self, peer: "_Peer") -> None:
        peer.channel.close()
        self._forget(peer)

    def _forget(self, peer: "_Peer") -> None:
        if peer not in self._peers:
            return  # closing the channel has found the peer gone
        del self._peers[peer]
        self._held[peer.process] -= 1
        if not self._held[peer.process]:
            del self._held[peer.process]
        if self._known.get(peer.identity) is peer:
            del self._known[peer.identity]
            self._left(peer.identity)


class Servers:
    """Listening sockets that are flushed and closed together."""

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def add(self, server: Server) -> None:
        self._servers.append(server)

    def flush(self) -> None:
        for server in self._servers:
            server.flush()

    def close(self, flush_seconds: float) -> None:
        for server in self._servers:
            server.close(flush_seconds)


class _Peer:
    """One connection and its identity."""

    __slots__ = ("_server", "came_at", "channel", "identity", "process")

    channel: Channel

    def __init__(self, server: Server, process: int, came_at: float) -> None:
        self._server = server
        self.process = process
        self.came_at = came_at
        self.identity = b""

    def received(self, parts: list[bytes]) -> None:
        self._server._receive([self.identity, *parts])

    def introduced(self) -> None:
        self._server._introduce(self)

    def ended(self, reason: str) -> None:
        self._server._forget(self)


def _process_of(connected: socket.socket) -> int:
    """Returns the pid of the process that has connected."""
    size = struct.calcsize("3i")
    found: tuple[int, int, int] = struct.unpack(
        "3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return found[0]


def _bind_private(listener: socket.socket, path: str) -> None:
    """Binds so that the socket file is 0600 from the start; replaces a file that another process has left."""
    before = os.umask(0o177)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)
    finally:
        os.umask(before)


def _give_back_memory() -> None:
    """Returns heap to the kernel: unsent data of dropped peers is fragmented, and the C library keeps it."""
    with contextlib.suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
