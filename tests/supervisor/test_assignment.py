"""A turn reaches its worker after the workspace has: frames keep their order, and a fault drops them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc import messages as wire
from ipc.codec import FRAME_BYTES_MAX
from ipc.errors import PlaceError
from ipc.isolation import KIND, SESSIONS
from supervisor.config.agent_settings import Agent
from supervisor.config.budget_settings import Budget
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.containment import Containment
from supervisor.core.effects import AnswerTurn, AssignTurn, BindWorker, SteerTurn
from supervisor.core.events import Event, Failed, WorkerReady, WorkerUnreachable
from supervisor.core.state import BusyMode, Message, Who
from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.history import AnswerPast, AttemptPast, ToolPast, TurnPast
from supervisor.journal.sums import Used
from supervisor.workers import assignment
from supervisor.workers.assignment import AssignBuilder, Assignment, _models
from tests.supervisor.held_asking import HeldAsking
from tests.waiting import soon

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
        self.prepared: list[Callable[[], None]] = []
        self.assignment = Assignment(self, self._bind, self, self.posted.append, contain)
        self.patient = Assignment(self, self._bind, self, self.posted.append, contain, self._prepare)

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

    def _prepare(self, effect: AssignTurn, then: Callable[[], None]) -> None:
        """The journal has what the Assign needs when the test calls back."""
        self.prepared.append(then)

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


@pytest.mark.parametrize("is_bound", [False, True], ids=["with its workspace", "bound before"])
def test_frames_wait_for_the_past_of_their_turn_and_keep_their_order(is_bound: bool) -> None:
    async def act() -> None:
        stage = Stage()
        if not is_bound:
            stage.patient.bind(BIND)
        stage.patient.assign(ASSIGN)
        stage.patient.steer(STEER)
        if not is_bound:
            stage.done("")
        later = replace(STEER, message="m3")
        stage.patient.steer(later)
        assert stage.sent == []
        [then] = stage.prepared
        then()
        assert stage.sent == [ASSIGN, STEER, later]
        assert stage.patient._waiting == {}

    play(act)


def test_an_answer_that_cannot_be_sent_costs_the_worker_that_waits_for_it() -> None:
    """Its next attempt gets the answer."""

    async def act() -> None:
        stage = Stage()
        stage.is_broken = True
        stage.assignment.answer(AnswerTurn(WHO, "s/1", 1, "q", 1, "yes"))
        [(who, _)] = stage.unreachable
        assert who == WHO
        assert stage.contained == ["turn"]

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


class Past:
    """A journal with two ended turns, an attempt that was lost, and an answer; it notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def history(self, session: str, before_turn: int, turns_max: int, bytes_max: int) -> Sequence[TurnPast]:
        self.asked.append((session, before_turn))
        return [TurnPast("s/1", 1, ("hello",), (AttemptPast("hi", (), ""),))]

    def tried(self, turn: str, before_attempt: int, bytes_max: int) -> Sequence[AttemptPast]:
        self.asked.append((turn, before_attempt))
        classes = ("pure", "of tomorrow")
        calls = tuple(ToolPast(each, "shell", "{}", each, None, False, 0) for each in classes)
        return [AttemptPast("so far", calls, "lost")]

    def answers(self, turn: str, bytes_max: int) -> Sequence[AnswerPast]:
        return [AnswerPast("approve", "may it?", "yes", "call", 1)]

    def used(self, session: str, turn: str) -> Used:
        raise AssertionError("there are no budgets")

    def is_approved(self, question: str, session: str | None) -> bool:
        raise AssertionError("there are no budgets")


def builder(past: Past, asking: HeldAsking | None = None) -> AssignBuilder:
    return AssignBuilder(past, Live(Settings()), lambda names: (), asking)


def message(text: str, instructions: str = "") -> Message:
    return Message(text, text, BusyMode.QUEUE, 1.0, instructions=instructions)


SECOND = replace(ASSIGN, turn="s/2", attempt=2, messages=(message("one", "old"), message("two", "new")))


def test_an_assign_has_the_past_before_its_turn_and_before_its_attempt() -> None:
    past = Past()
    made = builder(past)(SECOND)
    assert past.asked == [("s", 2), ("s/2", 2)]
    assert [turn.messages for turn in made.history] == [("hello",)]
    [tried] = made.tried
    assert [call.repeat for call in tried.tools] == ["pure", "unsafe"], "an unknown class is the most careful"
    assert made.answers == (wire.PastAnswer("approve", "may it?", "yes", "call", 1),)
    assert made.agent.options["instructions"].endswith("new"), "those of the newest message"


