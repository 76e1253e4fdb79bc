"""Frames of services: what counts, what ends the service that sent it, and what is ignored."""

import asyncio
import io
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from ipc.codec import encode
from ipc.service_messages import ServiceState
from ipc.sockets import Wire
from ipc.stt_messages import FromStt, Transcribed
from ipc.zmtp import Sent
from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.services import Services
from supervisor.services.service import Service, ServiceChanged
from supervisor.telemetry.log import Log
from tests.services.watching import PATIENCE_SECONDS, pretend, running
from tests.waiting import soon


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_frame_that_comes_after_the_end_was_decided_does_not_count(tmp_path: Path) -> None:
    """The process is killed by then, and what it sent before is still read."""

    async def story() -> None:
        reports: list[ServiceChanged] = []
        service = Service(
            pretend("serve"), "endpoint", tmp_path / "serve.log", reports.append, check=lambda: None
        )
        service.start()
        service.end("a reason to end it", "")
        service.received(ServiceState("ready", address="of a dead process"))
        await soon(lambda: reports[-1].state == "resting")
        service.ask_to_end()
        assert [report.state for report in reports] == ["starting", "resting", "stopped"]
        assert reports[1].detail.startswith("a reason to end it")

    run(story())


def test_what_a_service_says_of_a_clip_reaches_whoever_waits_for_it() -> None:
    async def story() -> None:
        async with running(pretend("talk"), has_clips=True) as watched:
            await watched.seen("ready")
            assert watched.services.send("talk", b"good day") is Sent.SENT
            await watched.until(lambda: bool(watched.told))
            assert watched.told == [("talk", Transcribed("clip", "good day", "en", 1.0))]
            assert watched.row()["state"] == "ready"

    run(story())


def test_a_service_without_clips_that_speaks_of_one_is_ended() -> None:
    async def story() -> None:
        async with running(pretend("talk")) as watched:
            await watched.seen("ready")
            assert watched.services.send("talk", b"good day") is Sent.SENT
            resting = await watched.seen("resting")
            assert resting.detail.startswith("it spoke of a clip, and it has none")

    run(story())


def test_a_frame_nobody_can_read_ends_the_service_with_that_reason() -> None:
    async def story() -> None:
        async with running(pretend("babble")) as watched:
            resting = await watched.seen("resting")
            assert resting.detail.startswith("it sent what cannot be read: ")

    run(story())


def test_a_frame_that_cannot_be_served_ends_its_service_and_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        reports: list[ServiceChanged] = []
        log = Log(Clock(not_before=0.0), io.StringIO())

        def clip_told(service: str, message: FromStt) -> bool:
            raise LookupError(service)

        services = Services(
            [pretend("serve"), pretend("talk")],
            endpoint=str(tmp_path / "services.sock"),
            logs=tmp_path / "logs",
            report=reports.append,
            clip_told=clip_told,
            contain=Containment(log, lambda: 0.0, lambda place: None),
        )
        services.open()
        await soon(lambda: [each.state for each in reports].count("ready") == 2, PATIENCE_SECONDS)
        services.send("talk", b"good day")
        await soon(lambda: reports[-1].state == "resting", PATIENCE_SECONDS)
        assert reports[-1].service == "talk"
        assert reports[-1].detail.startswith("it sent a frame that cannot be served: ")
        await services.close(10.0)

    run(story())


def test_a_stranger_on_the_socket_changes_nothing() -> None:
    async def story() -> None:
        async with running(pretend("serve")) as watched:
            await watched.seen("ready")
            wire = Wire()
            stranger = wire.dealer(watched.endpoint, "serve", lambda parts: None)
            assert stranger.send([encode(ServiceState("failed", detail="a lie"))]) is Sent.SENT
            # A second life of the real service proves that the stranger's earlier frame was read by then.
            os.kill(watched.row()["pid"], signal.SIGKILL)
            await watched.seen("ready", times=2)
            assert not [one for one in watched.reports if "a lie" in one.detail]
            wire.close()

    run(story())
