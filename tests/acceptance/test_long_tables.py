"""Tables that are larger than a frame come in pages, whole."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ipc.codec import FRAME_BYTES_MAX
from ipc.messages import Table
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    MessageAccepted,
    MessageDropped,
    Record,
    ToolCallFinished,
    ToolCallStarted,
    TurnDone,
    TurnFailed,
    TurnOpened,
)
from supervisor.core.state import Who
from supervisor.journal.journal import Journal
from tests.fake_model import FakeModel
from tests.raw_client import RawClient
from tests.service import Service, settings_for

MEGABYTE = "x" * 1_000_000
SESSIONS = 10_000
TURNS = 1_200
NOW = time.time()
# As wide as a name can be: two hundred characters of four bytes.
WIDE = "\U00010400" * 190


def dropped(name: str, at: float) -> list[Record]:
    """A session whose only message was taken back."""
    message = f"m_{name}"
    return [
        MessageAccepted(
            session=name, at=at, seq=1, message=message, key="k", kind="text", text="hi", busy="queue"
        ),
        MessageDropped(session=name, at=at, seq=2, message=message, by="me"),
    ]


def failed(session: str, number: int) -> list[Record]:
    """A turn that failed at once."""
    turn, message, seq = f"{session}/{number}", f"m_{session}_{number}", 3 * number
    told: dict[str, Any] = {"session": session, "at": NOW}
    return [
        MessageAccepted(
            **told, seq=seq - 2, message=message, key=message, kind="text", text="hi", busy="queue"
        ),
        TurnOpened(**told, seq=seq - 1, turn=turn, number=number, messages=(message,)),
        TurnFailed(**told, seq=seq, turn=turn, attempt=0, error="e" * 4000, hint="none"),
    ]


def long_turn() -> Iterator[Record]:
    """Twelve messages of a megabyte in one turn, and two attempts whose tool call has two texts as wide."""
    ids = tuple(f"m_{number}" for number in range(1, 13))
    for seq, id in enumerate(ids, start=1):
        yield MessageAccepted(
            session="long", at=NOW, seq=seq, message=id, key=id, kind="text", text=MEGABYTE, busy="collect"
        )
    who, wide = Who(1, 0, 1), "\U0001f600" * 1_000_000
    told: dict[str, Any] = {"session": "long", "at": NOW, "turn": "long/1"}
    call: dict[str, Any] = {"call": "c", "name": "shell"}
    yield TurnOpened(**told, seq=13, number=1, messages=ids)
    for attempt, seq in ((1, 14), (2, 18)):
        call["attempt"] = attempt
        yield AttemptOpened(**told, seq=seq, attempt=attempt, who=who, pid=1)
        yield ToolCallStarted(
            **told, **call, seq=seq + 1, summary="s", arguments=wide, repeat="pure", offset=0
        )
        yield ToolCallFinished(**told, **call, seq=seq + 2, ok=True, ms=1, result=wide)
        if attempt == 1:
            yield AttemptLost(
                **told, seq=seq + 3, attempt=attempt, reason=Reason(EndReason.EXITED, "it ended"), losses=1
            )
    yield TurnDone(**told, seq=21, attempt=2, text=wide, input_tokens=1, output_tokens=1)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Service]:
    """A journal with a long history, and one event and one call of a time before there were bounds."""
    home = tmp_path_factory.mktemp("long") / "home"
    made = Service(home, settings_for(model_server, workers="count = 1", journal='keep = "3650d"'))
    pending: list[Record] = []
    journal = Journal.open(made.places.journal, made.places.lock)
    sessions = [dropped(f"{number:05}{WIDE}", NOW - SESSIONS + number) for number in range(SESSIONS)]
    turns = [failed("failing", number) for number in range(1, TURNS + 1)]
    for records in (*sessions, *turns, list(long_turn()), failed("old", 1)):
        pending += records
    journal.commit_now(pending)
    journal.close()
    huge = json.dumps(
        {"turn": "old/1", "error": "e" * (FRAME_BYTES_MAX + 1), "hint": "none", "poison": False}
    )
    with closing(sqlite3.connect(made.places.journal)) as connection, connection:
        connection.execute("UPDATE events SET body = ? WHERE session = 'old' AND seq = 3", (huge,))
    with made as running:
        yield running


def test_h14_ten_messages_of_a_megabyte_are_listed_whole(service: Service) -> None:
    service.say("busy", "[[silent]] hold")
    for number in range(10):
        service.say("busy", MEGABYTE + str(number), busy="queue")
    with RawClient(service.places) as raw:
        answer = raw.ask({"t": "queue", "session": "busy"})
        assert isinstance(answer, Table)
        assert answer.more
        assert 1 <= len(answer.rows) < 10
    listed = json.loads(service.hermesctl("queue", "busy", "--json").stdout)
    assert [row["text"] for row in listed] == [MEGABYTE + str(number) for number in range(10)]
    assert service.hermesctl("interrupt", "busy", "--drop").returncode == 0


def test_h14_ten_thousand_long_names_are_listed_whole(service: Service) -> None:
    listed = json.loads(service.hermesctl("sessions", "--limit", "10000", "--json").stdout)
    names = [row["session"] for row in listed if row["session"].endswith(WIDE)]
    assert len(listed) == 10_000
    assert names == sorted(names, reverse=True), "newest first"
    assert len(set(names)) == len(names) > 9_990


def test_h14_turns_with_long_errors_are_listed_whole(service: Service) -> None:
    turns = json.loads(
        service.hermesctl("turns", "--session", "failing", "--limit", "10000", "--json").stdout
    )
    assert [row["turn"] for row in turns] == [f"failing/{number}" for number in range(TURNS, 0, -1)]
    unhappy = [row["turn"] for row in service.show("turns", limit=10_000, state="failed")]
    assert len(set(unhappy)) == len(unhappy) == TURNS + 1


def test_h14_a_story_of_megabytes_is_told_to_its_end(service: Service) -> None:
    told = json.loads(service.hermesctl("why", "long/1", "--text", "--json").stdout)
    assert [row.get("type") for row in told[:2]] == [None, "message.accepted"]
    assert sum(row.get("type") == "message.accepted" for row in told) == 12
    assert all(row["text"] == MEGABYTE for row in told if row.get("type") == "message.accepted")
    assert told[-1]["type"] == "turn.done"
    assert len(told[-1]["text"]) == 1_000_000
    assert "is done" in service.hermesctl("why", "long/1").stdout


def test_h14_the_outputs_of_a_tool_call_are_given_whole(service: Service) -> None:
    """Each attempt that made the call fills a frame alone."""
    rows = service.show("output", id="long/1", call="c")
    assert [(row["attempt"], len(row["arguments"]), len(row["result"])) for row in rows] == [
        (2, 1_000_000, 1_000_000),
        (1, 1_000_000, 1_000_000),
    ]


def test_h14_a_journal_of_megabytes_is_exported_whole(service: Service) -> None:
    lines = service.hermesctl("journal", "export", "--session", "long").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    calls = [row for row in rows if row["table"] == "tool_calls"]
    assert [(len(call["arguments"]), len(call["result"])) for call in calls] == [(1_000_000, 1_000_000)] * 2
    assert sum(len(row["text"]) for row in rows if row["table"] == "messages") == 12_000_000


def test_h14_what_was_written_before_there_were_bounds_is_cut_with_a_mark(service: Service) -> None:
    event = service.listen("old").ending("old/1")
    assert "characters left out" in event.fields["error"]
    told = service.show("story", id="old/1")
    assert "characters left out" in told[-1]["error"]
    exported = service.hermesctl("journal", "export", "--session", "old")
    assert exported.returncode == 0
    assert "characters left out" in exported.stdout


def test_h14_metrics_come_in_pages_too(service: Service) -> None:
    with RawClient(service.places) as raw:
        answer = raw.ask({"t": "show", "what": "metrics", "limit": 3})
        assert isinstance(answer, Table)
        assert len(answer.rows) == 3
        assert answer.more
    printed = service.hermesctl("metrics").stdout
    assert printed.count("# TYPE ") == len(service.show("metrics")) > 20
