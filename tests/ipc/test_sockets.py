"""Both ends of the wire: what was sent arrives, what cannot be sent is said; a pulse needs no interpreter."""

import asyncio
import os
import select
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from ipc.channel import Channel, Receive, connected_pair
from ipc.codec import FRAME_BYTES_MAX
from ipc.errors import PlaceError
from ipc.server import UNSENT_BYTES_MAX, Server
from ipc.sockets import Wire
from ipc.zmtp import Sent
from tests.waiting import DEADLINE_SECONDS, soon, until

Listen = Callable[[Receive], Server]


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.sock")


@pytest.fixture
def listen(path: str) -> Iterator[Listen]:
    made: list[Server] = []

    def listen(receive: Receive) -> Server:
        made.append(Server(path, receive))
        return made[-1]

    yield listen
    for server in made:
        server.close()


def _numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


async def _reachable(router: Server, peer: bytes) -> None:
    await soon(lambda: router.send([peer, b"are you there"]) is Sent.SENT)


def test_frames_carry_the_identity_both_ways(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        at_router: list[list[bytes]] = []
        at_dealer: list[list[bytes]] = []
        router = listen(at_router.append)
        dealer = wire.dealer(path, "one", at_dealer.append)
        assert dealer.send([b"7", b"question"]) is Sent.SENT
        await soon(lambda: at_router)
        assert router.send([b"one", b"7", b"answer"]) is Sent.SENT
        await soon(lambda: at_dealer)
        assert (at_router, at_dealer) == ([[b"one", b"7", b"question"]], [[b"7", b"answer"]])

    asyncio.run(talk())


def test_sends_never_swallow_an_arrival(wire: Wire, path: str, listen: Listen) -> None:
    """Every arrival is answered by a send at once, which is when ZeroMQ forgets to wake the loop."""
    rounds = 3000

    async def talk() -> None:
        returned: list[bytes] = []
        router: Server | None = None

        def answer(parts: list[bytes]) -> None:
            assert router is not None
            assert router.send(parts) is Sent.SENT

        router = listen(answer)
        dealer = wire.dealer(path, "one", lambda parts: returned.append(parts[0]))
        for number in range(rounds):
            assert dealer.send([str(number).encode()]) is Sent.SENT
            if number % 7 == 0:
                await asyncio.sleep(0)
        await soon(lambda: len(returned) == rounds)
        assert returned == _numbered(rounds)

    asyncio.run(talk())


def test_an_arrival_whose_wake_was_swallowed_is_read_after_a_send(
    wire: Wire, path: str, listen: Listen
) -> None:
    """The descriptor has fallen silent though a frame is there, and no further frame comes."""

    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = listen(lambda parts: None)
        dealer = wire.dealer(path, "one", arrived.append)
        await _reachable(router, b"one")
        # Only a reader that has found nothing is woken by the next frame.
        await soon(lambda: arrived and not dealer._drain_wanted)
        arrived.clear()
        assert router.send([b"one", b"x"]) is Sent.SENT
        await asyncio.sleep(0)
        descriptor = dealer._descriptor
        assert select.select([descriptor], [], [], DEADLINE_SECONDS)[0]
        # What a send does now and then by itself: it takes the wake, and leaves the frame.
        until(lambda: int(dealer._socket.get(zmq.EVENTS)) & zmq.POLLIN)
        assert not select.select([descriptor], [], [], 0)[0]
        assert arrived == []
        assert dealer.send([b"y"]) is Sent.SENT
        await soon(lambda: arrived)
        router.close()

    asyncio.run(talk())


def test_frames_that_came_before_the_loop_looked_are_read(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        first: list[list[bytes]] = []
        router = listen(first.append)
        sender = wire.blocking(path, "one")
        for frame in _numbered(1500):
            sender.send([frame])
        await soon(lambda: len(first) == 1500)
        assert [parts[1] for parts in first] == _numbered(1500)
        router.close()

    asyncio.run(talk())


def test_a_flood_leaves_the_loop_its_turn(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        arrived_at_turn: list[int] = []
        turns = 0
        router = listen(lambda parts: arrived_at_turn.append(turns))
        sender = wire.blocking(path, "one")
        for frame in _numbered(3000):
            sender.send([frame])

        def turn() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(turn)

        turn()
        await soon(lambda: len(arrived_at_turn) == 3000)
        assert max(arrived_at_turn.count(number) for number in set(arrived_at_turn)) <= 1024
        router.close()

    asyncio.run(talk())


def test_an_unknown_peer_is_gone(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        router = listen(lambda parts: None)
        assert router.send([b"nobody", b"x"]) is Sent.GONE

    asyncio.run(talk())


def test_a_peer_that_left_is_gone(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        router = listen(lambda parts: None)
        peer = wire.dealer(path, "one", lambda parts: None)
        await _reachable(router, b"one")
        peer.close()
        await soon(lambda: router.send([b"one", b"x"]) is Sent.GONE)

    asyncio.run(talk())


def test_a_slow_peer_is_full_and_loses_nothing(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        router = listen(lambda parts: None)
        slow = wire.blocking(path, "slow")
        quick: list[list[bytes]] = []
        wire.dealer(path, "quick", quick.append)
        await _reachable(router, b"slow")
        await _reachable(router, b"quick")
        assert await asyncio.to_thread(slow.receive, DEADLINE_SECONDS) == [b"are you there"]
        sent = 0
        padding = b"." * 10_000
        while router.send([b"slow", str(sent).encode(), padding]) is Sent.SENT:
            sent += 1
            assert sent < 100_000
            # What the peer's own queue and the kernel take does not count.
            await asyncio.sleep(0)
        assert sent * len(padding) > UNSENT_BYTES_MAX
        assert router.send([b"quick", b"others feel nothing"]) is Sent.SENT
        await soon(lambda: [b"others feel nothing"] in quick)
        for number in range(sent):
            received = await asyncio.to_thread(slow.receive, DEADLINE_SECONDS)
            assert received is not None
            assert received[0] == str(number).encode()
        await soon(lambda: router.send([b"slow", b"again"]) is Sent.SENT)
        assert await asyncio.to_thread(slow.receive, DEADLINE_SECONDS) == [b"again"]
        router.close()

    asyncio.run(talk())


def test_an_oversize_frame_costs_its_sender_only(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = listen(arrived.append)
        rude = wire.blocking(path, "rude")
        rude.send([b"x" * (FRAME_BYTES_MAX + 2048)])
        polite = wire.dealer(path, "polite", lambda parts: None)
        assert polite.send([b"y" * FRAME_BYTES_MAX]) is Sent.SENT
        await soon(lambda: arrived)
        assert [parts[0] for parts in arrived] == [b"polite"]
        router.close()

    asyncio.run(talk())


def test_a_second_peer_of_the_same_name_gets_nothing(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = listen(arrived.append)
        first = wire.blocking(path, "one")
        first.send([b"first"])
        await soon(lambda: arrived)
        thief = wire.blocking(path, "one")
        thief.send([b"thief"])
        wire.dealer(path, "two", lambda parts: None).send([b"later"])
        await soon(lambda: [b"two", b"later"] in arrived)
        assert router.send([b"one", b"for the first"]) is Sent.SENT
        assert await asyncio.to_thread(first.receive, DEADLINE_SECONDS) == [b"for the first"]
        assert [b"one", b"thief"] not in arrived
        assert thief.receive(0) is None

    asyncio.run(talk())


def test_a_socket_may_be_closed_by_what_it_received(wire: Wire, path: str, listen: Listen) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router: Server | None = None

        def receive(parts: list[bytes]) -> None:
            assert router is not None
            arrived.append(parts)
            router.close()
            router.close()

        sender = wire.blocking(path, "one")
        for frame in _numbered(10):
            sender.send([frame])
        router = listen(receive)
        await soon(lambda: arrived)
        await asyncio.sleep(0)
        assert len(arrived) == 1

    asyncio.run(talk())


def test_the_socket_file_is_ours_alone(wire: Wire, path: str, listen: Listen) -> None:
    async def bind() -> None:
        before = os.umask(0o022)
        try:
            listen(lambda parts: None)
            assert os.umask(0o022) == 0o022
        finally:
            os.umask(before)
        mode = os.stat(path).st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600

    asyncio.run(bind())


def test_a_path_that_cannot_be_bound_is_named(wire: Wire, tmp_path: Path) -> None:
    async def bind() -> None:
        before = os.umask(0o022)
        try:
            with pytest.raises(PlaceError, match="cannot listen on"):
                Server(str(tmp_path / "absent" / "s.sock"), lambda parts: None)
            assert os.umask(0o022) == 0o022
        finally:
            os.umask(before)

    asyncio.run(bind())


def test_a_blocking_socket_gives_up_in_time(wire: Wire, path: str, listen: Listen) -> None:
    async def wait() -> None:
        listen(lambda parts: None)
        assert wire.blocking(path, "one").receive(0.01) is None

    asyncio.run(wait())


def test_closing_the_wire_ends_its_echo(tmp_path: Path) -> None:
    async def talk() -> None:
        theirs = Wire()
        echoed: list[list[bytes]] = []
        ours, line = connected_pair(str(tmp_path))
        channel = Channel(ours, echoed.append, lambda reason: None, UNSENT_BYTES_MAX)
        echo = threading.Thread(target=theirs.echo, args=(line.detach(), lambda: None))
        echo.start()
        await soon(lambda: channel.send([b"are you there"]) is Sent.SENT)
        await soon(lambda: echoed == [[b"are you there"]])
        theirs.close()
        echo.join(DEADLINE_SECONDS)
        assert not echo.is_alive()
        channel.close()

    asyncio.run(talk())


def test_a_line_takes_one_connection_and_has_no_name(tmp_path: Path) -> None:
    ours, line = connected_pair(str(tmp_path))
    with ours, line:
        assert list(tmp_path.iterdir()) == []
        with socket.socket(socket.AF_UNIX) as stranger, pytest.raises(FileNotFoundError):
            stranger.connect(line.getsockname())


# Answers every pulse twice: once in C, once in Python; then one C call keeps the interpreter lock for ever.
_HOLDER = """
import re, sys, threading
from ipc.sockets import Wire

def answer_in_python(wire, path):
    socket = wire.blocking(path, "python")
    while True:
        socket.send(socket.receive(None))

wire = Wire()
threading.Thread(target=wire.echo, args=(int(sys.argv[2]), lambda: None), daemon=True).start()
threading.Thread(target=answer_in_python, args=(wire, sys.argv[1]), daemon=True).start()
sys.stdin.readline()
re.match("(a+)+$", "a" * 64 + "b")
"""


def test_the_pulse_needs_no_interpreter_lock(tmp_path: Path, path: str, listen: Listen) -> None:
    async def talk(holder: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
        pulses = 0
        pulses_at_last_word = 0

        def echoed(parts: list[bytes]) -> None:
            nonlocal pulses
            pulses += 1
            pulse.send(parts)
            router.send([b"python", b"are you there"])

        def said(parts: list[bytes]) -> None:
            nonlocal pulses_at_last_word
            pulses_at_last_word = pulses

        router = listen(said)
        pulse = Channel(ours, echoed, lambda reason: None, UNSENT_BYTES_MAX)
        await _reachable(router, b"python")
        await soon(lambda: pulse.send([b"are you there"]) is Sent.SENT)
        await soon(lambda: pulses_at_last_word > 10)
        assert holder.stdin is not None
        holder.stdin.write(b"hold\n")
        holder.stdin.flush()
        # Python answered within a few pulses before; now hundreds pass without a word of it.
        await soon(lambda: pulses > pulses_at_last_word + 500)
        pulse.close()
        router.close()

    ours, line = connected_pair(str(tmp_path))
    with line:
        descriptor = line.fileno()
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, path, str(descriptor)],
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
        )
    try:
        asyncio.run(talk(holder, ours))
        assert until(lambda: holder.poll() is None)
    finally:
        holder.kill()
        holder.communicate()
