"""The limits of one channel: order and time of unsent bytes, its budget, and what its end gives back."""

import asyncio
import os
from pathlib import Path

from ipc import channel as bounds
from ipc.channel import Budget, connected_pair
from ipc.zmtp import OPENING, Sent
from tests.ipc.test_channel import Pair, play, turns
from tests.raw_client import sent_as
from tests.waiting import soon


def test_bytes_that_wait_after_an_idle_time_count_from_now() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await turns()
        pair.channel.moved_at = 1.0
        pair.channel.send([b"x"])
        assert pair.channel.moved_at > 1.0

    play(act)


def test_a_try_that_moves_no_byte_is_no_movement() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        await turns()
        pair.channel.moved_at = 1.0
        pair.channel._flush()
        assert pair.channel.moved_at == 1.0

    play(act)


def test_a_ping_is_answered_with_its_context() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        body = b"\x04PING\x00\x0acontext"
        pair.peer.send(bytes((4, len(body))) + body)
        pong = b"\x04PONGcontext"
        assert (await pair.read_until(pong)).endswith(bytes((4, len(pong))) + pong)

    play(act)


def test_messages_keep_their_order_when_the_kernel_takes_a_part_of_one() -> None:
    async def scene() -> None:
        pair = Pair(unsent_bytes_max=1 << 22)
        try:
            await pair.greet()
            messages = [[bytes((number,)) * 100_000] for number in range(10)]
            assert {pair.channel.send(parts) for parts in messages} == {Sent.SENT}
            pair.channel.flush()
            assert pair.channel.has_unsent
            wanted = OPENING + b"".join(map(sent_as, messages))
            assert await pair.read_until(sent_as(messages[-1])) == wanted
        finally:
            pair.channel.close()
            pair.peer.close()

    asyncio.run(scene())


def test_where_the_common_budget_is_spent_a_small_unfinished_message_may_still_end() -> None:
    budget = Budget(0)

    async def act(pair: Pair) -> None:
        await pair.greet()
        message = sent_as([b"small"])
        pair.peer.send(message[:4])
        await soon(lambda: budget.is_spent)
        await turns()
        pair.peer.send(message[4:])
        await soon(lambda: pair.received or pair.ends)
        assert (pair.received, pair.ends) == ([[b"small"]], [])

    play(act, budget)


def test_a_budget_is_spent_by_the_first_byte_above_it() -> None:
    assert not Budget(10, used=10).is_spent
    assert Budget(10, used=11).is_spent


def test_a_message_of_too_many_parts_ends_its_peer() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.peer.send(sent_as([b"x"] * 8) + sent_as([b"x"] * 9))
        await soon(lambda: pair.ends)
        assert pair.received == [[b"x"] * 8]
        assert pair.ends == ["it sent a message of more than 8 parts"]

    play(act)


def test_nothing_is_read_while_messages_of_the_last_read_wait() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await turns()
        pair.peer.send(sent_as([b"x"]) * (bounds._MESSAGES_MAX + 1))
        assert pair.channel._read()
        assert len(pair.received) == bounds._MESSAGES_MAX
        assert not pair.channel._is_reading
        await soon(lambda: pair.channel._is_reading)
        assert len(pair.received) == bounds._MESSAGES_MAX + 1

    play(act)


def test_a_drain_ends_though_the_peer_goes_on_sending() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await turns()
        reads_max = bounds.MESSAGE_BOUNDS.bytes_max // bounds._READ_BYTES
        received = 0

        def receive(parts: list[bytes]) -> None:
            nonlocal received
            received += 1
            if received <= 2 * reads_max:
                pair.peer.send(sent_as([b"more"]))

        pair.channel._receive = receive
        pair.peer.send(sent_as([b"first"]))
        pair.channel.drain()
        assert received == reads_max

    play(act)


def test_a_channel_that_has_ended_keeps_no_bytes_and_no_place_in_the_loop() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await turns()
        pair.peer.send(sent_as([b"unfinished"])[:-1])
        await soon(lambda: pair.channel._connection.held_bytes)
        await pair.fill()
        descriptor = pair.channel._peer.fileno()
        pair.channel.close()
        assert not pair.channel._unsent
        assert pair.channel._connection.held_bytes == 0
        # Its number may be that of another file by now, which the loop must not take for it.
        loop = asyncio.get_running_loop()
        assert not loop.remove_writer(descriptor)
        assert not loop.remove_reader(descriptor)

    play(act)


def test_a_connection_for_a_process_is_made_where_an_earlier_one_has_left_its_name(tmp_path: Path) -> None:
    (tmp_path / "line.sock").touch()
    ours, listener = connected_pair(str(tmp_path))
    with ours, listener:
        assert not ours.getblocking()
        assert os.listdir(tmp_path) == []


def test_what_is_added_behind_bytes_that_wait_is_no_movement() -> None:
    async def scene() -> None:
        pair = Pair(unsent_bytes_max=1 << 22)
        try:
            await pair.greet()
            assert {pair.channel.send([b"x" * 100_000]) for _ in range(10)} == {Sent.SENT}
            pair.channel.flush()
            assert pair.channel.has_unsent
            pair.channel.moved_at = 1.0
            assert pair.channel.send([b"more"]) is Sent.SENT
            assert pair.channel.moved_at == 1.0
        finally:
            pair.channel.close()
            pair.peer.close()

    asyncio.run(scene())


def test_a_drain_reads_nothing_while_too_much_waits_for_the_peer() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        pair.peer.send(sent_as([b"first"]))
        await soon(lambda: not pair.channel._is_reading)
        held = pair.channel._connection.held_bytes
        pair.peer.send(sent_as([b"second"]))
        pair.channel.drain()
        assert pair.channel._connection.held_bytes == held

    play(act)
