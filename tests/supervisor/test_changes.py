"""Requests that change something, with stand-ins around them: what is posted, refused, and asked of whom."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from ipc.bounds import MESSAGE_BYTES_MAX
from ipc.messages import (
    Answer,
    Begin,
    Done,
    Drain,
    Exchange,
    Interrupt,
    Queue,
    Refused,
    Request,
    Respond,
    Retry,
    Stop,
    Submit,
    Transcribe,
    Undrain,
)
from supervisor.clients.changes import Change, Changes, Past
from supervisor.clients.interrupts import Interrupts
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core import effects, events
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, Session, State, Turn
from supervisor.decider import Trouble
from supervisor.journal.asking import Failed, InPlace
from supervisor.journal.ownership import Elsewhere, Found, Here
from supervisor.journal.reader import AskedOf
from tests.no_containment import uncontained

FULL = Trouble("the disk is full", "make room", 0.0)


class Owners:
    """Hosts that share the journal: `where` has every session, but those of `leaving` are on the way."""

    def __init__(self) -> None:
        self.where: Found = Here()
        self.leaving: set[str] = set()
        self.hosts = {"other"}
        self.asked: list[tuple[str, str]] = []

    def claim(self, session: str, then: Callable[[Found], None], failed: Failed) -> None:
        then(self.where)

    def ask_host(self, name: str, state: str, then: Callable[[bool], None], failed: Failed) -> None:
        self.asked.append((name, state))
        then(name in self.hosts)

    def is_leaving(self, session: str) -> bool:
        return session in self.leaving


class Engine:
    """Posted events are kept; a test answers them."""

    commit_seconds = 0.0

    def __init__(self) -> None:
        self.state = State(Policy())
        self.trouble: Trouble | None = None
        self.posted: list[events.Event] = []
        self.answers: list[Callable[[effects.Answer], None]] = []

    def post(self, event: Any, answer: Callable[[effects.Answer], None] | None = None) -> None:
        self.posted.append(event() if callable(event) else event)
        assert answer is not None
        self.answers.append(answer)

    def has_its_turn(self, incarnation: int) -> bool:
        return True


class Desk:
    """Requests and what became of them."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.owners = Owners()
        self.full: Trouble | None = None
        self.clip_fault: tuple[str, str] | None = None
        self.turn: AskedOf | None = None
        self.clip: tuple[str, str, str] | None = None
        self.replies: list[Answer] = []
        self.done: list[str] = []
        self._frames: list[Callable[[], None]] = []
        self.changes = Changes(
            engine=self.engine,
            interrupts=Interrupts(self.engine, lambda incarnation: None, self),
            trouble=lambda: self.full,
            views=self,
            past=cast("Past", self),
            asking=InPlace(),
            clip_fault=lambda clip: self.clip_fault,
            transcribe=lambda clip, key, reply: self.done.append(f"transcribe {clip}"),
            live=Live(Settings()),
            after_frames=self._frames.append,
            stop=lambda: self.done.append("stop"),
            hand_over=lambda reply: self.done.append("hand over"),
            refused=lambda: self.done.append("refused"),
            contain=uncontained(),
            owners=self.owners,
        )

    def ask(self, request: Change) -> Answer | None:
        """Return the answer that is given at once, if there is one."""
        before = len(self.replies)
        self.changes.ask(request, self.replies.append)
        return self.replies[-1] if len(self.replies) > before else None

    def read_frames(self) -> None:
        for each in self._frames:
            each()

    def write(self, verb: str, **fields: object) -> None:
        """The log."""

    def queue(self, session: str, after: str, give: Callable[[Any], None], failed: Failed) -> None:
        self.done.append(f"list {session}")

    def asked_of(self, turn: str) -> AskedOf | None:
        return self.turn

    def clip_of(self, message: str) -> tuple[str, str, str] | None:
        return self.clip


def play(act: Callable[[Desk], None]) -> None:
    async def run() -> None:
        act(Desk())

    asyncio.run(run())


def refusal(answer: Answer | None) -> tuple[str, str]:
    assert isinstance(answer, Refused)
    return answer.error, answer.code


