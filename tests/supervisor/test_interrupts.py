"""Interrupts while the journal does not answer: the worker is killed at once, and the record follows."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ipc.message_parts import Killed
from ipc.messages import Accepted, Done, Interrupt, Refused, Submit
from tests.supervisor.puppet_service import PuppetService

# While the commit is waited for; after SQLite's five seconds it has failed, and is begun again.
UNWRITTEN = ("a commit of the journal has not come back", "the journal ")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PuppetService]:
    with PuppetService(tmp_path / "home") as made:
        yield made


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
            assert answer.unwritten.startswith(UNWRITTEN)
        assert service.rows("turns", session="s")[0]["state"] == "running"
    row = service.until_state("s/1", "interrupted")
    assert row["ended_by"] == "me"
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
        assert answer.unwritten.startswith(UNWRITTEN)
    service.until_state("s/1", "interrupted")
