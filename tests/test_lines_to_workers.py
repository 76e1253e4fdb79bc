"""Lines to workers: what cannot be sent is an event, and what is said keeps its place among what is done."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ipc import messages as wire
from ipc.codec import FRAME_BYTES_MAX, encode
from ipc.zmtp import OPENING
from supervisor.clock import monotonic
from supervisor.core import events
from supervisor.core.effects import AssignTurn, KillWorker, SteerTurn
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Worker, WorkerState
from supervisor.core.turns import OFFERED_CHARACTERS_MAX
from supervisor.workers.assignment import HISTORY_BYTES_MAX, SAY_BYTES_MAX, TRIED_BYTES_MAX
from supervisor.workers.link import (
    IGNORED_FRAMES_MAX,
    UNACKNOWLEDGED_BYTES_MAX,
    UNACKNOWLEDGED_FRAMES_MAX,
    UNSENT_BYTES_MAX,
    LineFault,
    Links,
)
from tests.played_worker import WHO, Stage, build_assign
from tests.raw_client import sent_as
from tests.waiting import soon
from worker import outbox


async def reasons(folder: Path, connected: bool, frames: int) -> list[str]:
    """What is reported when so many frames go to a worker that is absent or never reads."""
    with Stage(folder) as stage:
        if connected:
            stage.play().send([b"", b""])
            await soon(lambda: stage.router.stale_frames == 1)
        for number in range(frames):
            stage.router.steer(SteerTurn(WHO, "s/1", 1, f"m_{number}", "x" * 1000))
        return stage.reasons()


@pytest.mark.parametrize(
    ("connected", "frames", "reason"),
    [
        (False, 1, "it is not connected"),
        (True, 2 * UNSENT_BYTES_MAX // 1000, "it does not read its frames"),
    ],
)
def test_b6_a_worker_that_cannot_be_reached_is_an_event(
    tmp_path: Path, connected: bool, frames: int, reason: str
) -> None:
    assert set(asyncio.run(reasons(tmp_path, connected, frames))) == {reason}


def test_b6_a_worker_that_reads_is_reached(tmp_path: Path) -> None:
    assert asyncio.run(reasons(tmp_path, True, 10)) == []


async def heard(folder: Path, *messages: wire.FromWorker) -> list[events.Event]:
    """What the engine is told when a worker says all this before anything of it is decided."""
    with Stage(folder) as stage:
        stage.posts.run_turn("s")
        worker = stage.play()
        for number, message in enumerate(messages, start=1):
            worker.send([number.to_bytes(8), encode(message)])
        said = "".join(each.text for each in messages if isinstance(each, wire.Delta))
        await soon(lambda: stage.router.undecided_text(WHO) == said)
        return stage.posts.in_order()


def test_words_keep_their_place_before_and_after_a_tool(tmp_path: Path) -> None:
    tool = wire.ToolStarted("s/1", 1, "c1", "shell", "ls", "{}", "pure")
    spoken = asyncio.run(
        heard(
            tmp_path,
            wire.Delta("s", "s/1", 1, 0, "I look "),
            wire.Delta("s", "s/1", 1, 7, "around. "),
            tool,
            wire.Delta("s", "s/1", 1, 15, "There it is."),
        )
    )
    said = [
        event.text if isinstance(event, events.TextStreamed) else type(event).__name__ for event in spoken
    ]
    assert said == ["I look around. ", "ToolStarted", "There it is."]


@pytest.mark.parametrize("has_setup", [True, False])
def test_a_worker_that_waits_for_its_setup_gets_that_of_its_agent(tmp_path: Path, has_setup: bool) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            found = Worker(WHO.seat, WHO.incarnation, WorkerState.STARTING, agent="coder")
            stage.posts.state.workers[WHO.seat] = found
            worker = stage.play()
            hello = wire.Hello(WHO.epoch, WHO.seat, WHO.incarnation, has_setup)
            worker.send([(1).to_bytes(8), encode(hello)])
            await soon(lambda: stage.posts.events)
            stage.router.all_taken()
            stage.router.acknowledge()
            setup = encode(wire.Setup(wire.AgentSpec("coder", "builtin")))
            await soon(lambda: [encode(wire.Ack(1))] in stage.received)
            assert ([setup] in stage.received) == has_setup

    asyncio.run(act())


def many(first: int, count: int, body: bytes) -> bytes:
    return b"".join(sent_as([number.to_bytes(8), body]) for number in range(first, first + count))


BEAT = encode(wire.Beat())
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
ENDLESS = b"\x01\x01x" * 1000


@pytest.mark.parametrize(
    ("line", "sent", "reason"),
    [
        ("frames", b"GET / HTTP/1.1\r\n", "it does not use ZeroMQ"),
        ("frames", OPENING[:64] + READY + ENDLESS, "it sent a message of more than 8 parts"),
        (
            "frames",
            OPENING[:64] + READY + b"\x02" + (1 << 40).to_bytes(8),
            "it sent a message of more than 8389632 bytes",
        ),
        (
            "frames",
            OPENING[:64] + READY + many(1, UNACKNOWLEDGED_FRAMES_MAX + 1, BEAT),
            "it did not wait for its frames to be acknowledged",
        ),
        (
            "frames",
            OPENING[:64] + READY + many(1, 1, BEAT) * (IGNORED_FRAMES_MAX + 2),
            f"it sent more than {IGNORED_FRAMES_MAX} frames out of turn",
        ),
        ("pulse", OPENING[:64] + READY + sent_as([b""]), "it answered a pulse that was not sent"),
        ("pulse", OPENING[:64] + READY + ENDLESS, "it sent a message of more than 1 parts"),
        ("pulse", OPENING[:64] + READY + sent_as([b"x" * 17]), "it sent a message of more than 16 bytes"),
    ],
)
def test_h5_a_worker_that_leaves_the_protocol_is_ended_by_name(
    tmp_path: Path, line: str, sent: bytes, reason: str
) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            listener = stage.frames if line == "frames" else stage.pulse
            with listener.accept()[0] as connected:
                connected.setblocking(False)
                await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(connected, sent), 30)
                await soon(lambda: stage.reasons())
                assert stage.reasons() == [reason]
                await soon(lambda: is_hung_up(connected))

    asyncio.run(act())


def is_hung_up(connected: socket.socket) -> bool:
    """Whether nothing is kept of the worker."""
    try:
        while connected.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_what_a_worker_is_sent_at_once_is_within_the_bounds() -> None:
    """Of an Assign, and of the messages it is offered with it: a character has four bytes at most."""
    assert SAY_BYTES_MAX + TRIED_BYTES_MAX + HISTORY_BYTES_MAX < FRAME_BYTES_MAX
    assert FRAME_BYTES_MAX + 4 * OFFERED_CHARACTERS_MAX <= UNSENT_BYTES_MAX


def test_what_an_honest_worker_may_have_on_the_way_is_within_the_bounds() -> None:
    assert outbox.UNACKNOWLEDGED_FRAMES_MAX < UNACKNOWLEDGED_FRAMES_MAX
    assert outbox.UNACKNOWLEDGED_BYTES_MAX + FRAME_BYTES_MAX <= UNACKNOWLEDGED_BYTES_MAX


def test_h5_a_worker_that_waits_for_its_acknowledgements_may_say_any_number_of_frames(tmp_path: Path) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            worker = stage.play()
            for first in range(1, 5001, 500):
                for number in range(first, first + 500):
                    worker.send([number.to_bytes(8), BEAT])
                await soon(lambda last=first + 499: len(stage.posts.events) == last)  # type: ignore[misc]
                stage.router.all_taken()
                stage.router.acknowledge()
            assert stage.reasons() == []
            await soon(lambda: [encode(wire.Ack(5000))] in stage.received)

    asyncio.run(act())


def test_h5_bytes_that_were_acknowledged_count_no_more(tmp_path: Path) -> None:
    """Frames of a megabyte, each acknowledged: together they are more than may be on the way at once."""
    content = b"x" * 1_000_000

    async def act() -> None:
        with Stage(tmp_path) as stage:
            stage.play().send([b"", b""])
            await soon(lambda: stage.router.stale_frames == 1)
            line = stage.router._lines[WHO.incarnation]
            for number in range(1, 2 * UNACKNOWLEDGED_BYTES_MAX // len(content)):
                assert line.take([number.to_bytes(8), content]) is content
                stage.router.all_taken()
                stage.router.acknowledge()
            assert line.acknowledged == line.received
            assert line.take([b"too", b"many", b"parts"]) is None

    asyncio.run(act())


@pytest.mark.parametrize(
    ("content", "most"),
    [
        (b"", UNACKNOWLEDGED_FRAMES_MAX),
        (b"x" * (1024 * 1024), UNACKNOWLEDGED_BYTES_MAX // (1024 * 1024)),
    ],
)
def test_h5_frames_and_bytes_on_the_way_are_bounded(tmp_path: Path, content: bytes, most: int) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            stage.play()
            line = stage.router._lines[WHO.incarnation]
            for number in range(1, most + 1):
                assert line.take([number.to_bytes(8), content]) is content
            with pytest.raises(LineFault, match="did not wait"):
                line.take([(most + 1).to_bytes(8), content])

    asyncio.run(act())


def test_only_frames_in_the_batch_are_acknowledged(tmp_path: Path) -> None:
    """One that comes while the batch is being committed is safe with the next one."""

    async def act() -> None:
        with Stage(tmp_path) as stage:
            worker = stage.play()
            worker.send([(1).to_bytes(8), BEAT])
            await soon(lambda: len(stage.posts.events) == 1)
            stage.router.acknowledge()
            stage.router.all_taken()
            worker.send([(2).to_bytes(8), BEAT])
            await soon(lambda: len(stage.posts.events) == 2)
            stage.router.acknowledge()
            await soon(lambda: stage.received)
            assert stage.received == [[encode(wire.Ack(1))]]
            line = stage.router._lines[WHO.incarnation]
            assert line._received_bytes - line._acknowledged_bytes == len(BEAT), "nor are its bytes"
            stage.router.all_taken()
            stage.router.acknowledge()
            stage.router.acknowledge()
            await soon(lambda: len(stage.received) == 2)
            assert stage.received[1] == [encode(wire.Ack(2))]

    asyncio.run(act())


def test_an_acknowledgement_that_found_no_room_is_given_after_the_next_commit(tmp_path: Path) -> None:
    """Its worker would wait for it with the tool that it may not begin before."""

    async def act() -> None:
        with Stage(tmp_path) as stage:
            worker = stage.play()
            worker.send([(1).to_bytes(8), BEAT])
            await soon(lambda: len(stage.posts.events) == 1)
            offered = 0
            while not stage.reasons():
                offered += 1
                stage.router.steer(SteerTurn(WHO, "s/1", 1, "m", "x" * 1_000_000))
            stage.commit()
            await soon(lambda: len(stage.received) == offered - 1)
            stage.commit()
            await soon(lambda: len(stage.received) == offered)
            assert stage.received[-1] == [encode(wire.Ack(1))]

    asyncio.run(act())


def test_the_bounds_of_a_worker_that_violates_the_protocol_are_near_those_of_an_honest_one() -> None:
    """They are what it may take of the supervisor's memory."""
    assert UNACKNOWLEDGED_FRAMES_MAX <= outbox.UNACKNOWLEDGED_FRAMES_MAX + 64
    assert UNACKNOWLEDGED_BYTES_MAX <= outbox.UNACKNOWLEDGED_BYTES_MAX + FRAME_BYTES_MAX
    assert outbox.UNACKNOWLEDGED_FRAMES_MAX < IGNORED_FRAMES_MAX <= 2 * UNACKNOWLEDGED_FRAMES_MAX
    assert UNSENT_BYTES_MAX <= 2 * FRAME_BYTES_MAX


