"""What a request says reaches the core whole, and a fault on the way costs only what was served."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ipc import messages as wire
from ipc.codec import encode
from ipc.zmtp import Sent
from supervisor.clients.changes import message_id
from supervisor.clients.host_requests import ask as ask_host
from supervisor.containment import Containment
from supervisor.core import effects, events
from supervisor.core.effects import AnswerTurn, AssignTurn, SteerTurn, Transcribe
from supervisor.journal.errors import JournalUnreachable
from supervisor.performer import Performer
from supervisor.workers.link import Links
from tests.played_worker import WHO, build_assign
from tests.supervisor import test_assignment
from tests.supervisor.test_changes import Desk, play

AWAY = JournalUnreachable("the server does not answer", "look at it")


@pytest.mark.parametrize("clip", ["", "c"], ids=["text", "clip"])
def test_a_message_is_posted_with_its_sender_and_the_turn_that_it_expects(clip: str) -> None:
    def act(desk: Desk) -> None:
        text = "" if clip else "hello"
        desk.ask(wire.Submit("s", text, "k", expect_turn="s/7", by="me", clip=clip))
        [event] = desk.engine.posted
        assert isinstance(event, events.TextArrived | events.VoiceArrived)
        assert (event.expect_turn, event.by) == ("s/7", "me")

    play(act)


def test_an_answer_is_posted_with_its_sender() -> None:
    def act(desk: Desk) -> None:
        desk.ask(wire.Respond("s/1:q", "yes", "me"))
        assert desk.engine.posted == [events.AnswerArrived("s", "s/1:q", "yes", "me")]

    play(act)


def test_the_same_letters_in_another_session_are_another_message() -> None:
    assert message_id("a", "bc") != message_id("ab", "c")


def test_a_request_to_another_host_that_cannot_be_written_is_refused() -> None:
    def unanswered(name: str, state: str, then: object, failed: Any) -> None:
        failed(AWAY)

    replies: list[wire.Answer] = []
    ask_host(cast(Any, SimpleNamespace(ask_host=unanswered)), wire.Drain("other"), replies.append)
    assert replies == [wire.Refused(AWAY.fault, AWAY.hint, code="unavailable")]


class _Line:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, frame: bytes) -> Sent:
        self.sent.append(frame)
        return Sent.SENT


def test_an_answer_names_the_question_and_the_wait_that_it_ends() -> None:
    links, line = Links(build_assign, lambda agent: wire.Setup(wire.AgentSpec(agent, "builtin"))), _Line()
    links.of[WHO.incarnation] = cast(Any, line)
    links.answer(AnswerTurn(WHO, "s/1", 2, "q", 3, "yes"))
    assert line.sent == [encode(wire.Answered("s/1", 2, "q", 3, "yes"))]
    links.assign(AssignTurn(WHO, "s", "s/1", 1, "default", ()))
    assert links.graces == {}, "its agent has none"


class _BrokenSteers(test_assignment.Stage):
    def steer(self, effect: SteerTurn) -> None:
        raise ValueError


def test_a_message_that_cannot_be_offered_to_a_running_turn_costs_nothing() -> None:
    """It waits for the next one."""

    async def act() -> None:
        stage = _BrokenSteers()
        stage.assignment.steer(test_assignment.STEER)
        assert (stage.contained, stage.posted) == (["turn"], [])

    asyncio.run(act())


def test_a_clip_that_cannot_be_sent_fails_by_name() -> None:
    def broken(effect: effects.Effect) -> None:
        raise ValueError

    part = cast(Any, SimpleNamespace())
    names = (
        "all_taken acknowledge publish flush committed bind assign steer answer end end_grace start kill want"
    )
    for name in names.split():
        setattr(part, name, broken)
    part.graces, part.transcribe, part.forget, part.write = {}, broken, broken, lambda *_, **__: None
    posted: list[events.Event] = []
    contain = Containment(part, lambda: 0.0, lambda place: None)
    parts = ("processes", "cancellation", "router", "assignment", "transcription", "subscriptions")
    others = ("clients", "log", "meter")
    made = Performer(**dict.fromkeys((*parts, *others), part), contain=contain, post=posted.append)
    made.act(Transcribe("s", "m", "clip"))
    made.act(effects.ForgetClip("m"))
    [event] = posted
    assert isinstance(event, events.NotTranscribed)
    assert (event.session, event.message) == ("s", "m")
