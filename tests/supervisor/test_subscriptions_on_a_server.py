"""Subscriptions while the journal answers late: nothing is missed, and one that left gets nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from ipc.codec import encode
from ipc.messages import Answer, Cut, Done, Refused, Request, Show, Subscribe, Subscribed, Table, Unsubscribe
from supervisor.clients import subscriptions
from supervisor.clients.changes import Changes
from supervisor.clients.control import Care, Control
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalUnreachable
from tests.no_containment import uncontained
from tests.supervisor.held_asking import HeldAsking
from tests.supervisor.test_subscriptions import FLOOD, REQUEST, Stage, play
from tests.waiting import soon

AWAY = JournalUnreachable("the server does not answer", "look at it")


@pytest.mark.parametrize("after", [2, None], ids=["from a place", "from now on"])
def test_what_happens_before_the_beginning_is_not_missed(tmp_path: Path, after: int | None) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1, 2)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", after)
        asking.read()
        stage.happens(3)
        asking.tell()
        if after is not None:
            await soon(lambda: asking.is_asked)
            asking.answer()
        stage.happens(4)
        await soon(lambda: 4 in reader.seqs())
        (_, begun) = reader.seen[0]
        assert isinstance(begun, Subscribed)
        assert [begun.seq, *reader.seqs()] == ([3, 3, 4] if after else [3, 4])

    play(tmp_path, act, asking)


def test_what_happens_while_a_slice_is_read_is_not_missed(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        asking.read()
        stage.happens(2)
        asking.tell()
        await soon(lambda: asking.is_asked)
        asking.answer()
        stage.happens(3)
        await soon(lambda: 3 in reader.seqs())
        assert reader.seqs() == [1, 2, 3]

    play(tmp_path, act, asking)


@pytest.mark.parametrize("has_begun", [False, True], ids=["the beginning", "a slice"])
def test_one_that_leaves_while_the_journal_is_asked_gets_nothing(tmp_path: Path, has_begun: bool) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(*range(1, 40))
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        if has_begun:
            asking.answer()
            await soon(lambda: asking.is_asked)
        asking.read()
        stage.subscriptions.unsubscribe(stage.client(), REQUEST)
        asking.tell()
        assert stage.is_empty
        # Its next subscription is told behind whatever came for the first.
        stage.subscriptions.subscribe(stage.client(), b"\0" * 8, None, None)
        await soon(lambda: len(reader.read()) > has_begun)
        assert [number for number, _ in reader.seen] == [REQUEST] * has_begun + [b"\0" * 8]

    play(tmp_path, act, asking)


def test_a_journal_that_does_not_answer_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "_ASK_AGAIN_SECONDS", 0.001)
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        for _ in range(2):
            await soon(lambda: asking.is_asked)
            asking.fail(AWAY)
        await soon(lambda: asking.is_asked)
        asking.answer()
        await soon(lambda: reader.seqs() == [1])

    play(tmp_path, act, asking)


def test_one_that_waits_for_the_journal_is_not_too_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patience with a client counts only while its own queue is full."""
    monkeypatch.setattr(subscriptions, "_PATIENCE_SECONDS", 0.1)
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        await stage.reader(b"slow")
        reader = await stage.reader()
        stage.happens(1)
        stage.subscriptions.subscribe(stage.client(), REQUEST, "s", 0)
        asking.answer()
        await soon(lambda: asking.is_asked)
        stage.subscriptions.subscribe(stage.client(b"slow"), REQUEST, "flood", None)
        # The question of the first stays open.
        first = asking.held()
        asking.answer()
        for number in range(1, 13):
            stage.happens(number, session="flood", text=FLOOD)

        def is_cut() -> bool:
            while asking.is_asked:
                asking.answer()
            return stage.subscriptions.count == 1

        await soon(is_cut)
        first()
        await soon(lambda: reader.seqs() == [1])
        assert not any(isinstance(answer, Cut) for answer in reader.read())

    play(tmp_path, act, asking)