def test_a_frame_over_a_gap_does_not_count_until_the_missing_one_has_come(tmp_path: Path) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            line = stage.router._lines[WHO.incarnation]
            assert line.take([(1).to_bytes(8), b"one"]) == b"one"
            assert line.take([(3).to_bytes(8), b"three"]) is None
            assert line.take([(1).to_bytes(8), b"one"]) is None
            assert line.received == 1
            assert line.take([(2).to_bytes(8), b"two"]) == b"two"

    asyncio.run(act())


def test_h5_frames_that_are_durable_and_not_acknowledged_are_on_the_way(tmp_path: Path) -> None:
    """The worker that reads no acknowledgement keeps them, and must not send more."""

    async def act() -> None:
        with Stage(tmp_path) as stage:
            line = stage.router._lines[WHO.incarnation]
            for number in range(1, UNACKNOWLEDGED_FRAMES_MAX + 1):
                line.take([number.to_bytes(8), b""])
                line.all_taken()
            with pytest.raises(LineFault, match="did not wait"):
                line.take([(UNACKNOWLEDGED_FRAMES_MAX + 1).to_bytes(8), b""])

    asyncio.run(act())


def test_a_pulse_that_could_not_be_sent_needs_no_answer(tmp_path: Path) -> None:
    async def act() -> None:
        with Stage(tmp_path) as stage:
            line = stage.router._lines[WHO.incarnation]
            assert not line.ask_pulse(b""), "nobody has connected"
            with pytest.raises(LineFault, match="a pulse that was not sent"):
                line.pulse_answered()

    asyncio.run(act())