@pytest.mark.parametrize(
    "request_",
    [
        Submit("s", "hello", "k"),
        Submit("s", "", "k", clip="c"),
        Respond("s/1?1", "yes", "me"),
        Queue("s", "clear"),
        Retry("s/1", "k"),
        Drain(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_change_is_refused_while_nothing_can_be_written(request_: Change) -> None:
    def act(desk: Desk) -> None:
        desk.full = FULL
        assert desk.ask(request_) == Refused("the disk is full", "make room", 5.0, "unavailable")
        assert not desk.engine.posted

    play(act)


@pytest.mark.parametrize(
    ("request_", "done"),
    [(Queue("s"), "list s"), (Transcribe("c", "k"), "transcribe c"), (Stop(), "stop")],
    ids=["list", "transcribe", "stop"],
)
def test_what_needs_no_commit_is_done_while_nothing_can_be_written(request_: Change, done: str) -> None:
    def act(desk: Desk) -> None:
        desk.full = desk.engine.trouble = FULL
        assert not isinstance(desk.ask(request_), Refused)
        assert desk.done == [done]
        assert not desk.engine.posted

    play(act)


def test_a_turn_is_interrupted_while_nothing_can_be_written() -> None:
    def act(desk: Desk) -> None:
        desk.full = desk.engine.trouble = FULL
        answer = desk.ask(Interrupt("s", "me"))
        assert isinstance(answer, Done)
        assert answer.note == "nothing runs in session s"

    play(act)


def test_a_stop_is_posted_behind_the_frames_of_workers_and_ends_the_process_after_its_answer() -> None:
    def act(desk: Desk) -> None:
        assert desk.ask(Stop()) is None
        assert not desk.engine.posted
        desk.read_frames()
        assert desk.engine.posted == [events.StopAsked()]
        assert not desk.done
        desk.engine.answers[0](effects.Done())
        assert desk.done == ["stop"]
        assert desk.replies == [Done()]

    play(act)


def test_an_interrupt_of_all_leaves_out_sessions_without_a_turn_and_those_that_leave() -> None:
    def act(desk: Desk) -> None:
        sessions = desk.engine.state.sessions
        for name in ("here", "leaving"):
            sessions[name] = Session(name, turn=Turn(f"{name}/1", name, (), 0.0))
        sessions["idle"] = Session("idle")
        desk.owners.leaving = {"leaving"}
        desk.ask(Interrupt(None, "me", expect_turn="other/7", drop=True))
        assert desk.engine.posted == [events.InterruptAsked("here", "me", None, drop=True)]

    play(act)


def test_an_interrupt_of_several_is_answered_once_after_the_last() -> None:
    def act(desk: Desk) -> None:
        for name in ("a", "b"):
            desk.engine.state.sessions[name] = Session(name, turn=Turn(f"{name}/1", name, (), 0.0))
        assert desk.ask(Interrupt(None, "me")) is None
        first, second = desk.engine.answers
        first(effects.Done(("a/1",)))
        assert not desk.replies
        second(effects.Done(("b/1",)))
        assert desk.replies == [Done(("a/1", "b/1"))]

    play(act)


@pytest.mark.parametrize("request_", [Submit("s", "", "k", clip="c"), Transcribe("c", "k")])
def test_a_clip_that_cannot_be_used_is_refused(request_: Change) -> None:
    def act(desk: Desk) -> None:
        desk.clip_fault = ("there is no clip c", "store it")
        assert refusal(desk.ask(request_)) == ("there is no clip c", "invalid")
        assert not desk.engine.posted
        assert not desk.done

    play(act)


@pytest.mark.parametrize(
    ("clip", "error"),
    [(None, ("message m is not known", "unknown")), (("s", "done", "c"), ("message m is done", "conflict"))],
    ids=["unknown", "done"],
)
def test_only_a_clip_whose_transcript_failed_is_retried(
    clip: tuple[str, str, str] | None, error: tuple[str, str]
) -> None:
    def act(desk: Desk) -> None:
        desk.clip = clip
        assert refusal(desk.ask(Retry("m", "k"))) == error
        assert not desk.engine.posted
        desk.clip = ("s", "failed", "c")
        assert desk.ask(Retry("m", "k")) is None
        [event] = desk.engine.posted
        assert isinstance(event, events.VoiceArrived)
        assert (event.session, event.clip, event.busy) == ("s", "c", BusyMode.QUEUE)

    play(act)


@pytest.mark.parametrize(("agent", "again"), [("gone", ""), ("default", "default")])
def test_a_turn_is_retried_with_what_it_was_asked_and_with_its_agent_if_that_is_there(
    agent: str, again: str
) -> None:
    def act(desk: Desk) -> None:
        desk.turn = AskedOf("s", "failed", ("one", "two"), agent, "Rhyme.")
        assert desk.ask(Retry("s/1", "k")) is None
        [event] = desk.engine.posted
        assert isinstance(event, events.TextArrived)
        assert (event.text, event.retries, event.busy) == ("one\n\ntwo", "s/1", BusyMode.QUEUE)
        assert (event.agent, event.instructions) == (again, "Rhyme.")

    play(act)


@pytest.mark.parametrize("turn", ["s/1", "m"], ids=["of a turn", "of a clip"])
def test_a_retry_in_a_session_that_has_moved_is_to_be_sent_again(turn: str) -> None:
    def act(desk: Desk) -> None:
        desk.turn = AskedOf("s", "interrupted", ("one",), "", "")
        desk.clip = ("s", "failed", "c")
        desk.owners.where = Elsewhere(2, "other")
        answer = desk.ask(Retry(turn, "k"))
        assert refusal(answer) == ("session s has just moved to another host", "unavailable")
        assert isinstance(answer, Refused)
        assert answer.retry_after_seconds == 1.0
        assert not desk.engine.posted

    play(act)


def test_a_turn_whose_messages_are_too_long_together_is_not_retried() -> None:
    def act(desk: Desk) -> None:
        desk.turn = AskedOf("s", "failed", ("x" * (MESSAGE_BYTES_MAX - 1), "y"), "", "")
        error, code = refusal(desk.ask(Retry("s/1", "k")))
        assert error.startswith(f"the message is {MESSAGE_BYTES_MAX + 2} bytes")
        assert code == "invalid"
        assert not desk.engine.posted

    play(act)


def test_a_session_that_has_moved_is_not_begun_here() -> None:
    def act(desk: Desk) -> None:
        request = Begin("s", "k", (Exchange("question", "answer"),))
        desk.owners.where = Elsewhere(2, "other")
        assert refusal(desk.ask(request)) == ("session s has just moved to another host", "unavailable")
        assert not desk.engine.posted
        desk.owners.where = Here()
        assert desk.ask(request) is None
        assert isinstance(desk.engine.posted[0], events.BeginAsked)

    play(act)


def test_another_host_is_asked_by_its_name_and_this_one_is_not_drained() -> None:
    def act(desk: Desk) -> None:
        for request, state in ((Drain("other"), "draining"), (Undrain("other"), "open")):
            assert desk.ask(request) == Done(note=f"host other is asked to be {state}")
        assert refusal(desk.ask(Drain("nobody"))) == ("there is no host nobody", "unknown")
        assert desk.owners.asked == [("other", "draining"), ("other", "open"), ("nobody", "draining")]
        assert not desk.engine.posted
        own = Settings().hosts.own_name
        for name in ("", own):
            desk.ask(Drain(name))
            desk.ask(Undrain(name))
        assert desk.engine.posted == [events.DrainAsked(), events.UndrainAsked()] * 2

    play(act)


def test_refused_messages_are_counted_and_others_are_not() -> None:
    def act(desk: Desk) -> None:
        reply = desk.changes.counting_refusals(desk.replies.append)
        reply(Done())
        assert not desk.done
        reply(Refused("no", "wait"))
        assert desk.done == ["refused"]
        assert desk.replies == [Done(), Refused("no", "wait")]

    play(act)


def test_a_refusal_of_the_core_reaches_the_client_whole() -> None:
    def act(desk: Desk) -> None:
        desk.ask(Submit("s", "hello", "k"))
        desk.engine.answers[0](effects.Refused("too many wait", "wait", 3.0, code="full"))
        assert desk.replies == [Refused("too many wait", "wait", 3.0, "full")]

    play(act)


def test_a_request_is_routed_once_there_are_other_hosts() -> None:
    def act(desk: Desk) -> None:
        routed: list[Request] = []
        desk.changes.open(lambda request, reply, moved: routed.append(request))
        request = Submit("s", "hello", "k")
        assert desk.ask(request) is None
        assert (routed, desk.engine.posted) == ([request], [])
        assert isinstance(desk.ask(Submit("s", " ", "k")), Refused), "a fault is found before"
        assert routed == [request]
        desk.changes.carry_out(request, desk.replies.append)
        assert len(desk.engine.posted) == 1

    play(act)
