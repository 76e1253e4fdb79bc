"""Frames of a worker become events; its link outlives the image of the supervisor that opened it."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc import messages as wire
from ipc.codec import encode
from ipc.sockets import LoopSocket
from supervisor.core import events
from supervisor.core.state import TurnState, Verdict
from supervisor.workers import router
from supervisor.workers.link import HandedLine
from tests.played_worker import WHO, Image, Stage, numbered
from tests.waiting import soon

BEAT = wire.Beat()


@pytest.mark.parametrize(("frame", "event"), router._SAME_WORDS.items())
def test_a_frame_and_its_event_have_the_same_words_in_the_same_order(frame: type, event: type) -> None:
    words = tuple(each.name for each in fields(event))
    frame_words = (each.name for each in msgspec.structs.fields(frame))
    spent = tuple(each.name for each in msgspec.structs.fields(wire.Usage))
    flat = (name for word in frame_words for name in (spent if word == "usage" else (word,)))
    assert words == ("who", *flat)


def on_stage(folder: Path, act: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        with Stage(folder) as stage:
            await act(stage)

    asyncio.run(play())


def delta(number: int, text: str = "x", attempt: int = 1) -> list[bytes]:
    return numbered(number, wire.Delta("s", "s/1", attempt, 0, text))


# --- streamed text --------------------------------------------------------------------------------------


def test_deltas_of_the_running_attempt_are_shown_at_once_and_others_to_nobody(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        turn = stage.posts.run_turn("s")
        turn.earlier_text = "Before. "
        worker = stage.play()
        worker.send(delta(1, "late", attempt=2))
        worker.send(delta(2, "now"))
        await soon(lambda: stage.listeners.shown)
        assert stage.listeners.shown == [("s", delta(2, "now")[1])]
        assert stage.router.stale_frames == 1
        assert stage.router.undecided_text(WHO) == "now"
        assert stage.router.streamed("s") == wire.Delta("s", "s/1", 1, 0, "Before. now")
        assert stage.router.streamed("another") is None
        assert len(stage.posts.held) == 1
        stage.posts.held[0][1]()
        assert stage.router.undecided_text(WHO) == "", "it is decided, and in the state from now on"
        assert stage.router.streamed("s") == wire.Delta("s", "s/1", 1, 0, "Before. ")
        assert turn.attempt is not None
        turn.attempt.verdict = Verdict(TurnState.INTERRUPTED)
        assert stage.router.streamed("s") is None, "its end is decided"

    on_stage(tmp_path, act)


def test_streamed_text_asks_for_a_commit_soon_and_for_one_again_after_that(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        worker = stage.play()
        for number in (1, 2):
            worker.send(delta(number))
            await soon(lambda last=number: stage.posts.nudges == last)  # type: ignore[misc]
            stage.commit()
            stage.posts.held[-1][1]()

    on_stage(tmp_path, act)


def test_a_worker_that_streams_much_text_does_not_wait_for_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outbox would be full before streamed text is committed by the clock."""
    monkeypatch.setattr(router, "SPEECH_SECONDS_MAX", 3600.0)

    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        worker = stage.play()
        for number in range(1, router._NUDGED_AT):
            worker.send(delta(number))
        await soon(lambda: len(stage.listeners.shown) == router._NUDGED_AT - 1)
        assert stage.posts.nudges == 0
        worker.send(delta(router._NUDGED_AT))
        await soon(lambda: stage.posts.nudges)

    on_stage(tmp_path, act)


# --- other frames ---------------------------------------------------------------------------------------