def with_grace(effect: AssignTurn) -> wire.Assign:
    agent = wire.AgentSpec("default", "builtin", {"cancel_grace_seconds": 2.5})
    return msgspec.structs.replace(build_assign(effect), agent=agent)


def test_an_assign_notes_when_the_turn_began_and_the_grace_of_its_agent() -> None:
    links = Links(with_grace, lambda agent: wire.Setup(wire.AgentSpec(agent, "builtin")))
    began = monotonic()
    links.assign(AssignTurn(WHO, "s", "s/1", 1, "default", ()))
    assert links.graces == {WHO.incarnation: 2.5}
    assert began <= links.assigned_at <= monotonic()


def test_a_worker_that_cannot_be_told_is_not_waited_for(tmp_path: Path) -> None:
    """Neither one without a link, nor one that is not connected, nor one that reads nothing."""

    async def act() -> None:
        with Stage(tmp_path) as stage:
            links, kill = (
                stage.router._links,
                KillWorker(WHO.seat, WHO.incarnation, Reason(EndReason.INTERRUPT), "s/1"),
            )
            assert not links.cancel(replace(kill, incarnation=WHO.incarnation + 1))
            assert not links.cancel(kill), "it is not connected"
            stage.play().send([b"", b""])
            await soon(lambda: stage.router.stale_frames == 1)
            assert links.cancel(kill)
            while not stage.reasons():
                stage.router.steer(SteerTurn(WHO, "s/1", 1, "m", "x" * 1_000_000))
            for _ in range(100_000):
                if not links.cancel(kill):
                    break
            else:
                pytest.fail("a full channel takes any number of frames")

    asyncio.run(act())
