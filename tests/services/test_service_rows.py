"""A service over several processes: what of one life counts in the next, and how silence is measured."""

import asyncio
import errno
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from ipc.messages import Beat
from ipc.service_messages import ServiceState
from supervisor.services import RestartPolicy
from supervisor.services import service as service_module
from supervisor.services.child import Child
from tests.services.test_service_states import READY, SLOW, SPEC, Watched, orders, run
from tests.services.watching import has_ended
from tests.waiting import soon

STEADY = RestartPolicy(first_seconds=0.001, max_seconds=0.001, steady_seconds=0.0, failed_after=3)


def test_only_a_process_that_was_ready_itself_ends_a_row_of_failures(tmp_path: Path) -> None:
    """The first was; those after it never get so far, and warm like the first."""

    async def story() -> None:
        watched = Watched(tmp_path, replace(SPEC, restart=STEADY))
        service = watched.service
        service.start()
        service.received(READY)
        for time in (1, 2, 3):
            await watched.until("starting", times=time)
            service.received(ServiceState("warming"))
            service.end("it fell", "")
            await watched.until("resting" if time < 3 else "failed", times=time if time < 3 else 1)
        assert watched.states.count("warming") == 2
        await watched.close()

    run(story())


def test_the_time_of_loading_is_no_time_of_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        now = 1000.0
        monkeypatch.setattr(service_module, "monotonic", lambda: now)
        watched = Watched(tmp_path, replace(SPEC, restart=replace(STEADY, steady_seconds=30.0)))
        watched.service.start()
        for time in (1, 2, 3):
            await watched.until("starting", times=time)
            now += 100.0
            watched.service.received(READY)
            watched.service.end("it fell", "")
            await watched.until("resting" if time < 3 else "failed", times=time if time < 3 else 1)
        await watched.close()

    run(story())


def test_failures_under_other_settings_do_not_count_for_the_new_ones(tmp_path: Path) -> None:
    spec = replace(SPEC, restart=replace(SLOW.restart, failed_after=2))

    async def story() -> None:
        watched = Watched(tmp_path, spec)
        service = watched.service
        service.start()
        service.end("it fell", "")
        await watched.until("resting")
        service.renew(spec)
        await watched.until("starting", times=2)
        service.end("it fell", "")
        await watched.until("resting", times=2)
        assert "failed" not in watched.states
        await watched.close()

    run(story())


def test_a_process_that_cannot_be_made_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*orders: object) -> Child:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    async def story() -> None:
        watched = Watched(tmp_path, SPEC)
        with monkeypatch.context() as patch:
            patch.setattr(Child, "start", full)
            watched.service.start()
        assert watched.states == ["starting", "resting"]
        assert watched.reports[-1].detail.startswith("no process could be made: Resource temporarily")
        await watched.until("starting", times=2)
        assert watched.service.alive
        await watched.close()

    run(story())


def test_any_frame_is_a_sign_of_life_and_without_one_the_process_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        now = 1000.0
        monkeypatch.setattr(service_module, "monotonic", lambda: now)
        watched = Watched(tmp_path)
        service = watched.service
        service.start()
        service.received(READY)
        for _ in range(3):
            now += SLOW.silence_seconds - 1.0
            service.received(Beat())
            service._look_due_at = now
            service._look()
            assert watched.states == ["starting", "ready"]
        now += SLOW.silence_seconds + 1.0
        service._look_due_at = now
        service._look()
        resting = await watched.until("resting")
        assert resting.detail.startswith("it sent nothing for 10 s; ")
        await watched.close()

    run(story())


@pytest.mark.parametrize("look", ["at once", "on schedule"])
def test_a_process_that_was_taken_over_is_replaced_when_it_is_silent_from_then_on(
    tmp_path: Path, look: str
) -> None:
    async def story() -> None:
        before = Watched(tmp_path)
        before.service.start()
        before.service.received(READY)
        made = before.service._child
        handed = before.service.hand_over()
        assert made is not None
        assert handed is not None
        after = Watched(tmp_path, replace(SLOW, silence_seconds=0.2 if look == "on schedule" else 60.0))
        after.service.take_over(handed)
        if look == "at once":
            after.service._look()
            assert after.service._end is None, "the silence before does not count"
        else:
            resting = await after.until("resting")
            assert resting.detail.startswith("it sent nothing for 0.2 s; ")
        await after.close()
        made._reap()  # `subprocess` complains about forgotten children

    run(story())


def test_the_end_of_a_process_that_was_handed_over_is_left_to_the_next_image(tmp_path: Path) -> None:
    async def story() -> None:
        ended: list[int] = []
        log = tmp_path / "idle.log"
        child = Child.start("tests.services.idle_service", orders(tmp_path), log, (), ended.append)
        child.hand_over()
        os.kill(child.pid, signal.SIGKILL)
        await soon(lambda: has_ended(child.pid))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not ended
        assert child._reap() == -signal.SIGKILL

    run(story())
