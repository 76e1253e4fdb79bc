"""A turn reaches its worker after the workspace has: frames keep their order, and a fault drops them."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from ipc.errors import PlaceError
from supervisor.assignment import Assignment
from supervisor.core.effects import AssignTurn, BindWorker, SteerTurn
from supervisor.core.events import WorkerUnreachable
from supervisor.core.model import Who

WHO, OTHER = Who(1, 0, 7), Who(1, 1, 8)
BIND = BindWorker(WHO, "s")
ASSIGN = AssignTurn(WHO, "s", "s/1", 1, "default", ())
STEER = SteerTurn(WHO, "s/1", 1, "m2", "also this")


class Stage:
    """The rooms around an assignment; `done` says that a workspace is in its cell."""

    def __init__(self, fault: str = "") -> None:
        self.sent: list[AssignTurn | SteerTurn] = []
        self.posted: list[WorkerUnreachable] = []
        self.bound: list[tuple[int, Path]] = []
        self.done: Callable[[str], None] = lambda fault: None
        self._fault = fault
        self.assignment = Assignment(self, self._bind, self, self.posted.append)

    def make(self, session: str) -> Path:
        if self._fault:
            raise PlaceError(self._fault, "look at it")
        return Path("/workspaces", session)

    def _bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None:
        self.bound.append((incarnation, workspace))
        self.done = done

    def assign(self, effect: AssignTurn) -> None:
        self.sent.append(effect)

    def steer(self, effect: SteerTurn) -> None:
        self.sent.append(effect)


def play(act: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(act())


def test_frames_wait_for_the_workspace_and_keep_their_order() -> None:
    async def act() -> None:
        stage = Stage()
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        stage.assignment.steer(STEER)
        assert stage.bound == [(7, Path("/workspaces/s"))]
        assert stage.sent == []
        stage.assignment.assign(AssignTurn(OTHER, "t", "t/1", 1, "default", ()))
        assert [each.who for each in stage.sent] == [OTHER]
        stage.done("")
        assert stage.sent[1:] == [ASSIGN, STEER]
        stage.assignment.steer(STEER)
        assert len(stage.sent) == 4

    play(act)


def test_a_worker_that_cannot_have_the_workspace_gets_no_turn() -> None:
    async def act() -> None:
        stage = Stage()
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        stage.done("no such device")
        assert [(each.who, "no such device" in each.reason) for each in stage.posted] == [(WHO, True)]
        await asyncio.sleep(0)
        assert stage.sent == []

    play(act)


def test_a_workspace_that_cannot_be_made_costs_the_turn_that_was_decided_with_it() -> None:
    async def act() -> None:
        stage = Stage("the disk is full")
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        await asyncio.sleep(0)
        assert stage.sent == []
        assert "the disk is full" in stage.posted[0].reason

    play(act)
