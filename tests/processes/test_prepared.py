"""The cell that is made ahead of its order: used once, made anew, counted nowhere, gone with the zygote."""

import os
import signal
from pathlib import Path

import pytest

from supervisor.core.events import WorkerStarted
from tests.processes.stage import Stage, marked, play, script, until

# A cgroup is named after its incarnation, so none can be prepared.
_KINDS = ("pidns", "sweep")


async def _prepared(stage: Stage, *, other_than: int = 0) -> int:
    await until(lambda: bool(stage.prepared() - {other_than}), "a prepared worker")
    (pid,) = stage.prepared() - {other_than}
    return pid


@pytest.mark.parametrize("kind", _KINDS)
def test_an_order_goes_to_the_prepared_cell_and_the_next_is_made_behind_it(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            for seat in (0, 1):
                pid = await _prepared(stage)
                assert (await stage.start(script(), seat)).pid == pid
            await _prepared(stage)
            assert len(stage.processes.usages()) <= 2
            assert len(stage.prepared()) == 1

    play(act())


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("victim", ["worker", "keeper"])
def test_a_prepared_cell_that_dies_is_made_anew_and_nobody_is_told(
    tmp_path: Path, kind: str, victim: str
) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            pid = await _prepared(stage)
            os.kill(pid if victim == "worker" else stage.keeper(pid), signal.SIGKILL)
            another = await _prepared(stage, other_than=pid)
            await until(lambda: pid not in marked(stage.mark), "the dead one to be reaped")
            assert stage.events.empty()
            assert (await stage.start(script())).pid == another

    play(act())


@pytest.mark.parametrize("kind", _KINDS)
def test_no_two_workers_draw_the_same_random_numbers(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        draw = "import random, ssl; print(ssl.RAND_bytes(16).hex(), random.random())"
        async with Stage(tmp_path, kind) as stage:
            for seat in (0, 1):
                await stage.start(script(draw), seat)
            first, second = (stage.said(seat).split()[:2] for seat in (0, 1))
            assert first[0] != second[0]
            assert first[1] != second[1]

    play(act())


@pytest.mark.parametrize("kind", _KINDS)
def test_many_orders_at_once_do_not_wait_for_preparation(tmp_path: Path, kind: str) -> None:
    async def act() -> None:
        async with Stage(tmp_path, kind) as stage:
            for number in range(1, 6):
                stage.scripts[number] = script()
                stage.processes.start(number, number)
            started = {(await stage.next(WorkerStarted)).incarnation for _ in range(5)}
            assert started == {1, 2, 3, 4, 5}

    play(act())
