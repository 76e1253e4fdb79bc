"""One channel and a peer of plain bytes: bounds in both directions, and the order of bytes."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import uvloop

from ipc import channel as bounds
from ipc.channel import Budget, Channel, HandedChannel
from ipc.zmtp import OPENING, Sent
from tests.raw_client import sent_as
from tests.waiting import DEADLINE_SECONDS, soon

_HELLO = OPENING.replace(b"ROUTER", b"DEALER")
# Exceeds what the kernel holds for a peer that does not read.
_UNSENT_MAX = 64 * 1024
LARGE = b"x" * 100_000
# Their answers are many times what may wait.
_REQUESTS = 40


class Pair:
    """A channel, and the socket of its peer."""

    def __init__(self, budget: Budget | None = None, unsent_bytes_max: int = _UNSENT_MAX) -> None:
        ours, self.peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        self.peer.setblocking(False)
        self.received: list[list[bytes]] = []
        self.ends: list[str] = []
        self.opened = 0
        # What is sent for each message that arrives.
        self.answer: list[bytes] | None = None
        self.channel = Channel(
            ours, self.receive, self.ends.append, unsent_bytes_max, opened=self._opened, budget=budget
        )

    def receive(self, parts: list[bytes]) -> None:
        self.received.append(parts)
        if self.answer is not None:
            self.channel.send(self.answer)

    def _opened(self) -> None:
        self.opened += 1

    async def greet(self) -> None:
        self.peer.send(_HELLO)
        await soon(lambda: self.channel.is_open)

    def read(self, most: int = 1 << 20) -> bytes:
        try:
            return self.peer.recv(most)
        except BlockingIOError:
            return b""

    async def fill(self) -> int:
        """Sends until no more is accepted; the number of messages."""
        sent = 0
        while self.channel.send([LARGE]) is Sent.SENT:
            sent += 1
            await asyncio.sleep(0)
        return sent

    async def read_until(self, ending: bytes) -> bytes:
        """Everything up to these last bytes."""
        got = bytearray()

        def is_whole() -> bool:
            got.extend(self.read())
            return got.endswith(ending)

        await soon(is_whole)
        return bytes(got)


def play(act: Callable[[Pair], Awaitable[None]], budget: Budget | None = None) -> None:
    async def scene() -> None:
        pair = Pair(budget)
        try:
            await act(pair)
        finally:
            pair.channel.close()
            pair.peer.close()

    # The loop of the supervisor.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scene())


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_peer_that_does_not_read_its_answers_gets_no_further_request_read() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.answer = [LARGE]
        requests = sent_as([b"again"]) * _REQUESTS
        pair.peer.send(requests)
        await soon(lambda: pair.channel.has_unsent)
        await turns()
        served = len(pair.received)
        assert served < _REQUESTS
        await turns()
        assert len(pair.received) == served
        # Once it reads, it is served on, to the last request; no answer was left out.
        read, wanted = 0, len(OPENING) + _REQUESTS * len(sent_as([LARGE]))
        async with asyncio.timeout(DEADLINE_SECONDS):
            while read < wanted:
                read += len(pair.read())
                await asyncio.sleep(0)
        assert (len(pair.received), read) == (_REQUESTS, wanted)

    play(act)


def test_a_message_is_refused_whole_while_too_much_waits() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        sent = 0
        while pair.channel.send([str(sent).encode(), LARGE]) is Sent.SENT:
            sent += 1
            await asyncio.sleep(0)
        assert pair.channel.send([b"refused"]) is Sent.FULL
        last = sent_as([str(sent - 1).encode(), LARGE])
        got = await pair.read_until(last)
        wanted = b"".join(sent_as([str(number).encode(), LARGE]) for number in range(sent))
        assert got == OPENING + wanted
        await soon(lambda: not pair.channel.has_unsent)
        assert pair.channel.send([b"again"]) is Sent.SENT

    play(act)


def test_a_channel_is_charged_for_what_it_holds_and_gives_all_of_it_back() -> None:
    budget = Budget(1 << 30)

    async def act(pair: Pair) -> None:
        await pair.greet()
        unfinished = sent_as([b"y" * 50_000])
        pair.peer.send(unfinished[:40_000])
        await soon(lambda: budget.used >= 30_000)
        pair.peer.send(unfinished[40_000:])
        await soon(lambda: pair.received)
        await soon(lambda: budget.used == 0)
        await pair.fill()
        # Also what was queued while the kernel took nothing.
        assert budget.used == pair.channel._unsent_bytes > _UNSENT_MAX
        pair.peer.close()
        await soon(lambda: pair.ends)
        assert budget.used == 0

    play(act, budget)


def test_what_a_slow_reader_has_read_is_given_back() -> None:
    budget = Budget(1 << 30)

    async def act(pair: Pair) -> None:
        await pair.greet()
        # Some waits, but less than would stop the channel from reading.
        while not pair.channel._is_writing:
            assert pair.channel.send([b"x" * 10_000]) is Sent.SENT
            await asyncio.sleep(0)
        assert budget.used == pair.channel._unsent_bytes > 0
        await soon(lambda: (pair.read(), not pair.channel.has_unsent)[1])
        assert budget.used == 0

    play(act, budget)


def test_where_the_common_budget_is_spent_nothing_more_is_queued_for_a_slow_reader() -> None:
    budget = Budget(1 << 30)

    async def act(pair: Pair) -> None:
        await pair.greet()
        while not pair.channel._is_writing:
            assert pair.channel.send([b"x" * 10_000]) is Sent.SENT
            await asyncio.sleep(0)
        budget.bytes_max = 0
        budget.used += 1
        assert pair.channel.send([b"x"]) is Sent.FULL
        # One that reads is served even now.
        await soon(lambda: pair.read() or not pair.channel.has_unsent)
        await soon(lambda: (pair.read(), not pair.channel.has_unsent)[1])
        assert pair.channel.send([b"x"]) is Sent.SENT
        budget.used -= 1

    play(act, budget)


def test_where_the_common_budget_is_spent_an_endless_message_ends_its_peer() -> None:
    budget = Budget(0)

    async def act(pair: Pair) -> None:
        await pair.greet()
        pair.peer.setblocking(True)
        whole = sent_as([b"z" * 400_000])
        writing = asyncio.get_running_loop().run_in_executor(None, _send_some, pair.peer, whole[:-1])
        await soon(lambda: pair.ends)
        assert "memory for unfinished messages" in pair.ends[0]
        await writing
        assert budget.used == 0

    play(act, budget)


def _send_some(peer: socket.socket, data: bytes) -> None:
    try:
        peer.sendall(data)
    except OSError:
        return


def test_a_flood_is_read_in_parts_and_in_order() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        count = 3 * bounds._MESSAGES_MAX
        pair.peer.setblocking(True)
        pair.peer.sendall(b"".join(sent_as([str(number).encode()]) for number in range(count)))
        await soon(lambda: len(pair.received) >= count)
        assert [parts[0] for parts in pair.received] == [str(number).encode() for number in range(count)]

    play(act)


def test_drain_takes_what_the_peer_has_sent_by_then() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await turns()
        pair.peer.send(sent_as([b"one"]) + sent_as([b"two"]))
        pair.channel.drain()
        assert pair.received == [[b"one"], [b"two"]]
        pair.channel.close()
        pair.channel.drain()

    play(act)


def test_a_channel_goes_on_in_the_next_image_with_every_byte() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        # Half a message has come, and much has not gone yet.
        message = sent_as([b"to the next image"])
        pair.peer.send(message[:7])
        got = bytearray()

        def read_while(is_due: bool) -> bool:
            got.extend(pair.read(10_000) if is_due else b"")
            return not is_due

        await soon(lambda: read_while(pair.channel._is_full))
        await soon(lambda: pair.channel._connection.unread())
        # The kernel has taken the rest meanwhile.
        await pair.fill()
        unsent_before = pair.channel._unsent_bytes
        assert unsent_before > 0
        handed = pair.channel.hand_over()
        assert isinstance(handed, HandedChannel)
        assert os.get_inheritable(handed.descriptor)
        assert (handed.unread, len(handed.unsent)) == (message[:7], unsent_before)
        assert pair.channel.hand_over() is None
        pair.channel.close()
        received: list[list[bytes]] = []
        taken = Channel.take_over(handed, received.append, pair.ends.append, _UNSENT_MAX)
        assert not os.get_inheritable(handed.descriptor)
        pair.peer.send(message[7:])
        await soon(lambda: read_while(taken.has_unsent))
        await soon(lambda: received)
        assert received == [[b"to the next image"]]
        assert taken.send([b"end"]) is Sent.SENT
        got += await pair.read_until(sent_as([b"end"]))
        size = len(sent_as([LARGE]))
        assert (len(got) - len(OPENING) - len(sent_as([b"end"]))) % size == 0
        assert pair.ends == []
        taken.close()

    play(act)


def test_a_channel_whose_peer_has_not_greeted_is_not_handed_over() -> None:
    async def act(pair: Pair) -> None:
        assert pair.channel.send([b"x"]) is Sent.GONE
        assert pair.channel.hand_over() is None

    play(act)


def test_the_time_of_the_last_movement_is_that_of_the_kernel_taking_bytes() -> None:
    async def act(pair: Pair) -> None:
        await pair.greet()
        await pair.fill()
        await turns()
        stopped_at = pair.channel.moved_at = 1.0
        # A refused or queued message is no movement; a read of the peer is.
        pair.channel.send([b"x"])
        await turns()
        assert pair.channel.moved_at == stopped_at
        await soon(lambda: (pair.read(), pair.channel.moved_at > stopped_at)[1])

    play(act)
