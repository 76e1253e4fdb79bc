"""Services as real processes: what each does to itself, and what the supervisor makes of it."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.service_messages import ServiceStart
from supervisor.services import Needed, RestartPolicy, ServiceChanged, Services
from supervisor.services.child import Child
from tests.no_containment import uncontained
from tests.services.watching import PATIENCE_SECONDS, has_ended, pretend, running
from tests.waiting import soon


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_a_service_starts_warms_and_is_ready_with_its_address() -> None:
    async def story() -> None:
        async with running(pretend("serve")) as watched:
            ready = await watched.seen("ready")
            assert watched.states() == ["starting", "warming", "ready"]
            row = watched.row()
            assert ready.address == row["address"] == f"pretend:{row['pid']}"
            assert (row["service"], row["state"], row["restarts"]) == ("serve", "ready", 0)
            assert row["age_seconds"] > 0
        assert watched.states()[-1] == "stopped"

    run(story())


def test_a_service_waits_for_the_files_it_needs_without_a_process(tmp_path: Path) -> None:
    weights = tmp_path / "weights"

    async def story() -> None:
        needed = Needed("there are no weights", "fetch them", files=(weights,))
        async with running(pretend("serve", needed=(needed,))) as watched:
            waiting = await watched.seen("waiting")
            assert (waiting.detail, waiting.hint) == ("there are no weights", "fetch them")
            row = watched.row()
            assert (row["state"], row["pid"], row["restarts"]) == ("waiting", None, 0)
            assert row["down_seconds"] is None
            weights.touch()
            await watched.seen("ready")
            assert watched.states() == ["waiting", "starting", "warming", "ready"]
            assert watched.row()["restarts"] == 0

    run(story())


def test_a_service_that_waits_can_be_ended_and_renewed(tmp_path: Path) -> None:
    async def story() -> None:
        needed = Needed("there are no weights", "fetch them", files=(tmp_path / "weights",))
        async with running(pretend("serve", needed=(needed,))) as watched:
            await watched.seen("waiting")
            watched.services.change("serve", None)
            await watched.seen("stopped")
            watched.services.change("serve", pretend("serve"))
            await watched.seen("ready")

    run(story())


def test_a_killed_service_rests_and_is_ready_again_as_another_process() -> None:
    async def story() -> None:
        async with running(pretend("serve")) as watched:
            await watched.seen("ready")
            first = watched.row()["pid"]
            os.kill(first, signal.SIGKILL)
            resting = await watched.seen("resting")
            assert resting.detail == "it was killed by SIGKILL; starts again after 0.05 s"
            assert resting.address == ""
            assert 0 <= watched.row()["down_seconds"] < PATIENCE_SECONDS
            await watched.seen("ready", times=2)
            assert watched.row()["down_seconds"] is None
            assert watched.row()["pid"] != first
            assert watched.row()["restarts"] == 1

    run(story())


def test_a_crash_loop_rests_longer_each_time_and_then_is_failed_with_its_last_words() -> None:
    async def story() -> None:
        async with running(pretend("crash")) as watched:
            failed = await watched.seen("failed", times=2)
        rests = [one.detail for one in watched.reports if one.state in ("resting", "failed")]
        said = "it ended with status 1: these are my last words; starts again after "
        assert rests[:4] == [said + pause for pause in ("0.05 s", "0.1 s", "0.2 s", "0.2 s")]
        assert watched.states()[:6] == ["starting", "resting", "starting", "resting", "starting", "failed"]
        assert failed.hint.endswith("crash.log")

    run(story())


def test_serving_long_enough_ends_a_row_of_failures() -> None:
    policy = RestartPolicy(first_seconds=0.05, max_seconds=5.0, steady_seconds=0.0, failed_after=3)

    async def story() -> None:
        async with running(pretend("serve", restart=policy)) as watched:
            for time in range(1, 5):
                await watched.seen("ready", times=time)
                os.kill(watched.row()["pid"], signal.SIGKILL)
                rested = await watched.seen("resting", times=time)
                assert rested.detail.endswith("after 0.05 s")

    run(story())


def test_a_service_that_says_it_cannot_work_is_failed_with_its_hint_and_tried_again() -> None:
    async def story() -> None:
        async with running(pretend("fail")) as watched:
            failed = await watched.seen("failed")
            assert failed.detail == "it has no weights; starts again after 0.05 s"
            assert failed.hint == "give it some"
            await watched.seen("failed", times=2)
            assert "resting" not in watched.states()

    run(story())


def test_between_two_tries_the_last_fault_stays_in_view() -> None:
    async def story() -> None:
        async with running(pretend("fail")) as watched:
            await watched.until(
                lambda: watched.row()["state"] == "starting" and watched.row()["restarts"] > 0
            )
            row = watched.row()
            failed = await watched.seen("failed")
            assert row["detail"].startswith("tries again; last time: ")
            assert row["detail"].removeprefix("tries again; last time: ") in failed.detail
            assert row["hint"] == failed.hint

    run(story())


def test_a_service_that_is_never_ready_is_killed_at_its_deadline() -> None:
    async def story() -> None:
        async with running(pretend("never_ready", start_deadline_seconds=0.5)) as watched:
            await watched.seen("starting")
            pid = watched.row()["pid"]
            assert pid is not None
            resting = await watched.seen("resting")
            assert resting.detail.startswith("it was not ready within 0.5 s")
            assert has_ended(pid)

    run(story())


def test_a_service_that_falls_silent_is_killed_and_replaced() -> None:
    async def story() -> None:
        async with running(pretend("serve", silence_seconds=1.0)) as watched:
            await watched.seen("ready")
            first = watched.row()["pid"]
            os.kill(first, signal.SIGSTOP)
            resting = await watched.seen("resting")
            assert resting.detail.startswith("it sent nothing for 1 s")
            assert has_ended(first)
            await watched.seen("ready", times=2)

    run(story())


def test_a_standstill_of_the_supervisor_itself_kills_nobody() -> None:
    async def story() -> None:
        async with running(pretend("talk", silence_seconds=1.0), has_clips=True) as watched:
            await watched.seen("ready")
            # This one says nothing until it is spoken to, and the whole loop stands still past its silence.
            signal.sigtimedwait([], 1.5)
            watched.services.send("talk", b"still there?")
            await watched.until(lambda: bool(watched.told))
            assert watched.states() == ["starting", "ready"]

    run(story())


def test_only_a_ready_service_is_handed_over_and_the_others_go_on() -> None:
    async def story() -> None:
        async with running(pretend("never_ready")) as watched:
            await watched.seen("starting")
            assert watched.services.hand_over("never_ready") is None
            assert watched.row()["pid"] is not None
        async with running(pretend("crash")) as watched:
            await watched.seen("resting")
            assert watched.services.hand_over("crash") is None
            await watched.seen("resting", times=2)

    run(story())


def test_several_services_are_handed_over_and_only_the_current_ones_are_kept() -> None:
    """As a restart in place does it: the next image takes over processes of the same options and version."""
    kept = replace(pretend("serve"), name="kept")
    outdated = replace(pretend("serve"), name="outdated", outlives_version=False)
    unwanted = replace(pretend("serve"), name="unwanted")

    async def story() -> None:
        async with running(kept, outdated, unwanted) as watched:
            await watched.seen("ready", times=3)
            pids = {row["service"]: row["pid"] for row in watched.services.rows()}
            # In this process they stay known to `subprocess`, which complains about forgotten children.
            made = [each._child for each in watched.services._services.values() if each._child is not None]
            handed = [watched.services.hand_over(name) for name in pids]
            await watched.services.close(1.0)
            assert not any(map(has_ended, pids.values()))
            given = [each for each in handed if each is not None]
            assert len(given) == 3
            older = [
                msgspec.structs.replace(each, version="0") if each.name == "outdated" else each
                for each in given
            ]
            reports: list[ServiceChanged] = []
            logs = Path(watched.endpoint).parent / "logs"
            following = Services(
                (kept, outdated),
                endpoint=watched.endpoint,
                logs=logs,
                report=reports.append,
                contain=uncontained(),
            )
            following.open(older)
            try:
                await soon(lambda: [row["state"] for row in following.rows()] == ["ready", "ready"])
                now = {row["service"]: row["pid"] for row in following.rows()}
                assert now["kept"] == pids["kept"]
                await soon(lambda: has_ended(pids["outdated"]) and has_ended(pids["unwanted"]))
                assert reports[0].state == "ready"
            finally:
                await following.close(10.0)
            assert has_ended(pids["kept"], PATIENCE_SECONDS)
            for child in made:
                child._reap()

    run(story())


def test_closing_kills_a_service_that_ignores_sigterm_and_what_it_has_started() -> None:
    async def story() -> None:
        async with running(pretend("deaf")) as watched:
            ready = await watched.seen("ready")
            pid = watched.row()["pid"]
            await watched.services.close(1.0)
            assert has_ended(pid)
            assert has_ended(int(ready.address), PATIENCE_SECONDS)

    run(story())


def test_a_service_that_is_removed_ends_also_when_it_ignores_sigterm() -> None:
    async def story() -> None:
        async with running(pretend("deaf")) as watched:
            await watched.seen("ready")
            watched.services.change("deaf", None)
            await watched.seen("stopped")

    run(story())


def test_what_a_dead_service_has_started_does_not_outlive_it() -> None:
    async def story() -> None:
        async with running(pretend("deaf")) as watched:
            ready = await watched.seen("ready")
            os.kill(watched.row()["pid"], signal.SIGKILL)
            await watched.seen("resting")
            assert has_ended(int(ready.address), PATIENCE_SECONDS)

    run(story())


def test_closing_while_a_service_rests_starts_it_no_more() -> None:
    long_rest = RestartPolicy(first_seconds=600.0, max_seconds=600.0)

    async def story() -> None:
        async with running(pretend("crash", restart=long_rest)) as watched:
            await watched.seen("resting")
            await watched.services.close(1.0)
            assert watched.states() == ["starting", "resting", "stopped"]

    run(story())


def test_neither_arguments_nor_environment_carry_secrets(monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-a-provider")

    async def story() -> None:
        async with running(pretend("tell_environment")) as watched:
            ready = await watched.seen("ready")
            assert "PATH=" in ready.detail
            assert "a-key-of-a-provider" not in ready.detail
            assert "a-secret-of-mine" not in ready.detail

    run(story())


def test_the_log_is_private_and_the_spec_does_not_print_its_options() -> None:
    async def story() -> None:
        spec = pretend("crash")
        assert "a-secret-of-mine" not in repr(spec)
        async with running(spec) as watched:
            resting = await watched.seen("resting")
            path = resting.hint.removeprefix("see ")
            assert os.stat(path).st_mode & 0o777 == 0o600

    run(story())


def test_a_service_is_changed_ended_and_brought_back_while_others_go_on() -> None:
    async def story() -> None:
        async with running(pretend("serve")) as watched:
            await watched.seen("ready")
            first = watched.row()["pid"]
            watched.services.change("serve", pretend("serve"))
            await watched.seen("ready", times=2)
            second = watched.row()["pid"]
            assert second not in (None, first)
            watched.services.change("serve", None)
            await watched.seen("stopped")
            assert watched.row()["pid"] is None
            watched.services.change("serve", pretend("serve"))
            await watched.seen("ready", times=3)
            assert watched.row()["pid"] not in (None, first, second)

    run(story())


def test_the_log_of_a_running_service_is_bounded_and_what_was_in_it_is_set_aside() -> None:
    async def story() -> None:
        async with running(pretend("serve", silence_seconds=2.0)) as watched:
            await watched.seen("ready")
            log = Path(watched.endpoint).parent / "logs" / "serve.log"
            with log.open("ab") as opened:
                opened.write(b"x" * 5_000_000)
            older = log.with_suffix(".log.1")
            await soon(lambda: older.exists() and log.stat().st_size < 1_000_000)
            assert older.stat().st_size >= 5_000_000

    run(story())


def test_a_log_that_is_large_at_a_start_is_set_aside_and_last_words_are_of_this_process() -> None:
    async def story() -> None:
        async with running(pretend("crash")) as watched:
            await watched.seen("resting")
            log = Path(watched.endpoint).parent / "logs" / "crash.log"
            with log.open("ab") as opened:
                opened.write(b"x" * 5_000_000 + b"\n")
            older = log.with_suffix(".log.1")
            await soon(older.exists)
            assert log.stat().st_size < 1_000_000
            failed = await watched.seen("failed")
            assert "these are my last words" in failed.detail

    run(story())


def test_processes_that_have_ended_leave_no_descriptor_open() -> None:
    async def story() -> None:
        async with running(pretend("crash")) as watched:
            await watched.seen("resting")
            before = len(os.listdir("/proc/self/fd"))
            await watched.seen("failed", times=3)
            # At most one process runs at a time: it has a descriptor of its own.
            assert len(os.listdir("/proc/self/fd")) <= before + 1

    run(story())


def test_orders_that_would_block_the_loop_are_refused(tmp_path: Path) -> None:
    orders = ServiceStart("serve", 1, "endpoint", "identity", {"words": "x" * 70_000}, os.getpid())
    with pytest.raises(ValueError, match="the orders of serve are"):
        Child.start("tests.services.pretend_service", orders, tmp_path / "log", (), lambda status: None)
    assert os.listdir(tmp_path) == []
