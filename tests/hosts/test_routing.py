"""The way of a request to the host that has its session; owners and other hosts are played."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ipc.messages import Accepted, Done, Interrupt, Killed, Queue, Refused, Respond, Retry, Seen, Submit
from supervisor.hosts import routing as routes
from supervisor.hosts.requests import LIMIT_SECONDS, RETRY_SECONDS
from supervisor.hosts.routing import Routing
from supervisor.journal.asking import InPlace
from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.ownership import Elsewhere, Found, Here
from tests.waiting import soon

AWAY = JournalUnreachable("the database does not answer", "look at it")
SUBMIT = Submit("s", "hello", "key")


class Stage:
    """`where` answers claims in turn, the last one for ever; what was asked of other hosts is kept."""

    def __init__(self, *where: Found | JournalUnreachable) -> None:
        self.where = list(where or (Here(),))
        self.claimed: list[str] = []
        self.carried_out: list[Any] = []
        self.asked: list[tuple[int, Any, Callable[[Any], None], Callable[[], None], float]] = []
        self.shared: list[str] = []
        self.clip_fault: JournalUnreachable | None = None
        self.clips = {"m_1": ("s", "failed", "clip.ogg"), "m_2": ("t", "taken", "")}
        self.others: dict[int, str] = {}
        self.here: set[str] = set()
        self.answer: Any = Done()
        self.replies: list[Any] = []
        stage: Any = self
        self.routing = Routing(
            owners=stage,
            requests=stage,
            others=lambda: self.others,
            clips=stage,
            past=stage,
            asking=InPlace(),
            carry_out=self._carry_out,
            is_here=self.here.__contains__,
        )

    def claim(self, session: str, then: Callable[[Found], None], failed: Callable[[Any], None]) -> None:
        self.claimed.append(session)
        where = self.where.pop(0) if len(self.where) > 1 else self.where[0]
        failed(where) if isinstance(where, JournalUnreachable) else then(where)

    def ask(
        self, life: int, request: Any, reply: Callable[[Any], None], moved: Callable[[], None], until: float
    ) -> None:
        self.asked.append((life, request, reply, moved, until))

    def share(self, name: str, then: Callable[[], None], failed: Callable[[Any], None]) -> None:
        self.shared.append(name)
        failed(self.clip_fault) if self.clip_fault else then()

    def clip_of(self, message: str) -> tuple[str, str, str] | None:
        return self.clips.get(message)

    def _carry_out(self, request: Any, reply: Callable[[Any], None]) -> None:
        self.carried_out.append(request)
        reply(self.answer)

    def route(self, request: Any, moved: Callable[[], None] | None = None) -> None:
        self.routing.route(request, self.replies.append, moved)


def play(act: Callable[[], None]) -> None:
    async def run() -> None:
        act()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_", "session"),
    [
        (SUBMIT, "s"),
        (Interrupt("s", "me"), "s"),
        (Queue("s", "clear"), "s"),
        (Seen("phone", "s", 3), "s"),
        (Respond("s/2#1", "yes", "me"), "s"),
        (Retry("s/2", "key"), "s"),
        (Retry("m_2", "key"), "t"),
    ],
)
def test_a_request_is_carried_out_here_when_its_session_is_claimed(request_: Any, session: str) -> None:
    def act() -> None:
        stage = Stage(Here())
        stage.route(request_)
        assert (stage.claimed, stage.carried_out, stage.asked) == ([session], [request_], [])
        assert (stage.replies, stage.shared) == ([Done()], [])

    play(act)


@pytest.mark.parametrize("request_", [Queue("s"), Retry("unknown", "key")])
def test_what_needs_no_owner_is_carried_out_by_any_host(request_: Any) -> None:
    def act() -> None:
        stage = Stage(Elsewhere(2, "two"))
        stage.route(request_)
        assert (stage.claimed, stage.carried_out) == ([], [request_])

    play(act)


def test_a_session_elsewhere_is_asked_for_at_its_owner_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "monotonic", lambda: 100.0)

    def act() -> None:
        stage = Stage(Elsewhere(2, "two"))
        stage.route(SUBMIT)
        ((life, request, reply, _, until),) = stage.asked
        assert (life, request, until) == (2, SUBMIT, 100.0 + LIMIT_SECONDS)
        assert not stage.carried_out
        assert not stage.replies
        reply(Accepted("m_1", 1))
        assert stage.replies == [Accepted("m_1", 1)]

    play(act)


def test_a_life_that_told_of_an_open_turn_is_asked_without_a_claim() -> None:
    def act() -> None:
        stage = Stage(Elsewhere(3, "three"))
        stage.others = {2: "two", 3: "three"}
        stage.routing.told("s", 2)
        for _ in range(2):
            stage.route(SUBMIT)
        assert [each[0] for each in stage.asked] == [2, 2]
        assert not stage.claimed
        moved = stage.asked[1][3]
        moved()
        assert stage.claimed == ["s"], "it does not have the session"
        stage.route(SUBMIT)
        assert stage.claimed == ["s", "s"], "what was told is not true any more"
        assert [each[0] for each in stage.asked] == [2, 2, 3, 3]

    play(act)


def test_a_session_is_claimed_if_it_may_be_elsewhere_than_it_was_told() -> None:
    def act() -> None:
        stage = Stage(Here())
        stage.routing.told("s", 2)
        stage.route(SUBMIT)
        stage.others = {2: "two"}
        stage.here.add("s")
        stage.route(SUBMIT)
        stage.here.clear()
        stage.route(SUBMIT, lambda: None)
        stage.routing.told("s", None)
        stage.route(SUBMIT)
        reasons = ["its life is gone", "it is here", "another host asks", "its turn has ended"]
        assert len(stage.claimed) == len(reasons)
        assert not stage.asked

    play(act)


def test_the_sessions_that_were_told_of_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_ELSEWHERE_MAX", 2)

    def act() -> None:
        stage = Stage(Here())
        stage.others = {2: "two"}
        for session in ("s", "t", "s", "u"):
            stage.routing.told(session, 2)
        for session in ("s", "t", "u"):
            stage.route(Interrupt(session, "me"))
        assert stage.claimed == ["t"]

    play(act)


def test_a_request_of_another_host_is_sent_back_and_not_on() -> None:
    def act() -> None:
        moved: list[str] = []
        for where in (Elsewhere(2, "two"), Elsewhere(0, "")):
            stage = Stage(where)
            stage.route(SUBMIT, lambda: moved.append("moved"))
            assert not stage.asked
            assert not stage.replies
        assert moved == ["moved"] * 2

    play(act)


def test_a_session_that_has_moved_is_claimed_again_until_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(routes, "monotonic", lambda: now)
    monkeypatch.setattr(routes, "_AGAIN_SECONDS", 0.0)

    async def run() -> None:
        nonlocal now
        stage = Stage(Elsewhere(2, "two"), Elsewhere(3, "three"))
        stage.route(SUBMIT)
        stage.asked[0][3]()
        await soon(lambda: len(stage.asked) == 2)
        assert [(each[0], each[4]) for each in stage.asked] == [(2, 108.0), (3, 108.0)]
        now = 108.0
        stage.asked[1][3]()
        await soon(lambda: bool(stage.replies))
        assert stage.claimed == ["s", "s"]
        fault = "session s has moved from host to host for 8 s"
        assert stage.replies == [Refused(fault, "send it again", RETRY_SECONDS, "unavailable")]

    asyncio.run(run())


def test_labels_that_no_host_has_are_the_reason_of_a_refusal() -> None:
    def act() -> None:
        stage = Stage(Elsewhere(0, ""))
        stage.route(SUBMIT)
        (refused,) = stage.replies
        assert refused.error == "no host that is there has the labels that session s asks for"
        assert (refused.retry_after_seconds, refused.code) == (RETRY_SECONDS, "unavailable")
        assert not stage.asked

    play(act)


def test_a_database_that_does_not_answer_is_the_reason_of_a_refusal() -> None:
    refused = Refused(AWAY.fault, AWAY.hint, RETRY_SECONDS, "unavailable")

    def act() -> None:
        stage = Stage(AWAY)
        stage.route(SUBMIT)
        assert stage.replies == [refused]
        for request in (Submit("s", "", "key", clip="clip.ogg"), Retry("m_1", "key")):
            stage = Stage(Here())
            stage.clip_fault = AWAY
            stage.route(request)
            assert (stage.replies, stage.claimed, stage.carried_out) == ([refused], [], [])

    play(act)


@pytest.mark.parametrize("request_", [Submit("s", "", "key", clip="clip.ogg"), Retry("m_1", "key")])
def test_a_clip_is_a_row_before_its_session_is_claimed(request_: Any) -> None:
    def act() -> None:
        stage = Stage(Elsewhere(2, "two"))
        stage.route(request_)
        assert (stage.shared, stage.claimed) == (["clip.ogg"], ["s"])
        assert [each[:2] for each in stage.asked] == [(2, request_)]

    play(act)


def test_an_interrupt_of_everything_is_answered_once_with_what_every_host_stopped() -> None:
    def act() -> None:
        stage = Stage()
        stage.others = {2: "two", 3: "three", 4: "four"}
        proof = Killed("u/1", 3, True, 1.0, "pidns")
        stage.answer = Done(("s/1",), more=1)
        stage.route(Interrupt(None, "me"))
        assert not stage.replies
        assert [each[0] for each in stage.asked] == [2, 3, 4]
        stage.asked[0][2](Done(("u/1",), more=2, killed=(proof,), unwritten="no room"))
        stage.asked[1][2](Refused("host three does not answer", "wait"))
        assert not stage.replies
        stage.asked[2][3]()  # its life is gone
        (done,) = stage.replies
        assert (done.turns, done.more, done.killed) == (("s/1", "u/1"), 3, (proof,))
        assert (done.note, done.unwritten) == ("host three does not answer", "no room")

    play(act)


def test_an_interrupt_of_everything_that_another_host_has_sent_stays_here() -> None:
    def act() -> None:
        stage = Stage()
        stage.others = {2: "two"}
        stage.route(Interrupt(None, "me"), lambda: None)
        assert (len(stage.carried_out), stage.asked) == (1, [])

    play(act)


def test_an_interrupt_that_found_nothing_says_so_and_one_that_all_refused_is_refused() -> None:
    def act() -> None:
        stage = Stage()
        stage.route(Interrupt(None, "me"))
        assert stage.replies == [Done(note="nothing runs")]
        stage.answer = Refused("not now", "wait")
        stage.route(Interrupt(None, "me"))
        assert stage.replies[1:] == [stage.answer]

    play(act)