def test_an_assign_waits_for_a_journal_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignment, "_ASK_AGAIN_SECONDS", 0.001)

    async def act() -> None:
        past, asking, made = Past(), HeldAsking(), list[wire.Assign]()
        build = builder(past, asking)
        third = replace(SECOND, turn="s/3", attempt=1)
        for effect in (SECOND, third):
            build.prepare(effect, lambda effect=effect: made.append(build(effect)))  # type: ignore[misc]
        asking.fail(JournalUnreachable("the server does not answer", "look at it"))
        asking.answer()
        await soon(lambda: asking.is_asked)
        asking.answer()
        assert [(each.turn, len(each.tried)) for each in made] == [("s/3", 0), ("s/2", 1)]
        assert past.asked == [("s", 3), ("s", 2), ("s/2", 2)], "each is read once"

    play(act)


def test_an_assign_tells_how_each_call_and_each_attempt_has_ended() -> None:
    """A call that failed, and an attempt that was cut, are not shown to the agent as done."""
    past = Past()
    [tried] = builder(past)(SECOND).tried
    assert (tried.text, tried.cut) == ("so far", "lost")
    assert [(call.call, call.name, call.ok, call.offset) for call in tried.tools] == [
        ("pure", "shell", False, 0),
        ("of tomorrow", "shell", False, 0),
    ]


def test_an_assign_goes_on_where_the_text_of_earlier_attempts_ended() -> None:
    assert builder(Past())(replace(SECOND, offset=12)).offset == 12


def test_an_assign_has_all_messages_in_their_order() -> None:
    assert [each.text for each in builder(Past())(SECOND).messages] == ["one", "two"]


def test_the_first_model_that_can_be_asked_comes_first_and_the_others_are_its_fallback() -> None:
    found = tuple(wire.ModelEndpoint(f"http://127.0.0.1:{n}/v1", "m", id=str(n)) for n in (7, 8, 9))
    made = AssignBuilder(Past(), Live(Settings()), lambda names: found)(replace(SECOND, away=("7",)))
    assert (made.model, made.fallback) == (found[1], found[2:])


def test_the_agent_of_a_session_that_has_moved_is_told_from_where() -> None:
    asked = list[tuple[str, str]]()

    def came_from(session: str, turn: str) -> str:
        asked.append((session, turn))
        return "east"

    made = AssignBuilder(Past(), Live(Settings()), lambda names: (), came_from=came_from)(SECOND)
    instructions = made.agent.options["instructions"]
    assert asked == [("s", "s/2")]
    assert "new\n\nThis session has moved from the host east" in instructions
    assert "moved" not in builder(Past())(SECOND).agent.options["instructions"]


def test_a_session_that_tries_the_isolation_gets_that_agent_instead_of_its_own() -> None:
    made = builder(Past())(replace(ASSIGN, session=f"{SESSIONS}default"))
    assert made.agent.kind == KIND


def test_an_assign_has_the_secrets_of_its_agent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_MAIL", "m-1")
    monkeypatch.setenv("TOKEN_OF_WIKI", "w-1")
    agents = {"default": Agent(env_from=("TOKEN_OF_MAIL",)), "other": Agent(env_from=("TOKEN_OF_WIKI",))}
    made = AssignBuilder(Past(), Live(Settings(agents=agents)), lambda names: ())(ASSIGN)
    assert made.secrets == {"TOKEN_OF_MAIL": "m-1"}


class Spent(Past):
    """A journal whose turns have used tokens."""

    def used(self, session: str, turn: str) -> Used:
        return Used("2026-01-01", {"turn": {"tokens": 5, "cost": 0}, "session": {"tokens": 2, "cost": 0}})


def test_an_assign_has_the_limits_of_its_budgets() -> None:
    settings = Settings(budgets={"session": Budget(tokens_max=100)})
    made = AssignBuilder(Spent(), Live(settings), lambda names: ())(ASSIGN)
    assert [(each.scope, each.what, each.most, each.used) for each in made.limits] == [
        ("session", "tokens", 100, 7)
    ]


def test_the_past_of_a_turn_that_was_not_sent_is_not_kept() -> None:
    """A turn that ended while its past was read would hold a megabyte for ever."""
    asking = HeldAsking()
    build = builder(Past(), asking)
    for turn in ("s/2", "s/3"):
        build.prepare(replace(SECOND, turn=turn), lambda: None)
        asking.answer()
    assert list(build._prepared) == [("s/3", 2)]


def test_the_past_that_an_assign_has_is_long_and_bounded() -> None:
    assert assignment.HISTORY_TURNS_MAX == 200
    parts = (assignment.SAY_BYTES_MAX, assignment.TRIED_BYTES_MAX, assignment.HISTORY_BYTES_MAX)
    rest = FRAME_BYTES_MAX - sum(parts) - assignment.ANSWERS_BYTES_MAX
    assert assignment.ANSWERS_BYTES_MAX == 256 * 1024
    assert rest >= 512 * 1024, "names and options of the agent have room in the frame"
