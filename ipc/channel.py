"""One peer on one socket of the event loop: whole messages in and out, both within bounds.

Reading is fair: a wake takes one read and handles a bounded number of its messages; the rest is parsed in the
next iteration of the loop, and nothing more is read before. While too much data waits to be sent, nothing is
read: a peer that does not read its answers cannot request more of them.

Sends are collected and made at the end of the iteration, so that many small ones cost one system call, or
earlier by `flush`. A message is accepted whole or refused: FULL when the unsent bytes exceed
`unsent_bytes_max`, so one message may exceed it.
"""

import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ipc.codec import FRAME_BYTES_MAX
from ipc.message_parts import Part
from ipc.zmtp import OPENING, Bounds, Connection, ProtocolError, Sent, State, frames

# A message is a number and a frame. A few more parts are allowed, because the receiver can name that fault
# better than the parser.
MESSAGE_BOUNDS = Bounds(parts_max=8, bytes_max=FRAME_BYTES_MAX + 1024)
_READ_BYTES = 64 * 1024
# Messages handled in one wake before other work of the loop runs.
_MESSAGES_MAX = 512
# Joined for one system call; the remainder is held as a copy.
_JOINED_BYTES = 64 * 1024

CLOSED_BY_PEER = "it has closed its connection"

Receive = Callable[[list[bytes]], None]


@dataclass(slots=True)
class Budget:
    """Memory that all channels of one listener may use together."""

    bytes_max: int
    used: int = 0

    @property
    def is_spent(self) -> bool:
        return self.used > self.bytes_max


class HandedChannel(Part, frozen=True):
    """An open channel for the next image of this process: its descriptor and its buffered bytes."""

    descriptor: int
    unread: bytes
    unsent: bytes


