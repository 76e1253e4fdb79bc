"""The end of a channel: by its peer, noticed once and after all that it sent; or by our own close."""

import asyncio
import os
import socket

import pytest

from ipc.channel import CLOSED_BY_PEER
from ipc.zmtp import OPENING, Sent
from tests.ipc.test_channel import LARGE, Pair, play, turns
from tests.raw_client import sent_as
from tests.waiting import soon


def test_all_that_a_peer_sent_before_its_end_is_received_though_it_did_not_read_all_itself() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.channel.send([b"unread"])
        await turns()
        # Two reads take it.
        pair.peer.send(sent_as([LARGE]))
        pair.peer.close()
        await soon(lambda: pair.ends)
        assert pair.received == [[LARGE]]
        assert pair.ends == [CLOSED_BY_PEER]

    play(act)


def test_the_end_of_a_peer_is_told_once_and_nothing_can_be_sent_to_it() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.peer.send(sent_as([b"last words"]))
        pair.peer.close()
        await soon(lambda: pair.ends)
        assert pair.received == [[b"last words"]]
        assert pair.channel.is_closed
        assert pair.channel.send([b"x"]) is Sent.GONE
        pair.channel.close()
        await turns()
        assert (pair.ends, pair.opened) == ([CLOSED_BY_PEER], 1)

    play(act)


def test_a_peer_that_ends_while_much_waits_for_it_is_noticed() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        pair.peer.close()
        await soon(lambda: pair.ends)
        assert pair.ends == [CLOSED_BY_PEER]

    play(act)


def test_a_peer_that_takes_nothing_any_more_is_noticed_by_the_next_send() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.peer.shutdown(socket.SHUT_RD)
        assert pair.channel.send([b"x"]) is Sent.SENT
        await soon(lambda: pair.ends)
        assert pair.ends == [CLOSED_BY_PEER]

    play(act)


def test_our_own_close_is_told_to_nobody_and_closes_the_descriptor() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        descriptor = pair.channel._peer.fileno()
        pair.channel.close()
        pair.channel.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
        await turns()
        assert pair.ends == []

    play(act)


def test_what_was_sent_just_before_a_close_arrives() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        assert pair.channel.send([b"last"]) is Sent.SENT
        pair.channel.close()
        assert await pair.read_until(sent_as([b"last"])) == OPENING + sent_as([b"last"])

    play(act)


def test_a_close_waits_for_a_slow_reader_as_long_as_it_is_told() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        pair.peer.setblocking(True)
        reading = asyncio.get_running_loop().run_in_executor(None, _read_all, pair.peer)
        pair.channel.close(20.0)
        got = await reading
        assert got.startswith(OPENING)
        assert (len(got) - len(OPENING)) % len(sent_as([LARGE])) == 0

    play(act)


def _read_all(peer: socket.socket) -> bytes:
    got = bytearray()
    while data := peer.recv(1 << 20):
        got += data
    return bytes(got)


def test_a_close_gives_up_on_a_peer_that_never_reads() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        pair.channel.close(0.05)
        assert pair.channel.is_closed

    play(act)
