"""The wire format of ZeroMQ (ZMTP 3.1, NULL mechanism), the supervisor's half of it, without any I/O.

libzmq trusts its peers with memory: it accepts any number of connections, keeps the parts of a message that
never ends without any bound, and counts what waits in messages, however large. The supervisor's peers are
agents and clients, so it implements the protocol itself and bounds each step before it costs memory. The
peers are ordinary DEALER sockets of libzmq and notice nothing.

    connection = Connection(bounds)
    send(OPENING)                         # greeting and READY, without waiting for the peer's
    connection.receive(bytes_that_came)
    while (parts := connection.next()) is not None: …
    send(connection.replies())            # PONG, if the peer has asked

A connection is in one of three states. A peer that leaves the protocol or a bound gets ProtocolError, after
which the connection is of no further use: there is no way to find the next message in a broken stream.

| state | what may come | next |
| --- | --- | --- |
| GREETING | 64 bytes: signature, version 3.x, mechanism NULL | READYING |
| READYING | the command READY with the socket type DEALER, perhaps an identity; 512 bytes at most | OPEN |
| OPEN | messages of up to `parts_max` parts and `bytes_max` bytes; commands | OPEN |

A frame is a byte of flags (MORE, LONG, COMMAND), its length in 1 or 8 bytes, and its body. The length is held
against the bounds as soon as it is known, and room is taken only for bytes that have arrived: a peer that
announces much and sends little costs little. PING is answered by PONG; ERROR ends the connection; any other
command is ignored, since later minor versions may add some.

`receive` takes what was read and `next` parses lazily, one message at a time: the caller bounds how much work
one read can cause. `unread` gives all that was received and not returned by `next`, in the form in which it
came, so that a connection can be continued by another process (`resumed`).
"""

import enum
import mmap
from dataclasses import dataclass

_MORE, _LONG, _COMMAND = 1, 2, 4
_SIGNATURE_BYTES = 10
_GREETING_BYTES = 64
# Name and value of each property cost their own length; libzmq sends two of them.
_READY_BYTES_MAX = 512
_COMMAND_BYTES_MAX = 512
_PING_CONTEXT_BYTES_MAX = 16
_IDENTITY_BYTES_MAX = 255
_GROWN_BYTES_MAX = 64 * 1024
_COPIED_BYTES_MAX = 4 * 1024
_GREETING = b"\xff" + bytes(7) + b"\x01\x7f" + b"\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
# By flags and length: building them each time would cost more than the rest of a small frame.
_SHORT = {flags: [bytes((flags, length)) for length in range(256)] for flags in (0, _MORE, _COMMAND)}


class Sent(enum.Enum):
    """Result of a send."""

    SENT = "sent"
    GONE = "gone"
    FULL = "full"


class ProtocolError(Exception):
    """The peer violates the protocol or its bounds; the sentence refers to the peer as "it"."""


