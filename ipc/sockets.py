"""The only module that uses libzmq: the sockets of workers, services and clients.

The supervisor's ends are in ipc/channel.py and ipc/server.py.

ZeroMQ's file descriptor is edge-triggered: it wakes once for any number of frames, and a send may swallow the
wake. So every wake drains until nothing is left, and every send requests one more drain.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import zmq

from ipc.codec import FRAME_BYTES_MAX
from ipc.zmtp import Sent

# Frames queued to one peer before it counts as full: some seconds of a fast stream, a few megabytes at most.
SEND_FRAMES_MAX = 4096
# Frames waiting to be read from one peer; beyond it the peer's own sends wait.
RECEIVE_FRAMES_MAX = 4096
# Frames handled in one wake before other work of the loop runs.
_DRAIN_MAX = 512
_INTRODUCTION_MILLISECONDS_MAX = 10_000
# Plain integers: combining two of the library's flags costs more than sending a part.
_NOW = int(zmq.NOBLOCK)
_NOW_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

Receive = Callable[[list[bytes]], None]
# Called with True when a connection is up, with False when it is lost.
Changed = Callable[[bool], None]
_Kept = TypeVar("_Kept", "LoopSocket", "BlockingSocket")


class Wire:
    """A ZeroMQ context; one per process, made after any fork."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._sockets: list[LoopSocket | BlockingSocket] = []
        self._monitored: list[zmq.Socket[bytes]] = []

    def line(self, descriptor: int, receive: Receive) -> "LoopSocket":
        """A DEALER with one connected peer; the descriptor must be listening, see `connected_pair`."""
        return self._kept(LoopSocket(self._line(descriptor), receive))

    def dealer(self, path: str, identity: str, receive: Receive) -> "LoopSocket":
        return self._kept(LoopSocket(self._dealer(path, identity), receive))

    def watched_dealer(self, path: str, identity: str, receive: Receive, changed: Changed) -> "LoopSocket":
        """A dealer that reports when its connection is up and when it is lost.

        libzmq connects again by itself, and then sends what was queued before. Where that would be wrong,
        close the socket and make another one.
        """
        socket = self._unconnected(identity)
        # Before the connection is begun: libzmq's thread may complete it at once, and reports it once.
        monitor = socket.get_monitor_socket(int(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED))
        self._monitored.append(socket)
        self._kept(LoopSocket(monitor, partial(_tell_change, changed)))
        socket.connect(f"ipc://{path}")
        return self._kept(LoopSocket(socket, receive))

    def blocking(self, path: str, identity: str) -> "BlockingSocket":
        """A DEALER for programs without an event loop."""
        return self._kept(BlockingSocket(self._dealer(path, identity)))

    def echo(self, descriptor: int, begins: Callable[[], None]) -> None:
        """Sends back every frame of a channel, without the interpreter lock. Blocks: for a daemon thread.

        `begins` is called after the last step that needs the lock.
        """
        try:
            with self._line(descriptor) as socket:
                begins()
                zmq.proxy(socket, socket)
        except zmq.ContextTerminated:
            return

    def close(self) -> None:
        """Drops every socket at once, without waiting for undelivered frames.

        An echo's socket belongs to its thread and must be closed there: ending the context tells it to.
        """
        for monitored in self._monitored:
            # Else libzmq's thread would wait for the reader of its reports, which is closed next.
            monitored.disable_monitor()
        self._monitored.clear()
        for socket in self._sockets:
            socket.close()
        self._sockets.clear()
        self._context.term()

    def _kept(self, socket: _Kept) -> _Kept:
        self._sockets.append(socket)
        return socket

    def _socket(self, kind: int) -> "zmq.Socket[bytes]":
        socket = self._context.socket(kind)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.SNDHWM, SEND_FRAMES_MAX)
        socket.set(zmq.RCVHWM, RECEIVE_FRAMES_MAX)
        # A second check: the codec refuses large frames earlier and with a reason, this drops peers that
        # bypass it.
        socket.set(zmq.MAXMSGSIZE, FRAME_BYTES_MAX + 1024)
        return socket

    def _dealer(self, path: str, identity: str) -> "zmq.Socket[bytes]":
        socket = self._unconnected(identity)
        socket.connect(f"ipc://{path}")
        return socket

    def _unconnected(self, identity: str) -> "zmq.Socket[bytes]":
        socket = self._socket(zmq.DEALER)
        socket.set(zmq.ROUTING_ID, identity.encode())
        return socket

    def _line(self, descriptor: int) -> "zmq.Socket[bytes]":
        socket = self._socket(zmq.DEALER)
        socket.set(zmq.USE_FD, descriptor)
        # The address is unused, but it has to be valid.
        socket.bind("ipc:///line")
        # The handshake of the peer is complete; nothing can be sent until libzmq has processed it.
        socket.poll(_INTRODUCTION_MILLISECONDS_MAX, zmq.POLLOUT)
        return socket


class LoopSocket:
    """A socket whose frames reach `receive` as soon as the loop is free."""

    def __init__(self, socket: "zmq.Socket[bytes]", receive: Receive) -> None:
        # Imported here, because hermesctl has no loop and asyncio would be half of its start-up time.
        from asyncio import get_running_loop

        self._socket = socket
        self._receive = receive
        self._loop = get_running_loop()
        self._drain_wanted = False
        self._closed = False
        self._descriptor = int(socket.get(zmq.FD))
        self._loop.add_reader(self._descriptor, self._drain)
        self._want_drain()

    def send(self, parts: list[bytes]) -> Sent:
        """Never blocks. FULL: the peer reads too slowly, or is gone; nothing of this frame was sent."""
        try:
            # Only the first part can be refused: once it is accepted, so are the others.
            for part in parts[:-1]:
                self._socket.send(part, _NOW_AND_MORE)
            self._socket.send(parts[-1], _NOW)
        except zmq.Again:
            return Sent.FULL
        finally:
            self._want_drain()
        return Sent.SENT

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)
            self._socket.close()

    def _want_drain(self) -> None:
        if not self._drain_wanted:
            self._drain_wanted = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._drain_wanted = False
        if self._closed:
            return
        for _ in range(_DRAIN_MAX):
            try:
                parts = self._socket.recv_multipart(_NOW)
            except zmq.Again:
                return
            self._receive(parts)
            if self._closed:
                return
        self._want_drain()


class BlockingSocket:
    """A socket for hermesctl: plain calls with a time limit."""

    def __init__(self, socket: "zmq.Socket[bytes]") -> None:
        self._socket = socket

    def send(self, parts: list[bytes]) -> None:
        self._socket.send_multipart(parts)

    def receive(self, timeout_seconds: float | None) -> list[bytes] | None:
        """Returns the next frame, or None after the time limit."""
        timeout = -1 if timeout_seconds is None else max(0, int(timeout_seconds * 1000))
        return self._socket.recv_multipart() if self._socket.poll(timeout) else None

    def fileno(self) -> int:
        """Readable at most once per arrival: after it wakes, call `receive(0)` until it returns None."""
        return int(self._socket.get(zmq.FD))

    def close(self) -> None:
        self._socket.close()


def _tell_change(changed: Changed, parts: list[bytes]) -> None:
    """Reads an event of a socket monitor; its first two bytes are the kind of the event."""
    changed(int.from_bytes(parts[0][:2], sys.byteorder) == zmq.EVENT_HANDSHAKE_SUCCEEDED)
