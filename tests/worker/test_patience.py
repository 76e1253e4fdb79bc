"""A limit grows by the time in which the host had no CPU, and not for ever."""

import asyncio
import multiprocessing
import os
import time

import pytest

from tests.waiting import until
from worker import patience, residents


def spent(seconds: float, seconds_max: float, waited: float) -> float:
    """Seconds until work that never ends is given up, when the host has kept it waiting for so long."""

    async def scene() -> float:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with patience.within(seconds, seconds_max, lambda: waited):
                await asyncio.get_running_loop().create_future()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return time.monotonic() - began

    return asyncio.run(scene())


def test_a_limit_is_what_it_says_on_a_host_at_rest() -> None:
    assert spent(0.1, 600.0, 0.0) >= 0.1


def test_it_grows_by_what_the_host_kept_waiting() -> None:
    assert spent(0.1, 600.0, 0.7) >= 0.8


def test_it_grows_to_the_second_limit_only() -> None:
    assert spent(0.1, 0.3, 3600.0) >= 0.3


def test_a_second_limit_that_is_the_shorter_one_does_not_count() -> None:
    assert spent(0.1, 0.0, 0.0) >= 0.1


def test_no_timer_looks_on_when_the_work_has_ended() -> None:
    async def scene() -> None:
        loop, looks = asyncio.get_running_loop(), 0

        def waits() -> float:
            nonlocal looks
            looks += 1
            return 0.0

        async with patience.within(60.0, 60.0, waits):
            await asyncio.sleep(0)
        assert looks == 1
        handles = [each for each in loop._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
        assert handles == []

    asyncio.run(scene())


def test_what_a_process_had_waited_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = {"self": 5.0, "7": 100.0}
    monkeypatch.setattr(patience, "_waited", waited.__getitem__)
    monkeypatch.setattr(residents, "pids", lambda: frozenset({7}))
    waits = patience._Waits()
    assert waits() == 0.0
    waited |= {"self": 5.5, "7": 102.0}
    assert waits() == 2.0


def test_work_that_ends_in_time_leaves_nothing() -> None:
    async def scene() -> None:
        async with patience.within(60.0, 60.0):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scene())


def _spin(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    while True:
        pass


def test_the_kernel_counts_what_a_resident_has_waited() -> None:
    """Two that never rest share one CPU: each waits half of the time."""
    cpu = min(os.sched_getaffinity(0))
    spinners = [multiprocessing.get_context("fork").Process(target=_spin, args=(cpu,)) for _ in range(2)]
    waits = patience._Waits()
    try:
        for spinner in spinners:
            spinner.start()
        assert spinners[0].pid is not None
        residents.add(spinners[0].pid)
        until(lambda: waits() > 0.1)
        residents.remove(spinners[0].pid)
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.join()
