"""A turn reaches its worker after the workspace has: frames keep their order, and a fault drops them."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ipc import messages as wire
from ipc.errors import PlaceError
from supervisor.containment import Containment
from supervisor.core.effects import AnswerTurn, AssignTurn, BindWorker, SteerTurn
from supervisor.core.events import Event, Failed, WorkerReady, WorkerUnreachable
from supervisor.core.state import Who
from supervisor.workers.assignment import Assignment, _models

WHO, OTHER = Who(1, 0, 7), Who(1, 1, 8)
BIND = BindWorker(WHO, "s")
ASSIGN = AssignTurn(WHO, "s", "s/1", 1, "default", ())
STEER = SteerTurn(WHO, "s/1", 1, "m2", "also this")


class Stage:
    """The rooms around an assignment; `done` says that a workspace is in its cell."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.sent: list[AssignTurn | SteerTurn | AnswerTurn] = []
        self.posted: list[Event] = []
        self.contained: list[str] = []
        self.is_broken = False
        self.bound: list[tuple[int, Path]] = []
        self.done: Callable[[str], None] = lambda fault: None
        self._fault = fault
        contain = Containment(self, lambda: 0.0, self.contained.append)
        self.assignment = Assignment(self, self._bind, self, self.posted.append, contain)

    @property
    def unreachable(self) -> list[tuple[Who, str]]:
        return [(each.who, str(each.reason)) for each in self.posted if isinstance(each, WorkerUnreachable)]

    def write(self, verb: str, **fields: Any) -> None:
        """What is contained is logged; `contained` has it."""

    def make(self, session: str) -> Path:
        if self._fault is not None:
            raise self._fault
        return Path("/workspaces", session)

    def _bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None:
        self.bound.append((incarnation, workspace))
        self.done = done

    def assign(self, effect: AssignTurn) -> None:
        if self.is_broken:
            raise ValueError
        self.sent.append(effect)

    def answer(self, effect: AnswerTurn) -> None:
        if self.is_broken:
            raise ValueError
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
        assert stage.unreachable == [(WHO, "it cannot have its session's workspace: no such device")]
        await asyncio.sleep(0)
        assert stage.sent == []

    play(act)


def test_a_workspace_that_cannot_be_made_costs_the_turn_that_was_decided_with_it() -> None:
    async def act() -> None:
        stage = Stage(PlaceError("the disk is full", "look at it"))
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        await asyncio.sleep(0)
        assert stage.sent == []
        assert stage.unreachable == [(WHO, "it cannot have its session's workspace: the disk is full")]
        assert stage.contained == []

    play(act)


def test_an_exception_while_binding_costs_the_worker() -> None:
    async def act() -> None:
        stage = Stage(ValueError("words of a person"))
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        await asyncio.sleep(0)
        assert stage.sent == []
        reason = "it cannot have its session's workspace: an internal error (ValueError)"
        assert stage.unreachable == [(WHO, reason)]
        assert stage.contained == ["worker"]

    play(act)


def test_an_exception_while_a_turn_is_handed_over_fails_it_and_keeps_the_worker() -> None:
    """Also when the frame had waited for the workspace: then no effect of the engine is being performed."""

    async def act() -> None:
        stage = Stage()
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        stage.is_broken = True
        stage.done("")
        failed, ready = stage.posted
        assert isinstance(failed, Failed)
        assert (failed.who, failed.turn, failed.attempt, failed.again) == (WHO, "s/1", 1, False)
        assert failed.error == "it could not be given to a worker: an internal error (ValueError)"
        assert ready == WorkerReady(WHO)
        assert stage.contained == ["turn"]

    play(act)


def test_nothing_is_kept_of_a_binding_that_failed() -> None:
    async def act() -> None:
        stage = Stage()
        stage.assignment.bind(BIND)
        stage.assignment.assign(ASSIGN)
        stage.done("no such folder")
        await asyncio.sleep(0)
        assert stage.assignment._waiting == {}
        assert stage.sent == []

    play(act)


def test_only_the_probe_of_an_endpoint_that_is_away_is_asked() -> None:
    first = wire.ModelEndpoint("http://127.0.0.1:9/v1", "m", "key", id="first")
    second = wire.ModelEndpoint("http://127.0.0.1:8/v1", "n", id="second")
    assert _models((first, second), ASSIGN) == (first, second)
    assert _models((first, second), replace(ASSIGN, away=("first",))) == (second,)
    probing = replace(ASSIGN, away=("first", "second"), probe="first")
    assert _models((first, second), probing) == (msgspec.structs.replace(first, away=True),)
    assert _models((), ASSIGN) == (wire.ModelEndpoint("", ""),)
