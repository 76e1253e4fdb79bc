"""Every runtime has a zygote of its own, at first need; the trouble of one is no trouble of another."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervisor.clock import monotonic
from supervisor.core.events import WorkerDied
from supervisor.processes import procfs
from supervisor.processes.cells import Limits
from supervisor.processes.orphans import Record
from supervisor.processes.runtimes import Runtime
from supervisor.processes.spawner import Spawner, SpawnerState, Wishes
from tests.processes.stage import Stage, marked, name_of, play, script, until

GOOD, OTHER = Runtime("good"), Runtime("good", entry="other")


def _row(stage: Stage, agent: str) -> dict[str, Any]:
    return next(row for row in stage.processes.runtime_rows() if row["agent"] == agent)


def _zygotes(stage: Stage) -> int:
    return sum(name_of(pid) == "hermes-zygote" for pid in marked(stage.mark))


def _zygote_of(pid: int) -> int:
    found = procfs.status(pid)
    assert found is not None
    return found.parent


def test_an_unused_runtime_costs_no_process_and_agents_that_agree_share_one(tmp_path: Path) -> None:
    async def act() -> None:
        agents = {"one": GOOD, "two": GOOD, "three": OTHER}
        async with Stage(tmp_path, "pidns", agents=agents) as stage:
            assert _zygotes(stage) == 1
            assert _row(stage, "one")["state"] == "cold"
            started = {
                agent: (await stage.start(script(), seat, agent)).pid
                for seat, agent in enumerate(("default", "one", "two", "three"))
            }
            zygotes = {agent: _zygote_of(pid) for agent, pid in started.items()}
            assert zygotes["one"] == zygotes["two"]
            assert len(set(zygotes.values())) == 3
            assert stage.runtimes == [("one", "two", "warm"), ("three", "warm")]

    play(act())


def test_a_zygote_that_crashes_in_a_loop_holds_up_no_other_runtime(tmp_path: Path) -> None:
    async def act() -> None:
        agents = {"broken": Runtime("crashes"), "good": GOOD}
        async with Stage(tmp_path, "pidns", agents=agents) as stage:
            stage.processes.want("broken")
            for seat, agent in enumerate(("default", "good")):
                await stage.start(script(), seat, agent)
            await until(lambda: ("broken", "failed") in stage.runtimes, "the fault of the broken one")
            row = _row(stage, "broken")
            assert row["state"] == "failed"
            assert "ended before it was ready, 3 times in a row" in row["fault"]
            assert "zygote-crashes-" in row["hint"]
            assert not row["pid"]
            await stage.start(script(), 2, "good")
            # It is tried again only when it is wanted again, and the verdict comes with the next crash.
            count = stage.runtimes.count(("broken", "failed"))
            stage.processes.want("broken")
            await until(lambda: stage.runtimes.count(("broken", "failed")) > count, "another verdict")

    play(act())


def test_a_zygote_that_hangs_holds_up_no_other_runtime(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns", agents={"slow": Runtime("hangs"), "good": GOOD}) as stage:
            stage.processes.start(7, 70, "slow")
            for seat, agent in enumerate(("default", "good")):
                await stage.start(script(), seat, agent)
            assert _row(stage, "slow")["state"] == "cold"
            stage.processes.kill(70)
            assert (await stage.next(WorkerDied)).incarnation == 70

    play(act())


def test_an_agent_that_cannot_be_had_is_reported_at_once_with_its_remedy(tmp_path: Path) -> None:
    async def act() -> None:
        agents = {"wrong": Runtime("refuses", entry="no.such:agent")}
        async with Stage(tmp_path, "pidns", agents=agents) as stage:
            stage.processes.start(0, 1, "wrong")
            died = await stage.next(WorkerDied)
            assert "the entry no.such:agent cannot be imported; install it" in str(died.reason)
            assert stage.runtimes == [("wrong", "failed")]
            row = _row(stage, "wrong")
            assert (row["fault"], row["hint"]) == (
                "the entry no.such:agent cannot be imported",
                "install it",
            )

    play(act())


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("missing", "does not exist"),
        ("folder", "is not an executable file"),
        ("text", "is not an executable file"),
        ("program", "cannot be run as a Python interpreter"),
        ("old", "is Python 3.9, and agents need 3.11 or later"),
    ],
)
def test_a_wrong_interpreter_is_named_with_its_fault(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no program")
    for program, line in (("program", "exit 3"), ("old", "echo cpython-39 3 9 none")):
        (tmp_path / program).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / program).chmod(0o755)

    async def act() -> None:
        python = str(tmp_path / name)
        async with Stage(tmp_path / "home", "pidns", agents={"x": Runtime("good", python)}) as stage:
            stage.processes.want("x")
            await until(lambda: stage.runtimes == [("x", "failed")], "its fault")
            row = _row(stage, "x")
            assert row["fault"].startswith(f"the interpreter {python}" if name == "missing" else python)
            assert row["fault"].endswith(fault)
            assert "hermesctl agents add" in row["hint"]

    play(act())


def test_a_runtime_that_no_agent_uses_any_more_ends_with_its_last_worker(tmp_path: Path) -> None:
    async def act() -> None:
        async with Stage(tmp_path, "pidns", agents={"one": GOOD}) as stage:
            started = await stage.start(script(), 0, "one")
            zygote = _zygote_of(started.pid)
            stage.agents = {"one": OTHER}
            stage.processes.change_agents()
            assert stage.runtimes[-1] == ("one", "cold")
            second = await stage.start(script(), 1, "one")
            assert _zygote_of(second.pid) != zygote
            assert name_of(started.pid), "it still has its turn"
            await stage.kill(started.incarnation)
            await until(lambda: not name_of(zygote), "the end of its zygote")
            assert name_of(second.pid)

    play(act())


def test_a_pause_is_short_again_after_a_zygote_that_worked_and_a_retired_one_ends(tmp_path: Path) -> None:
    async def act() -> None:
        changes: list[Spawner] = []
        made = Spawner(
            cast("Wishes", SimpleNamespace(cell="sweep", limits=Limits(), is_optional=False)),
            tmp_path / "zygote.log",
            Record(tmp_path / "processes"),
            lambda spawner, message, descriptor: None,
            lambda spawner, words, is_certain: None,
            changes.append,
        )
        pauses = []
        for warm_seconds in (None, 1.0, 61.0):
            made._warm_at = None if warm_seconds is None else monotonic() - warm_seconds
            made._rest("it ended")
            pauses.append(made.detail.rpartition(" in ")[2])
            assert made._restart is not None
            made._restart.cancel()
        assert pauses == ["0.2 s", "0.4 s", "0.2 s"]
        made._rest("it ended")
        made.retire()
        restart = made._restart
        assert restart is not None
        assert restart.cancelled()
        assert made.state is SpawnerState.CLOSED

    asyncio.run(act())
