"""Interrupts while the journal does not answer: the worker is killed at once, and the record follows."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ipc.message_parts import Killed
from ipc.messages import Accepted, Done, Interrupt, Refused, Show, Submit
from supervisor.clients.interrupts import Interrupts, Outcome
from supervisor.core.events import InterruptAsked
from supervisor.journal import journal
from tests.supervisor import test_engine
from tests.supervisor.puppet_service import PuppetService
from tests.waiting import soon, until

NOT_BACK = "a commit of the journal has not come back"
# How long SQLite waits for a lock before a commit fails: in these tests it never does.
BUSY_SECONDS = 600.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PuppetService]:
    with PuppetService(tmp_path / "home", prepare=wait_for_the_lock) as made:
        yield made


def wait_for_the_lock() -> None:
    assert hasattr(journal, "_BUSY_SECONDS")
    journal._BUSY_SECONDS = BUSY_SECONDS


@contextmanager
def disk_held(service: PuppetService) -> Iterator[None]:
    """Another process holds SQLite's lock: commits wait for it."""
    with closing(sqlite3.connect(service.places.journal, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def begin_commit(service: PuppetService) -> None:
    """Something is decided and its commit is under way: requests are served in order, steps between them."""
    service.client.post(Submit("other", "finish", "k"))
    service.status()
    service.status()


def running(service: PuppetService, session: str) -> None:
    assert isinstance(service.ask(Submit(session, "say wait", "k")), Accepted)
    service.until_state(f"{session}/1", "running")


@pytest.mark.parametrize("is_behind", [True, False], ids=["behind another commit", "in that commit itself"])
def test_a_turn_is_ended_and_answered_at_once_and_recorded_once(
    service: PuppetService, is_behind: bool
) -> None:
    running(service, "s")
    with disk_held(service):
        if is_behind:
            begin_commit(service)
        numbers = [service.client.post(Interrupt("s", "me")) for _ in range(2)]
        for answer in service.next_to_each(numbers).values():
            assert isinstance(answer, Done)
            assert answer.turns == ("s/1",)
            assert answer.killed == (Killed("s/1", 1, True, 0.1, "puppets"),)
            assert answer.unwritten == NOT_BACK
        assert service.rows("turns", session="s")[0]["state"] == "running"
    row = service.until_state("s/1", "interrupted")
    assert row["ended_by"] == "me"
    latest = service.client.post(Show("status"))
    arrived = [until(lambda: service.client.receive(1.0))]
    while arrived[-1] is not None and arrived[-1][0] != latest:
        arrived.append(until(lambda: service.client.receive(1.0)))
    assert not {each[0] for each in arrived if each is not None} & set(numbers), "answered twice"
    types = [event["type"] for event in service.rows("story", id="s/1") if "type" in event]
    assert types.count("turn.interrupted") == 1


def test_a_session_where_nothing_runs_is_said_so(service: PuppetService) -> None:
    with disk_held(service):
        begin_commit(service)
        answer = service.ask(Interrupt("nobody", "me"))
    assert isinstance(answer, Done)
    assert (answer.turns, answer.killed, answer.unwritten) == ((), (), "")
    assert answer.note == "nothing runs in session nobody"


def test_another_turn_than_the_expected_is_left_alone(service: PuppetService) -> None:
    running(service, "s")
    with disk_held(service):
        begin_commit(service)
        answer = service.ask(Interrupt("s", "me", expect_turn="s/7"))
    assert isinstance(answer, Refused)
    assert service.rows("turns", session="s")[0]["state"] == "running"


def test_a_turn_that_waits_for_its_worker_is_not_ended_before_its_record(service: PuppetService) -> None:
    """Its Assign waits for the same commit: there is no process that runs it."""
    with disk_held(service):
        service.client.post(Submit("s", "say wait", "k"))
        service.status()
        service.status()
        answer = service.ask(Interrupt("s", "me"))
        assert isinstance(answer, Done)
        assert (answer.turns, answer.killed) == (("s/1",), ())
        assert answer.unwritten == NOT_BACK
    service.until_state("s/1", "interrupted")


def test_nothing_is_kept_of_an_interrupt_that_is_recorded(tmp_path: Path) -> None:
    async def act(stage: test_engine.Stage) -> None:
        told: list[Outcome] = []
        interrupts = Interrupts(stage.engine, lambda incarnation: None, stage)
        interrupts.ask(InterruptAsked("s", "me"), told.append)
        await soon(lambda: told)
        kept = (interrupts._unrecorded, interrupts._awaiting, interrupts._proofs)
        assert kept == ({}, {}, {})
        assert told[0].unwritten == ""

    test_engine.play(tmp_path, act)
