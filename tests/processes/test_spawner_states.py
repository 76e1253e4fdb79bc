"""States of one spawner and of the runtimes, without a process: what a second end, want or report changes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ipc.service_messages import Boundary, CellWorks, NoAgent, Sandbox, Warm
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.processes.cells import CellUnavailable, Limits
from supervisor.processes.orphans import Record
from supervisor.processes.procfs import NO_PROCESS
from supervisor.processes.runtimes import Runtime, Runtimes
from supervisor.processes.spawner import Spawner, SpawnerState, Wishes
from supervisor.processes.zygote_client import Program, Zygote
from tests.waiting import soon

SHARED, OTHER = Runtime("shared"), Runtime("other")


def zygote(*_: object) -> Zygote:
    """One that does what it is told at some later time."""
    named = SimpleNamespace(process=NO_PROCESS, end=lambda: None, kill=lambda: None)
    return cast("Zygote", named)


class Spawning:
    """An optional spawner whose zygote is a name only; `changes` and `lost` are its reports."""

    def __init__(self, folder: Path, lease: Any = None) -> None:
        wishes = SimpleNamespace(
            cell="sweep",
            limits=Limits(),
            sandbox=Sandbox,
            hide=tuple,
            boundary=lambda kind: Boundary(None, "", "", b""),
            program=Program(),
            environment={},
            check=lambda: None,
            lease=lease,
            is_optional=True,
            hint="",
        )
        self.changes: list[SpawnerState] = []
        self.lost: list[str] = []
        self.made = Spawner(
            cast("Wishes", wishes),
            folder / "zygote.log",
            Record(folder / "processes"),
            lambda spawner, message, descriptor: None,
            lambda spawner, reason, is_certain: self.lost.append(str(reason)),
            lambda spawner: self.changes.append(spawner.state),
        )

    def warm_up(self) -> None:
        """A zygote has begun."""
        self.made.state, self.made.detail = SpawnerState.WARMING, ""
        self.made.zygote = zygote()
        self.made._record.add(self.made.zygote.process)

    def end_one(self) -> SpawnerState:
        """A zygote begins and ends; return the state after that, without a next one."""
        self.warm_up()
        self.made._ended(1)
        if self.made._restart is not None:
            self.made._restart.cancel()
        return self.made.state


def play(folder: Path, act: Callable[[Spawning], Awaitable[None]], lease: Any = None) -> None:
    async def scene() -> None:
        await act(Spawning(folder, lease))

    asyncio.run(scene())


def test_only_ends_in_a_row_of_zygotes_that_were_never_warm_are_counted(tmp_path: Path) -> None:
    async def act(spawning: Spawning) -> None:
        assert [spawning.end_one() for _ in range(2)] == [SpawnerState.RESTING] * 2
        spawning.warm_up()
        spawning.made._heard(Warm(1), None)
        spawning.made._ended(1)
        assert [spawning.end_one() for _ in range(3)] == [
            SpawnerState.RESTING,
            SpawnerState.RESTING,
            SpawnerState.UNAVAILABLE,
        ]
        assert spawning.made.fault is not None
        assert "3 times in a row" in spawning.made.fault.fault

    play(tmp_path, act)


@pytest.mark.parametrize(("ends_before", "state"), [(0, SpawnerState.RESTING), (2, SpawnerState.UNAVAILABLE)])
def test_a_zygote_whose_end_is_heard_together_with_its_trial_is_replaced_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_before: int, state: SpawnerState
) -> None:
    """On a busy machine both are there when the loop looks: the end was taken for that of the trial."""
    monkeypatch.setattr(Zygote, "start", zygote)

    async def act(spawning: Spawning) -> None:
        for _ in range(ends_before):
            spawning.end_one()
        made = spawning.made
        made.want()
        opening = made._opening
        assert opening is not None
        await soon(lambda: made._trial is not None and made.zygote is not None)
        made._heard(CellWorks(()), None)
        made._ended(1)
        await opening
        assert made.state is state
        assert len(spawning.lost) == ends_before + 1
        assert (made.fault is None) is (state is SpawnerState.RESTING)
        if made._restart is not None:
            made._restart.cancel()

    play(tmp_path, act)


def test_a_warm_zygote_is_not_ended_by_the_limit_of_its_start(tmp_path: Path) -> None:
    async def act(spawning: Spawning) -> None:
        spawning.warm_up()
        limit = asyncio.get_running_loop().call_later(1000, spawning.made._too_slow)
        spawning.made._warm_limit = limit
        spawning.made._heard(Warm(1), None)
        assert limit.cancelled()
        assert spawning.changes == [SpawnerState.READY]

    play(tmp_path, act)


def test_the_limit_of_a_start_ends_with_its_zygote_and_not_the_next_one(tmp_path: Path) -> None:
    async def act(spawning: Spawning) -> None:
        spawning.warm_up()
        limit = asyncio.get_running_loop().call_later(1000, spawning.made._too_slow)
        spawning.made._warm_limit = limit
        spawning.made._ended(1)
        assert limit.cancelled()
        assert spawning.made._restart is not None
        assert not spawning.made._restart.cancelled()

    play(tmp_path, act)


def test_a_close_waits_for_the_zygote_of_now_and_not_for_one_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Zygote, "start", zygote)

    async def act(spawning: Spawning) -> None:
        spawning.end_one()
        spawning.made._start()
        closing = asyncio.create_task(spawning.made.close(1000.0))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not closing.done()
        spawning.made._ended(0)
        await closing

    play(tmp_path, act)


def test_a_zygote_that_has_ended_is_in_the_record_no_more(tmp_path: Path) -> None:
    async def act(spawning: Spawning) -> None:
        spawning.end_one()
        spawning.made._record.close()
        assert not (tmp_path / "processes").exists()

    play(tmp_path, act)


def test_a_fault_of_this_host_that_is_mended_is_told_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [CellUnavailable("no cell here", "mend it")]

    async def trial() -> None:
        if faults:
            raise faults.pop()

    async def act(spawning: Spawning) -> None:
        monkeypatch.setattr(spawning.made, "_try", trial)
        await spawning.made.open()
        assert spawning.made.fault is not None
        await spawning.made.open()
        assert spawning.made.fault is None

    play(tmp_path, act)


def test_a_spawner_that_was_retired_stays_closed_whatever_its_zygote_tells(tmp_path: Path) -> None:
    async def act(spawning: Spawning) -> None:
        spawning.warm_up()
        spawning.made.retire()
        spawning.made._heard(Warm(1), None)
        assert spawning.made.state is SpawnerState.CLOSED
        spawning.made._fail(CellUnavailable("its trial failed", "try again"))
        assert spawning.made.state is SpawnerState.CLOSED
        spawning.made.want()
        assert spawning.made.state is SpawnerState.CLOSED
        assert spawning.made._opening is None
        spawning.made._ended(0)
        assert spawning.made._restart is None
        assert (spawning.changes, len(spawning.lost)) == ([], 1)

    play(tmp_path, act)


def test_an_agent_that_is_wanted_again_is_not_refused_for_the_reason_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(spawning: Spawning) -> None:
        monkeypatch.setattr(spawning.made, "_open_again", lambda: None)
        spawning.warm_up()
        spawning.made._heard(NoAgent("there is no such module", "install it"), None)
        spawning.made._ended(1)
        assert spawning.made.state is SpawnerState.UNAVAILABLE
        spawning.made.want()
        assert spawning.made.fault is None
        assert spawning.end_one() is SpawnerState.RESTING

    play(tmp_path, act)


def test_no_zygote_begins_while_the_lease_of_the_host_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = SimpleNamespace(is_given_up=True)

    async def act(spawning: Spawning) -> None:
        begun: list[bool] = []
        monkeypatch.setattr(spawning.made, "_start", lambda: begun.append(True))
        spawning.made._start_again()
        assert begun == []
        assert spawning.made._restart is not None
        spawning.made._restart.cancel()
        lease.is_given_up = False
        spawning.made._start_again()
        assert begun == [True]

    play(tmp_path, act, lease)


class StandIn:
    """A spawner without a zygote: what it was asked for."""

    def __init__(self) -> None:
        self.state = SpawnerState.CLOSED
        self.fault = None
        self.asked: list[str] = []

    def want(self) -> None:
        self.asked.append("want")

    def retire(self) -> None:
        self.asked.append("retire")

    def give_up_zygote(self) -> None:
        self.asked.append("give up")


class Opened:
    """Runtimes of stand-ins; `told` are their reports."""

    def __init__(self, **agents: Runtime) -> None:
        self.agents = agents
        self.told: list[tuple[str, ...]] = []
        self.stand_ins: list[StandIn] = []
        wishes = Wishes(
            cell="sweep",
            limits=Limits(),
            sandbox=Sandbox,
            hide=tuple,
            boundary=lambda kind: pytest.fail("nothing is started"),
            program=Program(),
            environment={},
            check=lambda: None,
        )
        self.runtimes = Runtimes(
            wishes, self._make, lambda: self.agents, lambda agent: Sandbox(), "packages", self._report
        )

    def _make(self, wishes: Wishes, log: str) -> Spawner:
        self.stand_ins.append(StandIn())
        return cast("Spawner", self.stand_ins[-1])

    def _report(self, changed: RuntimeChanged) -> None:
        self.told.append((*sorted(changed.agents), changed.state))


def test_an_agent_that_wants_a_runtime_which_is_warm_already_is_told_so() -> None:
    opened = Opened(one=SHARED, two=SHARED)
    opened.runtimes.want("one")
    assert opened.told == []
    _, shared = opened.stand_ins
    shared.state = SpawnerState.READY
    opened.runtimes.changed(cast("Spawner", shared))
    opened.runtimes.want("two")
    assert opened.told == [("one", "two", "warm"), ("two", "warm")]


def test_a_runtime_without_agents_is_retired_and_forgotten_when_its_last_worker_has_ended() -> None:
    opened = Opened(one=SHARED)
    spawner = opened.runtimes.of("one")
    opened.agents = {"one": OTHER}
    opened.runtimes.reread()
    opened.runtimes.end_unused([spawner])
    _, shared = opened.stand_ins
    assert shared.asked == ["want", "retire"]
    assert spawner in opened.runtimes.all
    for _ in range(2):
        opened.runtimes.end_unused([])
    assert shared.asked == ["want", "retire", "give up"]
    assert opened.runtimes.all == (opened.runtimes.default,)
