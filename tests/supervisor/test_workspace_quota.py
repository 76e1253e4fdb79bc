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
from supervisor.core.state import Session, State
from supervisor.journal.errors import JournalUnreachable
from supervisor.telemetry.log import Log
from supervisor.workers import workspace_quota
from supervisor.workers.workspace_quota import WorkspaceCare
from supervisor.workers.workspaces import Workspaces
from tests.supervisor.fixed_clock import FixedClock
from tests.supervisor.held_asking import HeldAsking
from tests.test_agent_settings import load_text
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
        self.live = Live(Settings())
        self.workspaces = Workspaces(folder, self._check)
        for session in ("s", "over"):
            self.workspaces.make(session)

    def care(self) -> WorkspaceCare:
        log = Log(FixedClock(), io.StringIO())
        return WorkspaceCare(
            workspaces=self.workspaces,
            known=self,
            live=self.live,
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


def test_nothing_is_known_of_the_size_of_a_session_that_was_away(tmp_path: Path) -> None:
    """It may have grown under another host, or a person: that is not the doing of its next turn."""

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        running = list(workspace_quota._running(desk.state))
        care._compare(running, ({"s": 1}, 0.0))
        session = desk.state.sessions.pop("s")
        care._compare([], ({}, 0.0))
        desk.state.sessions["s"] = session
        care._compare(running, ({"s": QUOTA_BYTES + 1}, 0.0))
        assert not desk.posted

    play(tmp_path, act)


@pytest.mark.parametrize("use", ["in memory", "bound to a worker"])
def test_the_workspace_of_a_session_that_is_in_use_again_stays(tmp_path: Path, use: str) -> None:
    """A message has come after the journal was asked, or its worker is not gone yet."""

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        care.prune()
        await soon(lambda: desk.asking.is_asked)
        desk.asking.read()
        if use == "in memory":
            desk.state.sessions["over"] = Session("over")
        else:
            desk.state.seat_of["over"] = 0
        desk.asking.tell()
        assert desk.workspaces.path("over").exists()
        await soon(lambda: not care._is_pruning)

    play(tmp_path, act)


def test_a_folder_that_is_no_workspace_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        care.prune()
        await soon(lambda: desk.asking.is_asked)
        desk.asking.answer()
        await soon(lambda: not care._is_pruning)

    play(tmp_path, act)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".git", "s"]


def test_workspaces_are_measured_again_after_a_look_at_which_no_turn_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_quota, "_PAUSE_SECONDS", 0.001)
    sizes = iter([1])
    monkeypatch.setattr(workspace_quota, "size_of", lambda path: next(sizes, QUOTA_BYTES + 1))

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        seat, _ = desk.state.busy.popitem()
        care._look()
        desk.state.busy[seat] = None
        await soon(lambda: desk.posted)

    play(tmp_path, act)


def test_what_a_link_leads_to_is_no_part_of_the_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    (workspace / "link").symlink_to(tmp_path / "large")
    assert workspace_quota.size_of(workspace) < 100_000


def test_a_measurement_that_took_long_is_followed_by_a_long_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        monkeypatch.setattr(care, "_look_after", pauses.append)
        care._compare([], ({}, 3.0))

    play(tmp_path, act)
    assert pauses == [2.0 + 60.0]


def test_the_quota_is_that_of_the_agent_and_its_excess_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "workspaces").mkdir()

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        desk.live.settings = load_text(tmp_path, "[agents.default.sandbox]\nquota = '1MiB'\n")
        running = list(workspace_quota._running(desk.state))
        for size in (1, 2**21, 2**63):
            care._compare(running, ({"s": size}, 0.0))
        told = [event.error for event in desk.posted if isinstance(event, Failed)]
        assert told == [
            "its workspace holds 2 MiB, the quota is 1 MiB",
            "its workspace holds folders nested deeper than 200, the quota is 1 MiB",
        ]

    play(tmp_path / "workspaces", act)


def test_what_an_earlier_life_could_not_remove_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".gone-0123" / "inside").mkdir(parents=True)

    async def act(desk: Desk, care: WorkspaceCare) -> None:
        desk.workspaces.path("over").rmdir()
        care.prune()
        await soon(lambda: desk.asking.is_asked)
        desk.asking.answer()
        await soon(lambda: not care._is_pruning)

    play(tmp_path, act)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
