"""The outbox of a worker: what is acknowledged makes room again, by frames and by bytes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ipc import zmtp
from ipc.codec import Decoder
from ipc.errors import WireError
from ipc.messages import Beat, Delta, FromWorker, Steered
from worker import outbox as bounds
from worker.outbox import Outbox

_decoder: Decoder[FromWorker] = Decoder(FromWorker)


class Sent:
    """An outbox, and the frames that it gave to its socket."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.frames: list[FromWorker] = []
        self.outbox = Outbox(self._take, self._failed)

    def _take(self, parts: list[bytes]) -> zmtp.Sent:
        number, content = parts
        self.numbers.append(int.from_bytes(number, "big"))
        self.frames.append(_decoder.decode(content))
        return zmtp.Sent.SENT

    def _failed(self, outcome: zmtp.Sent) -> None:
        raise AssertionError(outcome)


def play(act: Callable[[Sent], Awaitable[None]]) -> None:
    async def scene() -> None:
        async with asyncio.timeout(20):
            await act(Sent())

    asyncio.run(scene())


# So many of the frame below fill the outbox.
_FILL = 8


def large() -> Delta:
    return Delta("s", "s/1", 1, 0, "x" * (bounds.UNACKNOWLEDGED_BYTES_MAX // _FILL))


async def is_waiting(task: "asyncio.Task[object]") -> bool:
    """Whether a task still waits after the loop has run all that was ready."""
    for _ in range(10):
        await asyncio.sleep(0)
    return not task.done()


def test_acknowledged_bytes_make_room_for_others() -> None:
    async def act(sent: Sent) -> None:
        for _ in range(20):
            for _ in range(_FILL):
                assert sent.outbox.has_room
                sent.outbox.post(large())
            assert not sent.outbox.has_room
            waiting = asyncio.create_task(sent.outbox.send(Beat()))
            assert await is_waiting(waiting)
            sent.outbox.acknowledge(sent.numbers[-1])
            assert await waiting == sent.numbers[-1]
            sent.outbox.acknowledge(sent.numbers[-1])

    play(act)


def test_a_part_that_is_acknowledged_makes_room_for_as_much() -> None:
    async def act(sent: Sent) -> None:
        for _ in range(_FILL):
            sent.outbox.post(large())
        sent.outbox.acknowledge(2)
        for _ in range(2):
            assert sent.outbox.has_room
            sent.outbox.post(large())
        assert not sent.outbox.has_room

    play(act)


def test_a_transient_frame_is_left_out_where_there_is_no_room_and_takes_no_number() -> None:
    async def act(sent: Sent) -> None:
        for _ in range(_FILL):
            sent.outbox.post(large())
        sent.outbox.post_fleeting(Beat())
        assert sent.numbers[-1] == _FILL
        sent.outbox.acknowledge(1)
        sent.outbox.post_fleeting(Beat())
        assert sent.numbers[-1] == _FILL + 1

    play(act)


def test_a_sender_waits_for_its_own_frame_and_for_no_later_one() -> None:
    async def act(sent: Sent) -> None:
        for _ in range(3):
            sent.outbox.post(Beat())
        second = asyncio.create_task(sent.outbox.acknowledged(2))
        assert await is_waiting(second)
        sent.outbox.acknowledge(1)
        assert await is_waiting(second)
        sent.outbox.acknowledge(2)
        await second

    play(act)


def test_what_was_not_acknowledged_is_sent_again_in_order_under_the_same_numbers() -> None:
    async def act(sent: Sent) -> None:
        first, second, third = (Steered("s/1", 1, f"m_{number}") for number in range(3))
        for frame in (first, second, third):
            sent.outbox.post(frame)
        sent.outbox.resend(1)
        assert sent.numbers == [1, 2, 3, 2, 3]
        assert sent.frames == [first, second, third, second, third]
        # The first one is acknowledged by this, and the numbers go on.
        sent.outbox.resend(1)
        assert sent.numbers == [1, 2, 3, 2, 3, 2, 3]
        assert sent.outbox.post(Beat()) == 4

    play(act)


def test_a_frame_that_no_wire_carries_takes_no_number_and_no_room() -> None:
    async def act(sent: Sent) -> None:
        with pytest.raises(WireError):
            sent.outbox.post(Delta("s", "s/1", 1, 0, "x" * (2 * bounds.UNACKNOWLEDGED_BYTES_MAX)))
        assert sent.outbox.post(Beat()) == 1
        assert sent.numbers == [1]
        sent.outbox.acknowledge(1)
        assert sent.outbox.has_room

    play(act)


def test_a_frame_that_cannot_be_sent_is_told_and_kept() -> None:
    async def scene() -> None:
        failures: list[zmtp.Sent] = []
        outbox = Outbox(lambda parts: zmtp.Sent.FULL, failures.append)
        outbox.post(Beat())
        assert failures == [zmtp.Sent.FULL]

    asyncio.run(scene())