class State(enum.Enum):
    GREETING = "greeting"
    READYING = "readying"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one message: the number of parts, and the sum of their bytes."""

    parts_max: int
    bytes_max: int


class Connection:
    """One peer. `identity` is the name that it has chosen, empty when it has chosen none."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.state = State.GREETING
        self.identity = b""
        # The bytes that were read, and the position of the parser.
        self._data = b""
        self._at = 0
        # The incomplete frame: its flags, its body so far, and the number of missing bytes.
        self._flags = 0
        self._body: bytearray | mmap.mmap = bytearray()
        self._filled = 0
        self._missing = 0
        # The parts of a message whose last part has not arrived, and their bytes.
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._replies: list[bytes] = []

    @classmethod
    def resumed(cls, bounds: Bounds, unread: bytes) -> "Connection":
        """Continues an open connection of another process."""
        connection = cls(bounds)
        connection.state = State.OPEN
        connection.receive(unread)
        return connection

    @property
    def held_bytes(self) -> int:
        """Memory used by this peer's unfinished message and unparsed bytes."""
        return len(self._data) - self._at + self._filled + self._parts_bytes

    def receive(self, data: bytes) -> None:
        """Stores the bytes; `next` parses them."""
        self._data = self._data[self._at :] + data
        self._at = 0

    def next(self) -> list[bytes] | None:
        """Returns the next whole message, or None when it needs more bytes."""
        while True:
            if self.state is State.GREETING and not self._greeted():
                return None
            frame = self._frame()
            if frame is None:
                # Otherwise the buffer of a whole read would be kept for the few bytes that begin the next
                # frame.
                self._data, self._at = self._data[self._at :], 0
                return None
            flags = self._flags
            if flags & _COMMAND:
                self._command(frame)
                continue
            if flags & _MORE:
                self._parts.append(frame)
                self._parts_bytes += len(frame)
                continue
            if not self._parts:
                return [frame]
            parts, self._parts, self._parts_bytes = self._parts, [], 0
            parts.append(frame)
            return parts

    def replies(self) -> bytes:
        """Returns the protocol's own answers to the bytes parsed so far."""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def unread(self) -> bytes:
        """Returns all bytes that `next` has not returned, unchanged."""
        pieces = [_header(_MORE, len(part)) + part for part in self._parts]
        if self._missing:
            pieces += [_header(self._flags, self._filled + self._missing), bytes(self._body[: self._filled])]
        return b"".join([*pieces, self._data[self._at :]])

    def discard(self) -> None:
        """Frees the buffers: the owner may keep this connection for a while after its end."""
        self._data, self._at = b"", 0
        self._body, self._filled, self._missing = bytearray(), 0, 0
        self._parts, self._parts_bytes = [], 0

    def _greeted(self) -> bool:
        signature = self._data[:_SIGNATURE_BYTES]
        is_whole = len(signature) == _SIGNATURE_BYTES
        if signature[:1] not in (b"", b"\xff") or (is_whole and not signature[-1] & 1):
            raise ProtocolError("it does not use ZeroMQ")
        if len(self._data) < _GREETING_BYTES:
            return False
        if self._data[_SIGNATURE_BYTES] < 3:
            raise ProtocolError("it uses an older version of ZeroMQ than 3.0")
        if self._data[12:32].rstrip(b"\0") != b"NULL":
            raise ProtocolError("it asks for another security mechanism than NULL")
        self._at = _GREETING_BYTES
        self.state = State.READYING
        return True

    def _frame(self) -> bytes | None:
        """Returns the body of the next frame and sets `_flags`; None when it is incomplete."""
        data, at = self._data, self._at
        if self._missing:
            self._fill(data, at)
            if self._missing:
                return None
            body = bytes(self._body[: self._filled])
            self._body, self._filled = bytearray(), 0
            return body
        if len(data) < at + 2:
            return None
        flags, length, begin = data[at], data[at + 1], at + 2
        if flags & _LONG:
            begin = at + 9
            if len(data) < begin:
                return None
            length = int.from_bytes(data[at + 1 : begin])
        if flags > _COMMAND | _LONG or (flags & _COMMAND and flags & _MORE):
            raise ProtocolError("it sent a frame with flags that ZeroMQ does not know")
        self._check(flags, length)
        self._flags = flags
        end = begin + length
        if end <= len(data):
            self._at = end
            return data[begin:end]
        self._body = _body_buffer(length)
        self._missing = length
        self._fill(data, begin)
        return None

    def _fill(self, data: bytes, at: int) -> None:
        """Adds the bytes that have arrived to the body of a frame."""
        end = min(len(data), at + self._missing)
        filled = self._filled + end - at
        self._body[self._filled : filled] = data[at:end]
        self._missing -= end - at
        self._at, self._filled = end, filled

    def _check(self, flags: int, length: int) -> None:
        """Checks the bounds before a byte of the frame is kept."""
        if self.state is State.READYING:
            if not flags & _COMMAND or length > _READY_BYTES_MAX:
                raise ProtocolError("it did not introduce itself as ZeroMQ asks for")
        elif flags & _COMMAND:
            if length > _COMMAND_BYTES_MAX:
                raise ProtocolError(f"it sent a ZeroMQ command of more than {_COMMAND_BYTES_MAX} bytes")
        elif self._parts_bytes + length > self._bounds.bytes_max:
            raise ProtocolError(f"it sent a message of more than {self._bounds.bytes_max} bytes")
        elif len(self._parts) + (2 if flags & _MORE else 1) > self._bounds.parts_max:
            raise ProtocolError(f"it sent a message of more than {self._bounds.parts_max} parts")

    def _command(self, body: bytes) -> None:
        name_end = 1 + body[0] if body else 0
        if not body or len(body) < name_end:
            raise ProtocolError("it sent a ZeroMQ command without a name")
        name, rest = body[1:name_end], body[name_end:]
        if name == b"ERROR":
            raise ProtocolError("it gave up the connection")
        if self.state is State.READYING:
            self._ready(name, rest)
        elif name == b"PING":
            # The first two bytes are the peer's time limit; the rest is sent back.
            self._replies.append(_command(b"PONG", rest[2 : 2 + _PING_CONTEXT_BYTES_MAX]))

    def _ready(self, name: bytes, rest: bytes) -> None:
        properties = _properties(rest) if name == b"READY" else {}
        if properties.get(b"socket-type") != b"DEALER":
            raise ProtocolError("it is no DEALER socket of ZeroMQ")
        self.identity = properties.get(b"identity", b"")
        if len(self.identity) > _IDENTITY_BYTES_MAX or self.identity[:1] == b"\0":
            raise ProtocolError("its identity is one that ZeroMQ does not allow")
        self.state = State.OPEN


def frames(parts: list[bytes]) -> list[bytes]:
    """Encodes a message as pieces; a large part is a piece of its own, and is not copied."""
    last = len(parts) - 1
    pieces: list[bytes] = []
    small: list[bytes] = []
    for number, part in enumerate(parts):
        small.append(_header(_MORE if number < last else 0, len(part)))
        if len(part) < _COPIED_BYTES_MAX:
            small.append(part)
        else:
            pieces += (b"".join(small), part)
            small = []
    if small:
        pieces.append(b"".join(small))
    return pieces


def _body_buffer(length: int) -> bytearray | mmap.mmap:
    """Allocates the buffer of a body that arrives in pieces.

    Large bodies that grow side by side would fragment the heap. In pages of its own a body uses those that
    have arrived, and the kernel gets all of them back at its end.
    """
    if length <= _GROWN_BYTES_MAX:
        return bytearray()
    try:
        return mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise ProtocolError("there is no memory for what it sends") from None


def _header(flags: int, length: int) -> bytes:
    short = flags & ~_LONG
    return _SHORT[short][length] if length < 256 else bytes((short | _LONG,)) + length.to_bytes(8)


def _command(name: bytes, rest: bytes) -> bytes:
    body = bytes((len(name),)) + name + rest
    return _header(_COMMAND, len(body)) + body


def _properties(data: bytes) -> dict[bytes, bytes]:
    """Parses READY: a length byte and a case-insensitive name; four length bytes and a value."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        value_end = name_end + 4 + int.from_bytes(data[name_end : name_end + 4])
        if len(data) < name_end + 4 or len(data) < value_end:
            raise ProtocolError("it sent a READY that cannot be read")
        found[data[at + 1 : name_end].lower()] = data[name_end + 4 : value_end]
        at = value_end
    return found


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + len(value).to_bytes(4) + value


# The supervisor's first bytes to every peer.
OPENING = _GREETING + _command(b"READY", _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b""))