def test_notes_and_waits_of_the_running_attempt_are_shown(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        worker = stage.play()
        noted = wire.Noted("s/1", 1, "looking")
        failed = wire.Failed("s/1", 1, "the model is away", "wait", outage=True)
        frames: list[wire.FromWorker] = [
            noted,
            wire.Noted("s/1", 2, "late"),
            failed,
            wire.Failed("t/1", 1, "e", "h", outage=True),
        ]
        for number, message in enumerate(frames, start=1):
            worker.send(numbered(number, message))
        await soon(lambda: len(stage.posts.events) == len(frames))
        wait = wire.Noted("s/1", 1, "the model is away; it waits for the model server (hint: wait)")
        assert stage.listeners.shown == [("s", encode(noted)), ("s", encode(wait))]
        assert [type(event) for event in stage.posts.events] == [
            events.Noted,
            events.Noted,
            events.Failed,
            events.Failed,
        ]

    on_stage(tmp_path, act)


def test_a_failure_without_an_outage_is_no_wait(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        stage.play().send(numbered(1, wire.Failed("s/1", 1, "it broke", "mend it")))
        await soon(lambda: stage.posts.events)
        assert not stage.listeners.shown

    on_stage(tmp_path, act)


# --- pulses ---------------------------------------------------------------------------------------------


async def answered_pulse(stage: Stage, pulse: LoopSocket) -> None:
    """The worker answers the next pulse."""
    await soon(lambda: stage.pulses)
    pulse.send(stage.pulses.pop())


def test_an_answered_pulse_is_a_sign_of_life(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        pulse = stage.play_pulse()
        await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
        await answered_pulse(stage, pulse)
        await soon(lambda: stage.posts.events)
        stage.router.take_pulse()
        await answered_pulse(stage, pulse)
        await soon(lambda: len(stage.posts.events) == 2)
        assert stage.posts.events == [events.WorkerAlive(WHO, "pulse")] * 2

    on_stage(tmp_path, act)


def test_the_link_of_a_dead_process_is_closed_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.play()
        stage.router.take_pulse()
        assert stage.router.link_count == 1
        stage.processes.is_alive = False
        stage.router.take_pulse()
        assert stage.router.link_count == 0
        assert not stage.posts.events

    on_stage(tmp_path, act)


def test_a_process_that_closed_its_link_and_lives_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(stage: Stage) -> None:
        stage.frames.close()
        line = stage.router._lines[WHO.incarnation]
        await soon(lambda: line.closed_at is not None)
        stage.router.take_pulse()
        assert stage.reasons() == [], "its death may be reported yet"
        monkeypatch.setattr(router, "_CLOSED_SECONDS_MAX", -1.0)
        stage.router.take_pulse()
        assert stage.reasons() == ["it has closed its line to the supervisor"]
        assert stage.router.link_count == 0

    on_stage(tmp_path, act)


def test_what_follows_all_frames_waits_for_the_last_pulse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_DRAIN_SECONDS", 3600.0)

    async def act(stage: Stage) -> None:
        calls: list[int] = []
        worker, pulse = stage.play(), stage.play_pulse()
        await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
        await answered_pulse(stage, pulse)
        await soon(lambda: len(stage.posts.events) == 1)
        stage.router.after_frames(lambda: calls.append(len(stage.posts.events)))
        stage.router.after_frames(lambda: calls.append(-1))
        await soon(lambda: len(stage.pulses) == 2)
        assert not calls
        worker.send(numbered(1, BEAT))
        for answer in stage.pulses:
            pulse.send(answer)
        await soon(lambda: len(calls) == 2)
        await asyncio.sleep(0)
        assert min(calls) == -1
        assert len(calls) == 2, "each is called once"
        assert [event for event in stage.posts.events if event == events.WorkerAlive(WHO, "loop")]

    on_stage(tmp_path, act)


def test_what_has_followed_all_frames_does_not_follow_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "_DRAIN_SECONDS", 0.1)

    async def act(stage: Stage) -> None:
        calls: list[str] = []
        stage.play()
        pulse = stage.play_pulse()
        await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
        await answered_pulse(stage, pulse)
        stage.router.after_frames(lambda: calls.append("answered"))
        await soon(lambda: len(stage.pulses) == 1)
        pulse.send(stage.pulses[0])
        await soon(lambda: calls)
        # Nobody answers this one: its time is over after that of the first.
        stage.router.after_frames(lambda: calls.append("silent"))
        await soon(lambda: "silent" in calls)
        assert calls == ["answered", "silent"]

    on_stage(tmp_path, act)


@pytest.mark.parametrize("is_connected", [True, False])
def test_what_follows_all_frames_does_not_wait_for_a_worker_that_is_silent(
    tmp_path: Path, is_connected: bool
) -> None:
    async def act(stage: Stage) -> None:
        calls: list[str] = []
        if is_connected:
            stage.play_pulse()
            await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
        stage.router.after_frames(lambda: calls.append("called"))
        await soon(lambda: calls)
        assert calls == ["called"]

    on_stage(tmp_path, act)


# --- from one image to the next -------------------------------------------------------------------------


async def handed(stage: Stage, worker: LoopSocket, pulse: LoopSocket) -> HandedLine:
    """Two frames are durable, a third one was received, and a pulse is not answered yet."""
    for number in (1, 2):
        worker.send(numbered(number, BEAT))
    await soon(lambda: len(stage.posts.events) == 2)
    stage.commit()
    worker.send(numbered(3, BEAT))
    await soon(lambda: len(stage.posts.events) == 3)
    await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b"owed"))
    await soon(lambda: stage.pulses)
    return stage.router.hand_over([WHO.incarnation])[WHO.incarnation]


