"""The answer to an interrupt of several sessions, and what is kept of interrupts without a disk."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import pytest

from ipc.messages import Done, Killed, Refused
from supervisor.clients import interrupts as interrupts_module
from supervisor.clients.interrupts import Interrupts, Outcome, answer_to
from supervisor.core import effects
from supervisor.core.events import Event, InterruptAsked
from supervisor.core.state import BusyMode, Message, Session
from supervisor.decider import Trouble
from tests.supervisor.test_interrupts import DEATH, Stalled
from tests.waiting import soon

DONE = Outcome(effects.Done(("a/1",)))
REFUSED = Outcome(effects.Refused("a later turn runs", "look", code="conflict"))
FULL = "the disk is full"


def killed(turn: str) -> Outcome:
    return Outcome(effects.Done((turn,)), (Killed(turn, 1, True, 1.0, "pidns"),), FULL)


def test_a_session_that_refuses_does_not_hide_what_was_interrupted_in_the_others() -> None:
    for outcomes in ([REFUSED, DONE], [DONE, REFUSED]):
        answer = answer_to(outcomes)
        assert isinstance(answer, Done)
        assert answer.turns == ("a/1",)
    assert isinstance(answer_to([REFUSED]), Refused)


def test_one_interrupt_that_is_not_recorded_is_said_of_all() -> None:
    for outcomes in ([DONE, killed("b/1")], [killed("b/1"), DONE]):
        answer = answer_to(outcomes)
        assert isinstance(answer, Done)
        assert answer.unwritten == FULL
        assert [each.turn for each in answer.killed] == ["b/1"]


def test_an_answer_has_the_kills_of_the_turns_that_it_names() -> None:
    """There may be more turns than an answer holds."""
    answer = answer_to([killed(f"{'s' * 20_000}{number}/1") for number in range(60)])
    assert isinstance(answer, Done)
    assert 0 < len(answer.turns) < 60
    assert [each.turn for each in answer.killed] == list(answer.turns)


class Answering(Stalled):
    """The answers that follow the commits are given by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Callable[[effects.Answer], None]] = []

    def post(
        self, event: Callable[[], Event], answer: Callable[[effects.Answer], None] | None = None
    ) -> None:
        super().post(event, answer)
        assert answer is not None
        self.answers.append(answer)


class Desk:
    def __init__(self) -> None:
        self.engine = Answering()
        self.killed: list[int] = []
        self.told: list[Outcome] = []
        self.interrupts = Interrupts(self.engine, self.killed.append, self.engine)

    def ask(self) -> None:
        self.interrupts.ask(InterruptAsked("s", "me"), self.told.append)


def play(act: Callable[[Desk], Awaitable[None]]) -> None:
    async def run() -> None:
        await act(Desk())

    asyncio.run(run())


def test_no_proof_is_kept_of_a_process_that_ends_after_its_interrupt_was_recorded() -> None:
    async def act(desk: Desk) -> None:
        desk.ask()
        assert desk.killed == [1]
        desk.engine.posted[0]()
        desk.engine.answers[0](effects.Done(("s/1",)))
        assert len(desk.told) == 1
        desk.interrupts.worker_died(DEATH)
        assert len(desk.told) == 1
        made = desk.interrupts
        assert (made._unrecorded, made._awaiting, made._proofs) == ({}, {}, {})

    play(act)


@pytest.mark.parametrize("has_waiting", [False, True])
def test_an_interrupt_without_effect_does_not_wait_for_the_disk(has_waiting: bool) -> None:
    """A disk may stay full for long, and people ask again and again."""

    async def act(desk: Desk) -> None:
        waiting = deque([Message("m", "x", BusyMode.QUEUE, 1.0)] if has_waiting else [])
        desk.engine.state.sessions["s"] = Session("s", waiting=waiting)
        desk.ask()
        assert [outcome.answer for outcome in desk.told] == [effects.Done((), "nothing runs in session s")]
        assert len(desk.engine.posted) == has_waiting

    play(act)


def test_a_disk_that_becomes_full_while_an_interrupt_waits_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interrupts_module, "_PATIENCE_SECONDS", 0.001)
    monkeypatch.setattr(interrupts_module, "_LOOK_AGAIN_SECONDS", 0.001)

    async def act(desk: Desk) -> None:
        desk.engine.trouble = None
        desk.ask()
        desk.engine.trouble = Trouble(FULL, "make room", 0.0)
        await soon(lambda: desk.killed)
        desk.interrupts.worker_died(DEATH)
        assert [outcome.unwritten for outcome in desk.told] == [FULL]

    play(act)
