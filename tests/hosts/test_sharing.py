"""The parts of a host that shares its journal, put together; connection, journal and clients are played."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from ipc.messages import Delta, Submit
from supervisor.containment import Containment
from supervisor.core.policy import Policy
from supervisor.core.state import Session, State
from supervisor.hosts import peers as peering
from supervisor.hosts.sharing import Sharing
from supervisor.journal.asking import InPlace
from tests.waiting import soon

SUBMIT = Submit("s", "hello", "key")


class Stage:
    """It stands for the journal and everything in it, and for the subscriptions, changes and views."""

    life = epoch = 1
    server_now = 100.0

    def __init__(self) -> None:
        self.asking = InPlace()
        self.state = State(Policy())
        self.seqs = {"s": 3}
        self.told: list[tuple[str, int]] = []
        self.asked: list[int] = []
        self.claimed: list[str] = []
        self.received: Callable[[int, list[Any]], None]
        self.route: Callable[..., None]
        stage: Any = self
        self.notices = self.requests = self.owners = self.read = stage
        contain = Containment(stage, lambda: 0.0, lambda place: None)
        self.sharing = Sharing(stage, stage, self.state, contain, stage)
        self.sharing.route(stage, stage)

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""

    def open(self, received: Any, connected: Any = None) -> None:
        """Of the notices, with two calls; of the changes, with the way of a request."""
        if connected is None:
            self.route = received
        else:
            self.received = received
            connected()

    def tell(self, life: int | None, notice: list[Any]) -> None: ...
    def told_all(self, *unused: object) -> None: ...

    wake = stand = show = carry_out = unanswered = told_all

    def living(self, then: Callable[[Mapping[int, str]], None], failed: object) -> None:
        then({2: "two"})

    def followed(self) -> set[str]:
        return set(self.seqs)

    def session_seqs(self, sessions: Collection[str]) -> Mapping[str, int]:
        return {name: self.seqs[name] for name in sessions}

    def told_elsewhere(self, session: str, seq: int) -> None:
        self.told.append((session, seq))

    def ask(self, id: str, life: int, body: str, failed: object) -> None:
        self.asked.append(life)

    def claim(self, session: str, then: object, failed: object) -> None:
        self.claimed.append(session)


def test_sessions_that_are_followed_are_compared_with_the_journal_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their host may have died before it told of its last events."""
    monkeypatch.setattr(peering, "_LOOK_SECONDS", 0.0)

    async def run() -> None:
        stage = Stage()
        stage.sharing.open()
        for seq in (3, 4):
            stage.seqs = {"s": seq}
            await soon(lambda seq=seq: ("s", seq) in stage.told)  # type: ignore[misc]

    asyncio.run(run())


def test_a_host_that_told_of_the_end_of_a_turn_is_not_taken_for_the_one_that_has_the_session() -> None:
    async def run() -> None:
        stage = Stage()
        stage.sharing.open()
        for seq, has_ended in ((1, False), (2, True)):
            stage.received(2, [["events", "s", seq, seq, has_ended]])
            stage.route(SUBMIT, lambda answer: None)
        assert (stage.asked, stage.claimed) == ([2], ["s"])

    asyncio.run(run())


def test_the_text_of_a_session_is_asked_for_where_it_is() -> None:
    async def run() -> None:
        stage = Stage()
        own = Delta("s", "s/1", 1, 0, "one")
        streamed = stage.sharing.streamed(lambda name: own)
        assert streamed("s") is None
        stage.state.sessions["s"] = Session("s")
        assert streamed("s") == own

    asyncio.run(run())
