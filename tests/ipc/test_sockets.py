"""Sockets: what was sent arrives, what cannot be sent is said, and a busy interpreter still has a pulse."""

import asyncio
import os
import select
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from ipc.codec import FRAME_BYTES_MAX
from ipc.errors import PlaceError
from ipc.sockets import SEND_FRAMES_MAX, LoopSocket, Sent, Wire
from tests.waiting import DEADLINE_SECONDS, soon, until


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s.sock")


def _numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


async def _reachable(router: LoopSocket, peer: bytes) -> None:
    await soon(lambda: router.send([peer, b"are you there"]) is Sent.SENT)


def test_frames_carry_the_identity_both_ways(wire: Wire, path: str) -> None:
    async def talk() -> None:
        at_router: list[list[bytes]] = []
        at_dealer: list[list[bytes]] = []
        router = wire.router(path, at_router.append)
        dealer = wire.dealer(path, "one", at_dealer.append)
        assert dealer.send([b"7", b"question"]) is Sent.SENT
        await soon(lambda: at_router)
        assert router.send([b"one", b"7", b"answer"]) is Sent.SENT
        await soon(lambda: at_dealer)
        assert (at_router, at_dealer) == ([[b"one", b"7", b"question"]], [[b"7", b"answer"]])

    asyncio.run(talk())


def test_sends_never_swallow_an_arrival(wire: Wire, path: str) -> None:
    """Every arrival is answered by a send at once, which is when ZeroMQ forgets to wake the loop."""
    rounds = 3000

    async def talk() -> None:
        returned: list[bytes] = []
        router: LoopSocket | None = None

        def answer(parts: list[bytes]) -> None:
            assert router is not None
            assert router.send(parts) is Sent.SENT

        router = wire.router(path, answer)
        dealer = wire.dealer(path, "one", lambda parts: returned.append(parts[0]))
        for number in range(rounds):
            assert dealer.send([str(number).encode()]) is Sent.SENT
            if number % 7 == 0:
                await asyncio.sleep(0)
        await soon(lambda: len(returned) == rounds)
        assert returned == _numbered(rounds)

    asyncio.run(talk())


def test_an_arrival_whose_wake_was_swallowed_is_read_after_a_send(wire: Wire, path: str) -> None:
    """The descriptor has fallen silent though a frame is there, and no further frame comes."""

    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = wire.router(path, arrived.append)
        peer = wire.blocking(path, "one")
        await _reachable(router, b"one")
        # Only a reader that has found nothing is woken by the next frame.
        await soon(lambda: not router._drain_wanted)
        peer.send([b"x"])
        descriptor = router._descriptor
        assert select.select([descriptor], [], [], DEADLINE_SECONDS)[0]
        # What a send does now and then by itself: it takes the wake, and leaves the frame.
        until(lambda: int(router._socket.get(zmq.EVENTS)) & zmq.POLLIN)
        assert not select.select([descriptor], [], [], 0)[0]
        assert arrived == []
        assert router.send([b"one", b"y"]) is Sent.SENT
        await soon(lambda: arrived)

    asyncio.run(talk())


def test_frames_that_came_before_the_loop_looked_are_read(wire: Wire, path: str) -> None:
    async def talk() -> None:
        first: list[list[bytes]] = []
        router = wire.router(path, first.append)
        sender = wire.blocking(path, "one")
        for frame in _numbered(1500):
            sender.send([frame])
        await soon(lambda: len(first) == 1500)
        assert [parts[1] for parts in first] == _numbered(1500)
        router.close()

    asyncio.run(talk())


def test_a_flood_leaves_the_loop_its_turn(wire: Wire, path: str) -> None:
    async def talk() -> None:
        arrived_at_turn: list[int] = []
        turns = 0
        router = wire.router(path, lambda parts: arrived_at_turn.append(turns))
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


def test_an_unknown_peer_is_gone(wire: Wire, path: str) -> None:
    async def talk() -> None:
        router = wire.router(path, lambda parts: None)
        assert router.send([b"nobody", b"x"]) is Sent.GONE

    asyncio.run(talk())


def test_a_peer_that_left_is_gone(wire: Wire, path: str) -> None:
    async def talk() -> None:
        router = wire.router(path, lambda parts: None)
        peer = wire.dealer(path, "one", lambda parts: None)
        await _reachable(router, b"one")
        peer.close()
        await soon(lambda: router.send([b"one", b"x"]) is Sent.GONE)

    asyncio.run(talk())


def test_a_slow_peer_is_full_and_loses_nothing(wire: Wire, path: str) -> None:
    async def talk() -> None:
        router = wire.router(path, lambda parts: None)
        slow = wire.blocking(path, "slow")
        quick: list[list[bytes]] = []
        wire.dealer(path, "quick", quick.append)
        await _reachable(router, b"slow")
        await _reachable(router, b"quick")
        assert slow.receive(DEADLINE_SECONDS) == [b"are you there"]
        sent = 0
        # Large frames fill the kernel's buffers too, so that the mark is reached soon after twice its count.
        padding = b"." * 1000
        while router.send([b"slow", str(sent).encode(), padding]) is Sent.SENT:
            sent += 1
            assert sent < 10 * SEND_FRAMES_MAX
        # The greeting may still count as one of them.
        assert sent + 1 >= SEND_FRAMES_MAX
        assert router.send([b"quick", b"others feel nothing"]) is Sent.SENT
        await soon(lambda: [b"others feel nothing"] in quick)
        for number in range(sent):
            received = slow.receive(DEADLINE_SECONDS)
            assert received is not None
            assert received[0] == str(number).encode()
        await soon(lambda: router.send([b"slow", b"again"]) is Sent.SENT)
        assert slow.receive(DEADLINE_SECONDS) == [b"again"]

    asyncio.run(talk())


