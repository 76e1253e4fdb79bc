"""The router beyond the first frame: a second worker, attempts that are over, earlier pulses, late faults."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ipc import messages as wire
from ipc.channel import connected_pair
from ipc.sockets import LoopSocket
from ipc.zmtp import OPENING
from supervisor.core import events
from supervisor.workers import router
from supervisor.workers.agent_faults import AgentFaults
from tests.played_worker import WHO, Image, Stage, numbered
from tests.raw_client import sent_as
from tests.test_lines_to_workers import READY
from tests.waiting import soon

OTHER = 8


def on_stage(folder: Path, act: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        with Stage(folder) as stage:
            await act(stage)

    asyncio.run(play())


async def turns_of_the_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def connected(stage: Stage) -> tuple[LoopSocket, LoopSocket]:
    """Both channels of the worker, open; the pulse that said so is answered."""
    worker, pulse = stage.play(), stage.play_pulse()
    await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
    await soon(lambda: stage.pulses)
    pulse.send(stage.pulses.pop())
    await soon(lambda: stage.posts.events)
    stage.posts.events.clear()
    return worker, pulse


def test_text_of_another_turn_or_attempt_is_not_put_to_that_of_the_running_one(tmp_path: Path) -> None:
    """The fence is passed once for consecutive deltas of one attempt only."""

    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        worker = stage.play()
        deltas = [
            wire.Delta("s", "s/1", 1, 0, "one "),
            wire.Delta("s", "s/1", 2, 4, "of no attempt "),
            wire.Delta("s", "s/1", 1, 4, "two "),
            wire.Delta("s", "s/2", 1, 0, "of no turn "),
            wire.Delta("s", "s/1", 1, 8, "three"),
        ]
        for number, each in enumerate(deltas, start=1):
            worker.send(numbered(number, each))
        await soon(lambda: len(stage.listeners.shown) + stage.router.stale_frames == len(deltas))
        assert stage.router.stale_frames == 2
        assert stage.router.undecided_text(WHO) == "one two three"

    on_stage(tmp_path, act)


def test_nothing_is_kept_of_text_that_is_decided(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        stage.play().send(numbered(1, wire.Delta("s", "s/1", 1, 0, "one")))
        await soon(lambda: stage.posts.held)
        stage.posts.held[0][1]()
        assert stage.router._undecided == {}

    on_stage(tmp_path, act)


def test_what_follows_all_frames_waits_for_the_second_worker_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_DRAIN_SECONDS", 3600.0)

    async def act(stage: Stage) -> None:
        _, pulse = await connected(stage)
        (frames, theirs), (asked, answering) = (connected_pair(str(tmp_path)) for _ in range(2))
        stage.router.connected(1, OTHER, frames, asked)
        stage.wire.line(theirs.detach(), lambda parts: None)
        pulses: list[list[bytes]] = []
        other = stage.wire.line(answering.detach(), pulses.append)
        await soon(lambda: stage.router._lines[OTHER].ask_pulse(b""))
        calls: list[str] = []
        stage.router.after_frames(lambda: calls.append("called"))
        await soon(lambda: stage.pulses and len(pulses) == 2)
        pulse.send(stage.pulses.pop())
        await soon(lambda: stage.posts.events)
        await turns_of_the_loop()
        assert not calls
        for answer in pulses:
            other.send(answer)
        await soon(lambda: calls)

    on_stage(tmp_path, act)


def test_the_answer_to_an_earlier_pulse_does_not_say_that_all_frames_have_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_DRAIN_SECONDS", 3600.0)

    async def act(stage: Stage) -> None:
        _, pulse = await connected(stage)
        stage.router.take_pulse()
        calls: list[str] = []
        stage.router.after_frames(lambda: calls.append("called"))
        await soon(lambda: len(stage.pulses) == 2)
        pulse.send(stage.pulses[0])
        await soon(lambda: stage.posts.events)
        await turns_of_the_loop()
        assert not calls
        pulse.send(stage.pulses[1])
        await soon(lambda: calls)

    on_stage(tmp_path, act)


def test_frames_that_were_sent_before_the_last_pulse_are_read_before_what_follows_them(
    tmp_path: Path,
) -> None:
    """Both have arrived, and the loop comes to the pulse first."""

    async def act(stage: Stage) -> None:
        line = stage.router._lines[WHO.incarnation]
        with stage.frames.accept()[0] as frames, stage.pulse.accept()[0] as pulse:
            for each in (frames, pulse):
                each.sendall(OPENING[:64] + READY)
            await soon(lambda: line._frames.is_open and line._pulse.is_open)
            stage.router.after_frames(lambda: None)
            frames.sendall(sent_as(numbered(1, wire.Beat())))
            pulse.sendall(sent_as([b"last"]))
            line._pulse.drain()
            assert events.WorkerAlive(WHO, "loop") in stage.posts.events

    on_stage(tmp_path, act)


@pytest.mark.parametrize(
    "ended", [wire.Failed("s/1", 1, "it broke", "mend it"), wire.Finished("s/1", 1, "well")]
)
@pytest.mark.parametrize("has_grace", [True, False])
def test_the_end_of_an_attempt_is_told_where_its_agent_has_a_grace(
    tmp_path: Path, ended: wire.FromWorker, has_grace: bool
) -> None:
    async def act(stage: Stage) -> None:
        told: list[int] = []
        stage.router._attempt_ended = told.append
        if has_grace:
            stage.router.graces[WHO.incarnation] = 2.5
        worker = stage.play()
        worker.send(numbered(1, wire.Beat()))
        worker.send(numbered(2, ended))
        await soon(lambda: len(stage.posts.events) == 2)
        assert told == [WHO.incarnation] * has_grace

    on_stage(tmp_path, act)


@pytest.mark.parametrize(
    "frame",
    [wire.Hello(WHO.epoch, WHO.seat, WHO.incarnation, has_setup=True), wire.AgentFault("it exits", "why")],
    ids=["a hello", "a fault"],
)
def test_a_worker_that_does_not_count_any_more_is_set_up_for_nothing_and_faults_no_agent(
    tmp_path: Path, frame: wire.FromWorker
) -> None:
    async def act(stage: Stage) -> None:
        stage.play().send(numbered(1, frame))
        await soon(lambda: stage.posts.events)
        assert stage.posts.events == [events.WorkerAlive(WHO, "loop")]
        row = {"agent": "default", "state": "warm", "fault": "", "hint": ""}
        assert stage.faults.over([row]) == [row]

    on_stage(tmp_path, act)


def test_a_kept_worker_that_was_given_up_is_not_given_up_again_when_its_time_is_over(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        worker, _ = await connected(stage)
        handed = stage.router.hand_over([WHO.incarnation])[WHO.incarnation]
        following = Image()
        following.router.recall(WHO, handed)
        following.router.ask_recalled()
        worker.send([(1).to_bytes(8), b"no message"])
        await soon(following.reasons)
        following.router._give_up_recalled()
        assert len(following.reasons()) == 1
        following.router.close()

    on_stage(tmp_path, act)


@pytest.mark.parametrize("missing", ["pulse", "frames"])
def test_of_a_worker_with_one_channel_no_descriptor_goes_to_the_next_image(
    tmp_path: Path, missing: str
) -> None:
    async def act(stage: Stage) -> None:
        line = stage.router._lines[WHO.incarnation]
        theirs, channel = (stage.frames, line._frames) if missing == "pulse" else (stage.pulse, line._pulse)
        with theirs.accept()[0] as connected:
            connected.sendall(OPENING[:64] + READY)
            await soon(lambda: channel.is_open)
            assert stage.router.hand_over([WHO.incarnation]) == {}
            assert not os.get_inheritable(channel._peer.fileno())
        line.close()

    on_stage(tmp_path, act)


def test_the_fault_of_an_agent_is_over_with_the_settings_that_had_it() -> None:
    settings = {"mine": "as they were"}
    faults = AgentFaults(settings.__getitem__)
    row = {"agent": "mine", "state": "warm", "fault": "", "hint": ""}
    faults.told("mine", "it exits", "correct it")
    assert faults.over([row])[0]["state"] == "failed"
    settings["mine"] = "as they are now"
    assert faults.over([row]) == [row]
