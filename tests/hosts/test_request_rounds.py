"""Requests between hosts, round after round: connection, rows and other hosts are played."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from ipc.messages import Accepted, Answer, Submit
from supervisor.clock import monotonic
from supervisor.containment import Containment
from supervisor.hosts import requests as requesting
from supervisor.hosts.requests import LIMIT_SECONDS, Requests
from supervisor.journal.errors import JournalUnreachable
from supervisor.journal.postgres.request_rows import Stand, Unanswered
from tests.waiting import nothing_follows, soon

SUBMIT = Submit("demo", "hello", "key")
BODY = msgspec.to_builtins(SUBMIT)
ACCEPTED = Accepted("m_1", 7)
AWAY = JournalUnreachable("the database does not answer", "look at it")


class Stage:
    """One host; `asked`, `answered`, `looked` and `forgotten` are what goes to the database, in order."""

    life = 1

    def __init__(self) -> None:
        self.server_now: float | None = 100.0
        self.others = {2: "two"}
        self.asked: list[str] = []
        self.answered: list[tuple[str, int, Any]] = []
        self.not_taken: list[Callable[[Any], None]] = []
        self.looked: list[Collection[str]] = []
        self.forgotten: list[list[str]] = []
        self.missed: list[Unanswered] = []
        self.served: list[Any] = []
        self.tell: dict[str, Callable[..., None]] = {}
        self.connects: list[Callable[[], None]] = []
        self.requests = self.begin()

    def begin(self) -> Requests:
        """As each image of the process does."""
        stage: Any = self
        contain = Containment(stage, lambda: 0.0, lambda place: None)
        return Requests(notices=stage, rows=stage, peers=stage, serve=self._serve, contain=contain)

    def write(self, verb: str, **fields: Any) -> None:
        """The log of what is contained."""

    def on(self, kind: str, handle: Callable[..., None]) -> None:
        self.tell[kind] = handle

    def on_connected(self, call: Callable[[], None]) -> None:
        self.connects.append(call)

    def ask(self, id: str, life: int, body: str, failed: object) -> None:
        self.asked.append(id)

    def answer(self, id: str, life: int, answer: str, failed: Callable[[Any], None]) -> None:
        self.answered.append((id, life, msgspec.json.decode(answer)))
        self.not_taken.append(failed)

    def forget(self, ids: Collection[str]) -> None:
        self.forgotten.append(list(ids))

    def unanswered(self, then: Callable[[Sequence[Unanswered]], None]) -> None:
        then(self.missed)

    def stands(
        self, ids: Collection[str], then: Callable[[Mapping[str, Stand]], None], failed: object
    ) -> None:
        self.looked.append(ids)
        then({id: Stand(None, is_gone=False) for id in ids})

    def _serve(self, request: Any, reply: Callable[[Answer], None], moved: Callable[[], None]) -> None:
        self.served.append(request)
        reply(ACCEPTED)

    def send(self) -> tuple[str, list[Any]]:
        """A request to the other host: its id, and what comes back."""
        told: list[Any] = []
        until = monotonic() + LIMIT_SECONDS
        self.requests.ask(2, SUBMIT, told.append, lambda: told.append("moved"), until)
        return self.asked[-1], told

    def connect(self) -> None:
        for call in self.connects:
            call()


def play(act: Callable[[Stage], None]) -> None:
    async def run() -> None:
        act(Stage())

    asyncio.run(run())


def test_an_answer_that_the_database_did_not_take_is_given_again_until_it_does() -> None:
    def act(stage: Stage) -> None:
        stage.tell["ask"](100.0, "2.1", 2, BODY)
        answer = ("2.1", 2, msgspec.to_builtins(ACCEPTED))
        for connects in (1, 2):
            stage.not_taken[-1](AWAY)
            stage.connect()
            assert stage.answered == [answer] * (connects + 1)
        stage.connect()
        assert len(stage.answered) == 3, "the last one was taken"
        assert stage.served == [SUBMIT]

    play(act)


def test_a_request_is_looked_for_until_it_is_answered_and_not_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requesting, "_LOOK_SECONDS", 0.0)

    async def run() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        for looks in (0, 2):
            stage = Stage()
            id, told = stage.send()
            await soon(lambda stage=stage, looks=looks: len(stage.looked) >= looks)  # type: ignore[misc]
            stage.tell["answer"](id, msgspec.to_builtins(ACCEPTED))
            before = len(stage.looked)
            await nothing_follows()
            assert told == [ACCEPTED]
            assert (len(stage.looked), faults) == (before, [])

    asyncio.run(run())


def test_what_is_not_answered_yet_is_looked_for_after_each_connect() -> None:
    def act(stage: Stage) -> None:
        (first, _), (second, told) = stage.send(), stage.send()
        stage.connect()
        stage.tell["answer"](first, msgspec.to_builtins(ACCEPTED))
        stage.connect()
        assert [list(ids) for ids in stage.looked] == [[first, second], [second]]
        assert not told

    play(act)


def test_an_answer_that_comes_again_is_not_told_again() -> None:
    def act(stage: Stage) -> None:
        id, told = stage.send()
        for _ in range(2):
            stage.tell["answer"](id, msgspec.to_builtins(ACCEPTED))
        assert told == [ACCEPTED]

    play(act)


def test_the_rows_of_answered_requests_are_deleted_round_after_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesting, "_FORGET_SECONDS", 0.0)

    async def run() -> None:
        stage, rounds = Stage(), []
        for size in (2, 1):
            ids = [stage.send()[0] for _ in range(size)]
            for id in ids:
                stage.tell["answer"](id, msgspec.to_builtins(ACCEPTED))
            rounds.append(ids)
            await soon(lambda: len(stage.forgotten) == len(rounds))
        assert stage.forgotten == rounds

    asyncio.run(run())


def test_the_ids_of_the_oldest_requests_that_were_taken_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requesting, "_TAKEN_MAX", 2)

    def act(stage: Stage) -> None:
        for id in ("2.1", "2.2", "2.3", "2.2", "2.3"):
            stage.tell["ask"](100.0, id, 2, BODY)
        assert [id for id, _, _ in stage.answered] == ["2.1", "2.2", "2.3"]
        stage.tell["ask"](100.0, "2.1", 2, BODY)
        assert len(stage.answered) == 4

    play(act)


def test_the_next_image_of_a_process_uses_no_id_of_the_one_before() -> None:
    """Its life is the same, and other hosts still know which ids they have taken."""

    def act(stage: Stage) -> None:
        before, _ = stage.send()
        stage.requests = stage.begin()
        after, _ = stage.send()
        assert before != after

    play(act)


def test_a_request_whose_age_is_not_known_yet_waits_for_the_connect() -> None:
    def act(stage: Stage) -> None:
        stage.server_now = None
        stage.tell["ask"](100.0, "2.1", 2, BODY)
        assert not stage.served
        stage.server_now = 100.0
        stage.missed = [Unanswered("2.1", 2, msgspec.json.encode(SUBMIT).decode(), 100.0)]
        stage.connect()
        assert stage.served == [SUBMIT]

    play(act)
