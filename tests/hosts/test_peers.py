"""Which other lives there are, and which part of the host handles a notice of theirs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from supervisor.containment import Containment
from supervisor.hosts import peers as peering
from supervisor.hosts.peers import Peers
from tests.waiting import soon


class Stage:
    """A connection that is played: `lives` is what a look finds; `received` and `connected` come from it."""

    life = 1

    def __init__(self) -> None:
        self.told: list[tuple[int | None, list[Any]]] = []
        self.lives: dict[int, str] = {}
        self.looks = 0
        self.is_slow = False
        self.received: Callable[[int | None, list[Any]], None]
        self.connected: Callable[[], None]
        stage: Any = self
        self.peers = Peers(stage, Containment(stage, lambda: 0.0, lambda place: None))
        self.peers.open()

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""

    def open(self, received: Callable[[int | None, list[Any]], None], connected: Callable[[], None]) -> None:
        self.received, self.connected = received, connected

    def tell(self, life: int | None, notice: list[Any]) -> None:
        self.told.append((life, notice))

    def living(self, then: Callable[[dict[int, str]], None], failed: object) -> None:
        self.looks += 1
        if not self.is_slow:
            then(dict(self.lives))


def play(act: Callable[[Stage], None]) -> None:
    async def run() -> None:
        act(Stage())

    asyncio.run(run())


def test_after_each_connect_the_others_are_told_and_looked_up() -> None:
    def act(stage: Stage) -> None:
        calls: list[dict[int, str]] = []
        stage.peers.on_connected(lambda: calls.append(dict(stage.peers.others)))
        stage.lives = {2: "two"}
        for _ in range(2):
            stage.connected()
        assert stage.told == [(None, ["here", 1])] * 2
        assert calls == [{2: "two"}] * 2

    play(act)


def test_a_life_that_begins_is_known_at_once_and_named_by_the_look() -> None:
    def act(stage: Stage) -> None:
        stage.lives = {2: "two", 3: "three"}
        stage.received(2, [["here", 3]])
        assert stage.peers.others == {2: "two", 3: "three"}

    play(act)


def test_a_life_is_known_while_its_name_is_looked_up_and_keeps_the_one_it_has() -> None:
    def act(stage: Stage) -> None:
        stage.lives = {2: "two"}
        stage.connected()
        stage.is_slow = True
        for life in (2, 3):
            stage.received(life, [["here", life]])
        assert stage.peers.others == {2: "two", 3: ""}

    play(act)


def test_a_notice_goes_to_its_handler_and_an_unknown_one_or_a_defect_costs_no_other() -> None:
    def act(stage: Stage) -> None:
        handled: list[tuple[Any, ...]] = []

        def breaks(*entries: Any) -> None:
            raise ValueError("a defect")

        stage.peers.on("good", lambda *entries: handled.append(entries))
        stage.peers.on("bad", breaks)
        stage.received(2, [["bad", 1], ["of a later version", 1], ["good", 1, 2], [], ["good", 3]])
        assert handled == [(1, 2), (3,)]

    play(act)


def test_a_handler_knows_which_life_has_told() -> None:
    def act(stage: Stage) -> None:
        senders: list[int | None] = []
        stage.peers.on("kind", lambda: senders.append(stage.peers.sender))
        for sender in (3, None, 2):
            stage.received(sender, [["kind"]])
        assert senders == [3, None, 2]

    play(act)


def test_lives_that_ended_without_a_notice_are_found_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peering, "_LOOK_SECONDS", 0.0)

    async def run() -> None:
        stage, looks = Stage(), []
        stage.peers.on_look(lambda: looks.append(1))
        stage.lives = {2: "two"}
        await soon(lambda: stage.peers.others == {2: "two"})
        stage.lives = {}
        await soon(lambda: not stage.peers.others and len(looks) > 1)

    asyncio.run(run())


def test_a_defect_of_one_look_costs_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peering, "_LOOK_SECONDS", 0.0)

    async def run() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        stage = Stage()
        stage.peers.on_look(lambda: [][0])
        await soon(lambda: len(faults) > 1)
        assert stage.looks > 1

    asyncio.run(run())
