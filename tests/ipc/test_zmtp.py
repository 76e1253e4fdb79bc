"""The wire format of ZeroMQ: what libzmq sends is understood however it is cut, and nothing else passes."""

import itertools
import socket
from collections.abc import Iterator

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc import zmtp
from ipc.zmtp import OPENING, Bounds, Connection, ProtocolError, State

BOUNDS = Bounds(parts_max=4, bytes_max=100_000)
MESSAGES = [
    [b"7", b"a message"],
    [b""],
    [b"", b"", b""],
    [b"x" * 255],
    [b"x" * 256],
    [b"y" * 70_000, b"z" * 20_000],
    [b"the last one"],
]
_PEER_SECONDS = 20.0


def frames(parts: list[bytes]) -> bytes:
    return b"".join(zmtp.frames(parts))


def recorded(sent: list[list[bytes]], **options: int | bytes) -> bytes:
    """All bytes that a DEALER of libzmq sends for these messages."""
    with socket.socket(socket.AF_UNIX) as listener, zmq.Context() as context:
        listener.bind("")
        listener.listen(1)
        listener.settimeout(_PEER_SECONDS)
        dealer = context.socket(zmq.DEALER)
        dealer.set(zmq.LINGER, 0)
        for name, value in {"ROUTING_ID": b"peer", **options}.items():
            dealer.set(getattr(zmq, name), value)
        dealer.connect(f"ipc://@{listener.getsockname()[1:].decode()}")
        connected, _ = listener.accept()
        connected.settimeout(_PEER_SECONDS)
        connected.sendall(OPENING)
        for parts in sent:
            dealer.send_multipart(parts)
        data = b""
        while not data.endswith(b"the last one"):
            data += connected.recv(1 << 20)
        connected.close()
        dealer.close()
    return data


@pytest.fixture(scope="module")
def stream() -> bytes:
    return recorded(MESSAGES)


def parsed(connection: Connection, pieces: Iterator[bytes] | list[bytes]) -> list[list[bytes]]:
    found = []
    for piece in pieces:
        connection.receive(piece)
        while (parts := connection.next()) is not None:
            found.append(parts)
    return found


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({min(place, len(data)) for place in places}), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


def test_what_a_dealer_of_libzmq_sends_is_understood(stream: bytes) -> None:
    connection = Connection(BOUNDS)
    assert parsed(connection, [stream]) == MESSAGES
    assert (connection.identity, connection.state) == (b"peer", State.OPEN)
    assert connection.held_bytes == 0
    assert connection.unread() == b""


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_it_does_not_matter_where_the_stream_is_cut(stream: bytes, data: st.DataObject) -> None:
    edges = st.one_of(st.integers(0, len(stream)), st.integers(0, 700))
    places = data.draw(st.lists(edges, max_size=40))
    assert parsed(Connection(BOUNDS), cut(stream, places)) == MESSAGES


def test_it_may_come_byte_by_byte() -> None:
    stream = recorded([*MESSAGES[:5], [b"the last one"]])
    assert parsed(Connection(BOUNDS), cut(stream, list(range(len(stream))))) == [*MESSAGES[:5], MESSAGES[-1]]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_another_process_goes_on_where_one_has_stopped(stream: bytes, data: st.DataObject) -> None:
    """Whatever is unread at any place of the stream is all that the next one needs."""
    place = data.draw(st.one_of(st.integers(150, len(stream)), st.integers(150, 700)))
    first = Connection(BOUNDS)
    first.receive(stream[:place])
    found = []
    for _ in range(data.draw(st.integers(0, 10))):
        if (parts := first.next()) is not None:
            found.append(parts)
    if first.state is not State.OPEN:
        return
    second = Connection.resumed(BOUNDS, first.unread())
    assert found + parsed(second, [b"", stream[place:]]) == MESSAGES


def test_what_is_sent_is_what_a_dealer_of_libzmq_would_send(stream: bytes) -> None:
    assert stream.endswith(b"".join(map(frames, MESSAGES)))


