"""The disk fills, refuses, breaks; clocks jump; files are old or too new: named, survived, nothing lost."""

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Submit
from tests.fake_model import FakeModel
from tests.service import ENDINGS, Service
from tests.waiting import until


@contextmanager
def no_room(service: Service) -> Iterator[None]:
    """No file of the supervisor may grow: SQLite is told what a full disk tells it."""
    assert service.process is not None
    before = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)


def say_without_waiting(service: Service, session: str, text: str, key: str) -> tuple[Client, int]:
    client = service.client()
    return client, client.post(Submit(session, text, key))


def test_d15_without_room_messages_are_refused_and_it_goes_on_by_itself(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 2", turns='busy = "queue"')
    first = service.say("demo", "[[slow interval=0.02 count=50]] go", key="first")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    with no_room(service):
        # Whatever was on its way when the room went is neither answered nor lost.
        client, number = say_without_waiting(service, "demo", "in the storm", "storm")
        until(lambda: service.status()["state"] == "stuck")
        with pytest.raises(CommandError, match="journal") as refused:
            service.say("demo", "too late", key="late")
        assert refused.value.code == 5
        assert "disk" in refused.value.hint
        with pytest.raises(CommandError, match="journal"):
            service.interrupt("demo")
        status = service.status()
        assert any("nothing is accepted" in hint for hint in status["hints"])
        assert service.show("turns", session="demo")[0]["turn"] == "demo/1"
        assert service.hermesctl("status").returncode == 0
    accepted = client.answer_to(number, Accepted)
    until(lambda: service.status()["state"] == "ready")
    again = service.listen("demo")
    assert again.ending("demo/1").type == "turn.done"
    assert again.ending("demo/2").fields["text"] == "You said: in the storm"
    assert [event.seq for event in again.events] == list(range(1, len(again.events) + 1))
    assert [event.fields["message"] for event in again.of_type("message.accepted")] == [
        first.message,
        accepted.message,
    ]
    assert len(again.of_type("attempt.lost")) == 0
    assert len(again.of_type(*ENDINGS)) == 2