def test_an_oversize_frame_costs_its_sender_only(wire: Wire, path: str) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = wire.router(path, arrived.append)
        rude = wire.blocking(path, "rude")
        rude.send([b"x" * (FRAME_BYTES_MAX + 2048)])
        polite = wire.dealer(path, "polite", lambda parts: None)
        assert polite.send([b"y" * FRAME_BYTES_MAX]) is Sent.SENT
        await soon(lambda: arrived)
        assert [parts[0] for parts in arrived] == [b"polite"]
        router.close()

    asyncio.run(talk())


def test_a_second_peer_of_the_same_name_gets_nothing(wire: Wire, path: str) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = wire.router(path, arrived.append)
        first = wire.blocking(path, "one")
        first.send([b"first"])
        await soon(lambda: arrived)
        thief = wire.blocking(path, "one")
        thief.send([b"thief"])
        wire.dealer(path, "two", lambda parts: None).send([b"later"])
        await soon(lambda: [b"two", b"later"] in arrived)
        assert router.send([b"one", b"for the first"]) is Sent.SENT
        assert first.receive(DEADLINE_SECONDS) == [b"for the first"]
        assert [b"one", b"thief"] not in arrived
        assert thief.receive(0) is None

    asyncio.run(talk())


def test_with_handover_the_latest_peer_of_a_name_is_served(wire: Wire, path: str) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router = wire.router(path, arrived.append, handover=True)
        wire.blocking(path, "one").send([b"first"])
        await soon(lambda: [b"one", b"first"] in arrived)
        second = wire.blocking(path, "one")
        second.send([b"second"])
        await soon(lambda: [b"one", b"second"] in arrived)
        assert router.send([b"one", b"x"]) is Sent.SENT
        assert second.receive(DEADLINE_SECONDS) == [b"x"]

    asyncio.run(talk())


def test_a_socket_may_be_closed_by_what_it_received(wire: Wire, path: str) -> None:
    async def talk() -> None:
        arrived: list[list[bytes]] = []
        router: LoopSocket | None = None

        def receive(parts: list[bytes]) -> None:
            assert router is not None
            arrived.append(parts)
            router.close()
            router.close()

        sender = wire.blocking(path, "one")
        for frame in _numbered(10):
            sender.send([frame])
        router = wire.router(path, receive)
        await soon(lambda: arrived)
        await asyncio.sleep(0)
        assert len(arrived) == 1

    asyncio.run(talk())


def test_the_socket_file_is_ours_alone(wire: Wire, path: str) -> None:
    async def bind() -> None:
        before = os.umask(0o022)
        try:
            wire.router(path, lambda parts: None)
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
                wire.router(str(tmp_path / "absent" / "s.sock"), lambda parts: None)
            assert os.umask(0o022) == 0o022
        finally:
            os.umask(before)

    asyncio.run(bind())


def test_a_blocking_socket_gives_up_in_time(wire: Wire, path: str) -> None:
    async def wait() -> None:
        wire.router(path, lambda parts: None)
        assert wire.blocking(path, "one").receive(0.01) is None

    asyncio.run(wait())


def test_closing_the_wire_ends_its_echo(path: str) -> None:
    async def talk() -> None:
        ours, theirs = Wire(), Wire()
        echoed: list[list[bytes]] = []
        router = ours.router(path, echoed.append)
        echo = threading.Thread(target=theirs.echo, args=(path, "pulse"))
        echo.start()
        await _reachable(router, b"pulse")
        await soon(lambda: echoed == [[b"pulse", b"are you there"]])
        theirs.close()
        echo.join(DEADLINE_SECONDS)
        assert not echo.is_alive()
        ours.close()

    asyncio.run(talk())


# Answers every pulse twice: once in C, once in Python; then one C call keeps the interpreter lock for ever.
_HOLDER = """
import re, sys, threading
from ipc.sockets import Wire

def answer_in_python(wire, path):
    socket = wire.blocking(path, "python")
    while True:
        socket.send(socket.receive(None))

wire = Wire()
threading.Thread(target=wire.echo, args=(sys.argv[1], "pulse"), daemon=True).start()
threading.Thread(target=answer_in_python, args=(wire, sys.argv[1]), daemon=True).start()
sys.stdin.readline()
re.match("(a+)+$", "a" * 64 + "b")
"""


def test_the_pulse_needs_no_interpreter_lock(wire: Wire, path: str) -> None:
    async def talk(holder: "subprocess.Popen[bytes]") -> None:
        pulses = 0
        pulses_at_last_word = 0

        def receive(parts: list[bytes]) -> None:
            nonlocal pulses, pulses_at_last_word
            if parts[0] == b"pulse":
                pulses += 1
                router.send(parts)
            else:
                pulses_at_last_word = pulses
            router.send([b"python", b"are you there"])

        router = wire.router(path, receive)
        await _reachable(router, b"python")
        await _reachable(router, b"pulse")
        await soon(lambda: pulses_at_last_word > 10)
        assert holder.stdin is not None
        holder.stdin.write(b"hold\n")
        holder.stdin.flush()
        # Python answered within a few pulses before; now hundreds pass without a word of it.
        await soon(lambda: pulses > pulses_at_last_word + 500)

    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, path], stdin=subprocess.PIPE)
    try:
        asyncio.run(talk(holder))
        assert until(lambda: holder.poll() is None)
    finally:
        holder.kill()
        holder.communicate()