class Channel:
    """`receive` gets each message; `ended` gets the reason once when the peer closes, not on close().

    `opened` is called when the handshake of the peer is complete. `unflushed` holds the channels whose sends
    are still to be made.
    """

    def __init__(
        self,
        peer: socket.socket,
        receive: Receive,
        ended: Callable[[str], None],
        unsent_bytes_max: int,
        bounds: Bounds = MESSAGE_BOUNDS,
        *,
        opened: Callable[[], None] | None = None,
        budget: Budget | None = None,
        unflushed: "dict[Channel, None] | None" = None,
        handed: HandedChannel | None = None,
    ) -> None:
        """`peer` is connected and non-blocking."""
        # Imported here, because hermesctl has no loop and asyncio would be half of its start-up time.
        from asyncio import get_running_loop

        self._peer = peer
        self._receive = receive
        self._ended = ended
        self._opened = opened
        self._unsent_bytes_max = unsent_bytes_max
        self._budget = budget or Budget(2**63)
        self._charged = 0
        self._unflushed = {} if unflushed is None else unflushed
        self._loop = get_running_loop()
        self._unsent: deque[bytes | memoryview] = deque()
        self._unsent_bytes = 0
        self._is_reading = self._is_writing = self._delivery_wanted = False
        self.is_closed = False
        # When the kernel last accepted bytes, or when the buffer was last empty.
        self.moved_at = self._loop.time()
        if handed is None:
            self._connection = Connection(bounds)
            self._post(OPENING)
            self._flush()
        else:
            self._connection = Connection.resumed(bounds, handed.unread)
            self._post(handed.unsent)
        self._deliver_soon()

    @classmethod
    def take_over(
        cls,
        handed: HandedChannel,
        receive: Receive,
        ended: Callable[[str], None],
        unsent_bytes_max: int,
        bounds: Bounds = MESSAGE_BOUNDS,
    ) -> "Channel":
        """Continues a channel of an earlier image of this process."""
        peer = socket.socket(fileno=handed.descriptor)
        peer.set_inheritable(False)
        return cls(peer, receive, ended, unsent_bytes_max, bounds, handed=handed)

    def hand_over(self) -> HandedChannel | None:
        """Detaches the channel for the next image of this process; None when the peer is gone."""
        if not self.is_open:
            return None
        unread, unsent = self._connection.unread(), b"".join(self._unsent)
        self._stop()
        self._peer.set_inheritable(True)
        return HandedChannel(self._peer.detach(), unread, unsent)

    @property
    def is_open(self) -> bool:
        """True from the end of the handshake until the channel closes."""
        return self._connection.state is State.OPEN and not self.is_closed

    @property
    def identity(self) -> bytes:
        return self._connection.identity

    @property
    def has_unsent(self) -> bool:
        return self._unsent_bytes > 0

    def send(self, parts: list[bytes]) -> Sent:
        """Never blocks. GONE: no peer is connected. FULL: the peer reads too slowly; nothing was sent."""
        if not self.is_open:
            return Sent.GONE
        if self._is_full or (self._unsent and self._budget.is_spent):
            return Sent.FULL
        for piece in frames(parts):
            self._post(piece)
        if self._is_writing:
            # The next flush, which charges too, comes when the peer reads, and it may never do so.
            self._charge()
        return Sent.SENT

    def drain(self) -> None:
        """Receives everything that the peer has sent so far, up to the size of one message."""
        for _ in range(MESSAGE_BOUNDS.bytes_max // _READ_BYTES):
            if not self._is_reading or not self._read():
                return

    def close(self, flush_seconds: float = 0.0) -> None:
        """Closes the channel after waiting at most `flush_seconds` for the kernel to accept unsent bytes."""
        if not self._loop.is_closed():
            self._flush()
        if self.is_closed:
            return
        if self._unsent and flush_seconds > 0:
            with contextlib.suppress(OSError):
                self._peer.settimeout(flush_seconds)
                self._peer.sendall(b"".join(self._unsent))
        self._stop()
        self._peer.close()

    # --- in ---------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Reads once; returns false when no data was available."""
        try:
            data = self._peer.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._end(CLOSED_BY_PEER)
            return False
        self._connection.receive(data)
        self._deliver()
        self._read_beyond_error()
        return True

    def _read_beyond_error(self) -> None:
        """Watch the socket again if it has an error: uvloop tells of one once, and of nothing after it.

        A peer that ends without having read all causes one, while more of what it sent may be there.
        """
        if self._is_reading and self._peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._read_on(False)
            self._read_on(True)

    def _deliver(self) -> None:
        """Delivers the parsed messages, and resumes reading if that was all of them."""
        self._delivery_wanted = False
        connection = self._connection
        try:
            for _ in range(_MESSAGES_MAX):
                if self.is_closed or self._is_full:
                    break
                parts = connection.next()
                if self._opened is not None and self.is_open:
                    opened, self._opened = self._opened, None
                    opened()
                if parts is None:
                    break
                if not self.is_closed:
                    self._receive(parts)
            else:
                self._deliver_soon()
        except ProtocolError as error:
            self._end(str(error))
        if self.is_closed:
            return
        self._post(connection.replies())
        self._charge()
        if connection.held_bytes > _READ_BYTES and self._budget.is_spent:
            self._end("it does not end its message, and the memory for unfinished messages is used up")
        else:
            self._read_on(not self._delivery_wanted and not self._is_full)

    def _deliver_soon(self) -> None:
        if not self._delivery_wanted:
            self._delivery_wanted = True
            self._loop.call_soon(self._deliver)

    @property
    def _is_full(self) -> bool:
        return self._unsent_bytes > self._unsent_bytes_max

    def _read_on(self, wanted: bool) -> None:
        if wanted is not self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._peer, self._read)
            else:
                self._loop.remove_reader(self._peer)

    # --- out --------------------------------------------------------------------------------------------

    def _post(self, data: bytes) -> None:
        if not data:
            return
        if not self._unsent:
            self.moved_at = self._loop.time()
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if not self._is_writing and self not in self._unflushed:
            self._unflushed[self] = None
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Makes the sends that were collected; without effect if there are none."""
        if self in self._unflushed:
            self._flush()

    def _flush(self) -> None:
        """Writes as much as the kernel accepts; the rest waits until the peer has read."""
        self._unflushed.pop(self, None)
        while self._unsent and not self.is_closed:
            data = self._next_unsent()
            try:
                taken = self._peer.send(data)
            except (BlockingIOError, InterruptedError):
                taken = 0
            except OSError:
                self._end(CLOSED_BY_PEER)
                return
            self._unsent_bytes -= taken
            if taken:
                self.moved_at = self._loop.time()
            if taken < len(data):
                self._unsent.appendleft(memoryview(data)[taken:])
                break
        if self.is_closed:
            return
        self._charge()
        self._write_on(bool(self._unsent))
        if not self._is_reading and not self._is_full:
            self._deliver_soon()

    def _next_unsent(self) -> bytes | memoryview:
        first = self._unsent.popleft()
        size = len(first)
        if not self._unsent or size >= _JOINED_BYTES:
            return first
        joined = [first]
        while self._unsent and size < _JOINED_BYTES:
            joined.append(self._unsent.popleft())
            size += len(joined[-1])
        return b"".join(joined)

    def _write_on(self, wanted: bool) -> None:
        if wanted is not self._is_writing:
            self._is_writing = wanted
            if wanted:
                self._loop.add_writer(self._peer, self._flush)
            else:
                self._loop.remove_writer(self._peer)

    # --- the end ----------------------------------------------------------------------------------------

    def _charge(self) -> None:
        now = self._connection.held_bytes + self._unsent_bytes
        self._budget.used += now - self._charged
        self._charged = now

    def _end(self, reason: str) -> None:
        if not self.is_closed:
            self._stop()
            self._peer.close()
            self._ended(reason)

    def _stop(self) -> None:
        self.is_closed = True
        self._budget.used -= self._charged
        if not self._loop.is_closed():
            self._read_on(False)
            self._write_on(False)
        self._unsent.clear()
        self._connection.discard()


def connected_pair(folder: str) -> tuple[socket.socket, socket.socket]:
    """Makes a connection to a future process: our end, and the end for its ZeroMQ socket.

    libzmq accepts no connected socket, only a listening one. So a socket listens for a moment, in a private
    folder; this process connects, and the name is removed. The backlog holds that one connection, and no
    other process can connect.
    """
    path = os.path.join(folder, "line.sock")
    with contextlib.ExitStack() as undone:
        listener = undone.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        ours = undone.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        ours.setblocking(False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)
        try:
            # With a backlog of 0 the kernel queues one connection.
            listener.listen(0)
            ours.connect(path)
        finally:
            os.unlink(path)
        undone.pop_all()
        return ours, listener
