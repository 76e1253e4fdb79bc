"""The states of one service, by a process that does nothing: the test says what was heard of it."""

import asyncio
import signal
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ipc.errors import PlaceError
from ipc.service_messages import ServiceStart, ServiceState
from supervisor.services import RestartPolicy, ServiceChanged, ServiceSpec
from supervisor.services import service as service_module
from supervisor.services.child import _LOG_BYTES_MAX, Child
from supervisor.services.service import Service
from tests.waiting import soon

QUICK = RestartPolicy(first_seconds=0.001, max_seconds=0.001, steady_seconds=600.0, failed_after=3)
SPEC = ServiceSpec("idle", "tests.services.idle_service", {}, start_deadline_seconds=60.0, restart=QUICK)
# The next start is not waited for.
SLOW = replace(SPEC, restart=RestartPolicy(first_seconds=600.0, max_seconds=600.0))
READY = ServiceState("ready")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


class Watched:
    """A service and its reports."""

    def __init__(self, folder: Path, spec: ServiceSpec = SLOW) -> None:
        self.reports: list[ServiceChanged] = []
        self.fault: PlaceError | None = None
        self.service = Service(spec, "endpoint", folder / "idle.log", self.reports.append, self._check)

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault

    @property
    def states(self) -> list[str]:
        return [report.state for report in self.reports]

    async def until(self, state: str, times: int = 1) -> ServiceChanged:
        await soon(lambda: self.states.count(state) == times)
        return self.reports[-1]

    async def close(self) -> None:
        self.service.ask_to_end()
        self.service.kill()
        await soon(lambda: not self.service.alive)
        assert self.service._timer is None, "it would start again"
        assert self.states[-1] == "stopped"


def test_the_first_reason_to_end_it_stands_and_its_frames_count_no_more(tmp_path: Path) -> None:
    async def story() -> None:
        watched = Watched(tmp_path)
        service = watched.service
        service.start()
        service.received(READY)
        assert service.identity
        service.end("the first reason", "the first hint")
        service.end("the second reason", "")
        resting = await watched.until("resting")
        assert (resting.detail, resting.hint) == (
            "the first reason; starts again after 600 s",
            "the first hint",
        )
        assert service.identity == "", "a frame of the dead process is nobody's"
        await watched.close()

    run(story())


def test_one_that_is_ready_does_not_warm_again(tmp_path: Path) -> None:
    async def story() -> None:
        watched = Watched(tmp_path)
        watched.service.start()
        for state in (ServiceState("warming"), READY, ServiceState("warming")):
            watched.service.received(state)
        assert watched.states == ["starting", "warming", "ready"]
        await watched.close()

    run(story())


def test_being_ready_for_a_moment_does_not_end_a_row_of_failures(tmp_path: Path) -> None:
    async def story() -> None:
        watched = Watched(tmp_path, SPEC)
        watched.service.start()
        for time in range(1, 4):
            await watched.until("starting", times=time)
            watched.service.received(READY)
            watched.service.end("it fell", "")
        await soon(lambda: "failed" in watched.states)
        assert watched.states[:8] == ["starting", "ready", "resting"] * 2 + ["starting", "ready"]
        await watched.close()

    run(story())


def test_one_that_fails_again_is_down_since_its_first_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        now = 1000.0
        monkeypatch.setattr(service_module, "monotonic", lambda: now)
        watched = Watched(tmp_path, SPEC)
        watched.service.start()
        for time in (1, 2):
            await watched.until("starting", times=time)
            watched.service.end("it fell", "")
            await watched.until("resting", times=time)
            now += 10.0
        assert watched.service.row()["down_seconds"] == 20.0
        await watched.until("starting", times=3)
        watched.service.received(READY)
        assert watched.service.row()["down_seconds"] is None
        await watched.close()

    run(story())


def test_one_that_was_ended_for_good_and_is_wanted_again_is_restarted_when_it_falls(tmp_path: Path) -> None:
    async def story() -> None:
        watched = Watched(tmp_path)
        watched.service.start()
        watched.service.ask_to_end()
        await watched.until("stopped")
        watched.service.renew(SLOW)
        watched.service.end("it fell", "")
        await watched.until("resting")
        await watched.close()

    run(story())


def test_no_process_is_made_that_would_log_into_another_folder(tmp_path: Path) -> None:
    async def story() -> None:
        watched = Watched(tmp_path)
        watched.fault = PlaceError("the folder was replaced", "put it back")
        watched.service.start()
        assert watched.states == ["starting", "resting"]
        assert watched.reports[-1].detail.startswith("the folder was replaced; ")
        assert not watched.service.alive
        await watched.close()

    run(story())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{}, {"language": "de"}], ids=["the same options", "other options"])
def test_a_process_of_an_earlier_image_goes_on_with_the_same_options_only(
    tmp_path: Path, options: dict[str, str]
) -> None:
    async def story() -> None:
        before = Watched(tmp_path)
        before.service.start()
        before.service.received(READY)
        made = before.service._child
        assert made is not None
        handed = before.service.hand_over()
        assert handed is not None
        after = Watched(tmp_path, replace(SLOW, options=options))
        after.service.take_over(handed)
        if options:
            await after.until("resting")
        assert after.states[0] == ("resting" if options else "ready")
        await after.close()
        made._reap()  # `subprocess` complains about forgotten children

    run(story())


def orders(folder: Path) -> ServiceStart:
    return ServiceStart("idle", 1, str(folder), "identity", {}, 1)


def test_the_last_words_are_those_of_this_process_and_survive_a_rotation(tmp_path: Path) -> None:
    log = tmp_path / "idle.log"
    log.write_text("words of an earlier process\n" * 2000)

    async def story() -> None:
        ended: list[int] = []
        child = Child.start("tests.services.idle_service", orders(tmp_path), log, (), ended.append)
        assert child.last_words() == ""
        with log.open("a") as opened:
            opened.truncate(_LOG_BYTES_MAX + 1)
        child.bound_log()
        assert log.stat().st_size == 0
        log.write_text("words after the rotation\n")
        assert child.last_words() == "words after the rotation"
        child.kill()
        await soon(lambda: ended)
        assert ended == [-signal.SIGKILL]
        # Its number and its descriptor may be another's by now.
        child.kill()
        child.ask_to_end()

    run(story())