def test_a_kept_worker_is_asked_for_what_is_not_durable_and_counts_from_there(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        worker, pulse = stage.play(), stage.play_pulse()
        line = await handed(stage, worker, pulse)
        assert (line.safe, line.owed, stage.router.link_count) == (2, 1, 0)
        following = Image()
        following.router.recall(WHO, line)
        assert not os.get_inheritable(line.frames.descriptor)
        worker.send(numbered(3, BEAT))
        await soon(lambda: following.router.stale_frames == 1)
        assert not following.posts.events, "it comes again, and counts then"
        following.router.ask_recalled()
        await soon(lambda: [encode(wire.Resend(2))] in stage.received)
        worker.send(numbered(3, BEAT))
        worker.send(numbered(4, wire.Kept("s/1", 1)))
        pulse.send(stage.pulses.pop())
        await soon(lambda: len(following.posts.events) == 3)
        assert {*following.posts.events} == {
            events.WorkerAlive(WHO, "loop"),
            events.WorkerKept(WHO, "s/1", 1),
            events.WorkerAlive(WHO, "pulse"),
        }
        following.router._give_up_recalled()
        assert following.reasons() == [], "it has answered"
        following.commit()
        await soon(lambda: [encode(wire.Ack(4))] in stage.received)
        following.router.close()

    on_stage(tmp_path, act)


def test_a_kept_worker_keeps_the_grace_of_its_agent(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        worker, pulse = stage.play(), stage.play_pulse()
        stage.router.graces[WHO.incarnation] = 2.5
        line = await handed(stage, worker, pulse)
        following = Image()
        following.router.recall(WHO, msgspec.msgpack.decode(msgspec.msgpack.encode(line), type=HandedLine))
        assert following.router.graces == {WHO.incarnation: 2.5}
        following.router.close()
        assert following.router.graces == {}

    on_stage(tmp_path, act)


def test_a_kept_worker_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "RECALL_SECONDS_MAX", 0.0)

    async def act(stage: Stage) -> None:
        following = Image()
        following.router.recall(WHO, await handed(stage, stage.play(), stage.play_pulse()))
        following.router.ask_recalled()
        await soon(following.reasons)
        assert following.reasons() == ["it did not answer after the restart"]
        assert following.router.link_count == 0

    on_stage(tmp_path, act)


def test_a_worker_that_is_not_connected_is_not_handed_over(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.play()
        assert stage.router.hand_over([WHO.incarnation]) == {}

    on_stage(tmp_path, act)


def test_a_worker_that_was_given_up_is_not_handed_over(tmp_path: Path) -> None:
    """Its end is not decided yet: the engine has halted."""

    async def act(stage: Stage) -> None:
        worker, pulse = stage.play(), stage.play_pulse()
        await soon(lambda: stage.router._lines[WHO.incarnation].ask_pulse(b""))
        await answered_pulse(stage, pulse)
        worker.send([(1).to_bytes(8), b"no message"])
        await soon(lambda: stage.reasons())
        assert stage.router.hand_over([WHO.incarnation]) == {}

    on_stage(tmp_path, act)


# --- faults of agents -----------------------------------------------------------------------------------


def test_the_fault_of_an_agent_is_kept_until_a_turn_of_it_is_answered(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        stage.posts.run_turn("s")
        stage.posts.state.workers[WHO.seat].agent = "mine"
        worker = stage.play()
        worker.send(numbered(1, wire.AgentFault("it exits", "correct it")))
        rows = [{"agent": name, "state": "warm", "fault": "", "hint": ""} for name in ("mine", "other")]
        failed = {"agent": "mine", "state": "failed", "fault": "it exits", "hint": "correct it"}
        await soon(lambda: stage.faults.over(rows) == [failed, rows[1]])
        other = [rows[0] | {"fault": "its interpreter is gone"}]
        assert stage.faults.over(other) == other, "the fault of the runtime comes first"
        worker.send(numbered(2, wire.Failed("s/1", 1, "it exits", "correct it")))
        await soon(lambda: len(stage.posts.events) == 2)
        assert stage.faults.over(rows) == [failed, rows[1]]
        worker.send(numbered(3, wire.Finished("s/1", 1, "well")))
        await soon(lambda: stage.faults.over(rows) == rows)

    on_stage(tmp_path, act)
