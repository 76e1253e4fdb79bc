"""Upkeep of workspaces goes on after a failure, and ends only a turn under which its workspace grows."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.containment import Containment
from supervisor.core.events import Event, Failed, WorkerUnreachable
from supervisor.core.policy import Policy
from supervisor.core.state import State
from supervisor.journal.errors import JournalUnreachable
from supervisor.telemetry.log import Log
from supervisor.workers import workspace_quota
from supervisor.workers.workspace_quota import WorkspaceCare
from supervisor.workers.workspaces import Workspaces
from tests.supervisor.fixed_clock import FixedClock
from tests.supervisor.held_asking import HeldAsking
from tests.waiting import soon
from tests.world import World

AWAY = JournalUnreachable("the server does not answer", "look at it")
QUOTA_BYTES = Settings().sandbox_of("default").quota_bytes


class Desk:
    """The workspaces of a world in which turn s/1 runs; session `over` is pruned."""

    def __init__(self, folder: Path) -> None:
        self.world = World(Policy(busy_seats=1, spares=0))
        self.world.worker_ready()
        self.world.says("s", "hello")
        self.posted: list[Event] = []
        self.contained: list[str] = []
        self.asking = HeldAsking()
        self.is_broken = False
        self.workspaces = Workspaces(folder, self._check)
        for session in ("s", "over"):
            self.workspaces.make(session)

    def care(self) -> WorkspaceCare:
        log = Log(FixedClock(), io.StringIO())
        return WorkspaceCare(
            workspaces=self.workspaces,
            known=self,
            live=Live(Settings()),
            engine=self,
            log=log,
            contain=Containment(log, lambda: 0.0, self.contained.append),
            asking=self.asking,
        )

    @property
    def state(self) -> State:
        return self.world.state

    def post(self, event: Event) -> None:
        self.posted.append(event)

    def is_forgotten(self, session: str) -> bool:
        return session == "over"

    def long_names(self, characters_min: int) -> list[str]:
        return []

    def _check(self, folder: Path) -> None:
        if self.is_broken:
            raise ValueError("not foreseen")


def play(folder: Path, act: Callable[[Desk, WorkspaceCare], Awaitable[None]]) -> None:
    async def run() -> None:
        desk = Desk(folder)
        await act(desk, desk.care())

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["an exception", "the journal is away"])
def test_workspaces_are_pruned_after_a_pruning_that_failed(tmp_path: Path, fault: str) -> None:
    async def act(desk: Desk, care: WorkspaceCare) -> None:
        desk.is_broken = fault == "an exception"
        care.prune()
        care.prune()
        if desk.is_broken:
            await soon(lambda: desk.contained == ["schedule"])
            desk.is_broken = False
        else:
            await soon(lambda: desk.asking.is_asked)
            desk.asking.fail(AWAY)
        care.prune()
        await soon(lambda: desk.asking.is_asked)
        desk.asking.answer()
        assert not desk.workspaces.path("over").exists()
        assert desk.workspaces.path("s").exists()
        await soon(lambda: not care._is_pruning)

    play(tmp_path, act)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_workspaces_are_measured_after_a_measurement_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_quota, "_PAUSE_SECONDS", 0.001)
    sizes = iter([None, 1, 2, QUOTA_BYTES + 1])

    def size_of(path: Path) -> int:
        size = next(sizes, QUOTA_BYTES + 1)
        if size is None:
            raise ValueError("not foreseen")
        return size

    monkeypatch.setattr(workspace_quota, "size_of", size_of)

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        care.open()
        await soon(lambda: desk.posted)
        failed, unreachable = desk.posted
        assert isinstance(failed, Failed)
        assert isinstance(unreachable, WorkerUnreachable)
        assert (failed.turn, failed.again) == ("s/1", False)
        assert desk.contained == ["schedule"]

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("before", "now", "is_ended"),
    [
        (None, QUOTA_BYTES + 1, False),
        (1, QUOTA_BYTES, False),
        (1, QUOTA_BYTES + 1, True),
        (QUOTA_BYTES + 9, QUOTA_BYTES + 8, False),
        (QUOTA_BYTES + 9, QUOTA_BYTES + 10, True),
    ],
    ids=["not measured before", "within", "beyond", "tidies up", "grows on"],
)
def test_only_a_turn_under_which_it_grows_beyond_the_quota_is_ended(
    tmp_path: Path, before: int | None, now: int, is_ended: bool
) -> None:
    async def act(desk: Desk, care: WorkspaceCare) -> None:
        running = list(workspace_quota._running(desk.state))
        if before is not None:
            care._compare(running, ({"s": before}, 0.0))
        assert not desk.posted
        care._compare(running, ({"s": now}, 0.0))
        assert bool(desk.posted) == is_ended

    play(tmp_path, act)


def test_a_turn_that_ended_during_the_measurement_is_not_ended_again(tmp_path: Path) -> None:
    async def act(desk: Desk, care: WorkspaceCare) -> None:
        running = list(workspace_quota._running(desk.state))
        care._compare(running, ({"s": 1}, 0.0))
        desk.world.says("s", "and then")
        desk.world.finishes("s/1")
        care._compare(running, ({"s": QUOTA_BYTES + 1}, 0.0))
        assert not desk.posted

    play(tmp_path, act)