class _Places:
    """The places of a session, read from the journal as queries read them."""

    def __init__(self, stage: Stage, asking: HeldAsking) -> None:
        self._stage = stage
        self._asking = asking

    def show(self, request: Show, give: Callable[[Table], None], failed: Failed) -> None:
        raise AssertionError(request)

    def stand(self, session: str, name: str | None, then: Callable[[int, int], None], failed: Failed) -> None:
        self._asking.ask(
            lambda: (self._stage.journal.read.session_seq(session), 0), lambda found: then(*found), failed
        )


def _control(stage: Stage, asking: HeldAsking) -> Control:
    def unasked(reply: Callable[[Answer], None], confirmed: bool) -> None:
        raise AssertionError

    made = Control(
        Request,
        changes=cast("Changes", None),
        subscriptions=stage.subscriptions,
        views=_Places(stage, asking),
        care=cast("Care", None),
        reload=unasked,
        contain=uncontained(),
    )
    made.open(stage.server)
    return made


@pytest.mark.parametrize("way", ["unsubscribes", "leaves"])
def test_one_that_leaves_before_its_place_is_known_is_not_subscribed(tmp_path: Path, way: str) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        stage.happens(1)
        made = _control(stage, asking)
        made.request_arrived([b"one", REQUEST, encode(Subscribe("s", after=0))])
        asking.read()
        if way == "leaves":
            made.client_left(b"one")
        else:
            number = int.from_bytes(REQUEST)
            made.request_arrived([b"one", b"\0" * 8, encode(Unsubscribe(number))])
        asking.tell()
        assert stage.is_empty
        assert not asking.is_asked
        if way == "unsubscribes":
            await soon(lambda: reader.read() == [Done()])

    play(tmp_path, act, asking)


def test_a_client_gets_no_more_subscriptions_than_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "FOLLOWS_MAX", 2)
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        made = _control(stage, asking)
        for number in range(3):
            made.request_arrived([b"one", number.to_bytes(8), encode(Subscribe(None))])
        await soon(lambda: len(reader.read()) == 3)
        assert stage.subscriptions.count == 2
        refused = reader.read()[-1]
        assert isinstance(refused, Refused)
        assert refused.code == "full"

    play(tmp_path, act, asking)


def test_one_that_leaves_takes_no_subscription_of_another_client_along(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader(b"other")
        stage.happens(1)
        made = _control(stage, asking)
        for name in (b"one", b"other"):
            made.request_arrived([name, REQUEST, encode(Subscribe("s", after=1))])
        made.client_left(b"one")
        asking.answer()
        asking.answer()
        asking.answer()
        await soon(lambda: reader.read() == [Subscribed(1, 1)])
        assert stage.subscriptions.count == 1
        assert not made._subscribing

    play(tmp_path, act, asking)


def test_one_whose_place_cannot_be_read_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        made = _control(stage, asking)
        made.request_arrived([b"one", REQUEST, encode(Subscribe("s", after=1))])
        asking.fail(AWAY)
        await soon(lambda: reader.read() == [Refused(AWAY.fault, AWAY.hint, code="unavailable")])
        assert stage.is_empty
        assert not made._subscribing

    play(tmp_path, act, asking)


def test_a_client_that_ends_one_of_its_subscriptions_keeps_the_others(tmp_path: Path) -> None:
    asking = HeldAsking()

    async def act(stage: Stage) -> None:
        reader = await stage.reader()
        made = _control(stage, asking)
        for number in (1, 2):
            made.request_arrived([b"one", number.to_bytes(8), encode(Subscribe(None))])
        made.request_arrived([b"one", (3).to_bytes(8), encode(Unsubscribe(1))])
        stage.happens(1)
        await soon(lambda: reader.seqs())
        assert reader.seen[-1][0] == (2).to_bytes(8)
        assert reader.seqs() == [1]

    play(tmp_path, act, asking)