def test_a_ping_of_libzmq_is_answered() -> None:
    """libzmq drops a peer that does not: the second message comes after many such times."""
    connection = Connection(BOUNDS)
    ping = b"\x04\x0b\x04PING\x00\x64here"
    parsed(connection, [recorded([MESSAGES[-1]]), ping])
    assert connection.replies() == b"\x04\x09\x04PONGhere"
    assert connection.replies() == b""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"GET / HTTP/1.1\r\n", "does not use ZeroMQ"),
        (b"\xff" + bytes(9), "does not use ZeroMQ"),
        (OPENING[:10] + b"\x02" + OPENING[11:], "older version"),
        (OPENING[:12] + b"PLAIN" + OPENING[17:], "mechanism"),
        (OPENING, "no DEALER"),
        (OPENING[:64] + frames([b"at once"]), "introduce"),
        (OPENING[:64] + b"\x06" + (1 << 40).to_bytes(8), "introduce"),
        (OPENING[:64] + b"\x04\x06\x05ERROR", "gave up"),
        (OPENING[:64] + b"\x04\x0a\x05READY\x0bSoc", "cannot be read"),
    ],
)
def test_what_is_no_introduction_is_named(data: bytes, fault: str) -> None:
    with pytest.raises(ProtocolError, match=fault):
        parsed(Connection(BOUNDS), [data])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"\x01\x01x" * 4, "more than 4 parts"),
        (b"\x01\x00" * 4, "more than 4 parts"),
        (b"\x02" + (100_001).to_bytes(8), "more than 100000 bytes"),
        (b"\x02" + b"\xff" * 8, "more than 100000 bytes"),
        (frames([b"x" * 60_000, b"y"])[:-3] + b"\x02" + (40_001).to_bytes(8), "more than 100000 bytes"),
        (b"\x06" + (1 << 30).to_bytes(8), "command of more than"),
        (b"\x08\x00", "flags"),
        (b"\x05\x02\x01x", "flags"),
        (b"\x04\x00", "without a name"),
    ],
)
def test_what_leaves_the_bounds_is_refused_before_it_is_kept(data: bytes, fault: str) -> None:
    connection = Connection.resumed(BOUNDS, b"")
    with pytest.raises(ProtocolError, match=fault):
        parsed(connection, [data])


def test_a_length_that_is_announced_takes_no_memory() -> None:
    connection = Connection.resumed(BOUNDS, b"")
    assert parsed(connection, [b"\x02" + (100_000).to_bytes(8) + b"few"]) == []
    assert connection.held_bytes == 3


def test_commands_that_are_not_known_are_ignored() -> None:
    connection = Connection.resumed(BOUNDS, b"")
    assert parsed(connection, [b"\x04\x09\x08SOMEDAYS", frames([b"a"])]) == [[b"a"]]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6), st.booleans())
def test_any_bytes_are_messages_or_a_protocol_error(pieces: list[bytes], is_open: bool) -> None:
    connection = Connection.resumed(BOUNDS, b"") if is_open else Connection(BOUNDS)
    try:
        for parts in parsed(connection, pieces):
            assert len(parts) <= BOUNDS.parts_max
            assert sum(map(len, parts)) <= BOUNDS.bytes_max
    except ProtocolError:
        return


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_stream_with_a_byte_changed_is_messages_or_a_protocol_error(
    stream: bytes, data: st.DataObject
) -> None:
    head = stream[:700]
    place = data.draw(st.integers(0, len(head) - 1))
    changed = head[:place] + bytes([data.draw(st.integers(0, 255))]) + head[place + 1 :]
    connection = Connection(BOUNDS)
    try:
        parsed(connection, [changed])
    except ProtocolError:
        return
    assert connection.held_bytes <= len(changed)


@pytest.mark.parametrize(("identity", "is_allowed"), [(b"x", True), (b"\0x", False), (b"x" * 256, False)])
def test_an_identity_that_the_server_gives_cannot_be_chosen(identity: bytes, is_allowed: bool) -> None:
    connection = Connection(Bounds(1, 100))
    named = b"\x08Identity" + len(identity).to_bytes(4) + identity
    body = b"\x05READY" + b"\x0bSocket-Type\0\0\0\x06DEALER" + named
    connection.receive(OPENING[:64] + b"\x06" + len(body).to_bytes(8) + body)
    if is_allowed:
        assert connection.next() is None
        assert connection.identity == identity
    else:
        with pytest.raises(ProtocolError, match="its identity is one that ZeroMQ does not allow"):
            connection.next()


def test_what_was_parsed_is_not_kept_for_the_beginning_of_the_next_frame() -> None:
    connection = Connection.resumed(Bounds(1, 100_000), b"")
    connection.receive(b"\0\x05hello" * 5000 + b"\0")
    while connection.next() is not None:
        pass
    assert connection.held_bytes == len(connection._data) == 1


def test_a_long_context_of_a_ping_is_cut() -> None:
    connection = Connection(BOUNDS)
    body = b"\x04PING\x00\x64" + b"c" * 100
    parsed(connection, [recorded([MESSAGES[-1]]), bytes((4, len(body))) + body])
    assert connection.replies() == b"\x04\x15\x04PONG" + b"c" * 16
