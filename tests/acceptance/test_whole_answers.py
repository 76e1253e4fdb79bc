"""An answer that was cut off and taken up again reads as one, everywhere and without a gap or a repeat."""

import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermesctl.chat.drawing import Look, item_lines
from hermesctl.chat.session_log import SessionLog
from hermesctl.chat.turn import Turn
from hermesctl.event_stream import EventStream
from ipc.messages import Delta, Event, Noted
from tests import warm
from tests.acceptance.sight import shell, stopped, worker_of, zygote_of
from tests.checker import check_quiet
from tests.fake_model import FakeModel
from tests.fake_model_script import tokens_of
from tests.service import ENDINGS, Service
from tests.waiting import DEADLINE_SECONDS, until

WORDS = " ".join(f"word{number}" for number in range(120))
# Words come slowly enough that each loss finds the answer in the middle.
STORY = "[[goon count=120 interval=0.03 drop=15]] go"


class Chat:
    """What `hermesctl chat` makes of a session's feed, over restarts of the supervisor."""

    def __init__(self, service: Service) -> None:
        self.feed = EventStream(service.places, "demo", 0)
        self.log = SessionLog()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 2 * DEADLINE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.log
            item = self.feed.next()
            if isinstance(item, Event | Delta | Noted):
                self.log.take(item)
            elif item is None and self.feed.is_lost():
                self.feed.reconnect(DEADLINE_SECONDS)

    @property
    def turn(self) -> Turn:
        return self.log.turns["demo/1"]

    def has(self, word: str) -> bool:
        return "demo/1" in self.log.turns and word in self.turn.text

    def drawn(self) -> str:
        lines = item_lines(self.turn, self.log, Look(2000, is_unfolded=False, now=0.0))
        return " ".join("".join(text for _, text in line).strip() for line in lines)


@pytest.fixture
def patient(make_service: Callable[..., Service]) -> Service:
    """A service that bears more losses than one turn has here."""
    return make_service(workers="count = 1\nspares = 1", turns="attempts_max = 5")


def told(events: list[dict[str, Any]]) -> str:
    """The answer as a program puts it together from `tail --json`, by the rule in docs/events.md."""
    text = ""
    for event in events:
        if event["type"] == "delta" and event["offset"] <= len(text):
            text = text[: event["offset"]] + event["text"] + text[event["offset"] + len(event["text"]) :]
        elif event["type"] == "attempt.lost":
            text = text[: event["offset"]]
    return text


def test_a_turn_lost_in_three_ways_reads_as_one_answer(
    patient: Service, model: FakeModel, tmp_path: Path
) -> None:
    service, tail_file, chat = patient, tmp_path / "tail", Chat(patient)
    with tail_file.open("wb") as output:
        command = [sys.executable, "-m", "hermesctl", "--home", str(service.home), "tail", "demo", "--json"]
        tail = warm.Popen([*command, "--after", "0", "--wait"], stdout=output)
    try:
        service.say("demo", STORY)
        # The stream is dropped before word15, then the worker is killed, then the supervisor.
        chat.until(lambda: chat.has("word30") and chat.turn.attempt == 2)
        os.kill(worker_of(service, "demo"), signal.SIGKILL)
        chat.until(lambda: chat.has("word60") and chat.turn.attempt == 3)
        service.kill()
        service.start()
        chat.until(lambda: not chat.turn.is_open)

        def ended() -> bool:
            return any(event["type"] in ENDINGS for event in tail_lines(tail_file))

        until(ended)
    finally:
        chat.feed.close()
        tail.terminate()
        tail.wait(DEADLINE_SECONDS)
    check_whole(service, chat, tail_lines(tail_file))
    service.say("demo", "and then?")
    requests = model.wait(lambda requests: requests[-1].messages[-1]["content"] == "and then?")
    assert [(each["role"], each["content"]) for each in requests[-1].messages[1:]] == [
        ("user", STORY),
        ("assistant", WORDS),
        ("user", "and then?"),
    ]
    # What the resumed attempts were told names no signal, no address and no line of a log.
    for request in requests[1:-1]:
        cut, note = request.messages[2:]
        assert WORDS.startswith(cut["content"])
        assert note["content"].startswith("[note: the answer above was cut off before its end. Go on")
    service.listen("demo").ending("demo/2")
    service.stop()
    check_quiet(service.places.journal)


def tail_lines(path: Path) -> list[dict[str, Any]]:
    """Those that are complete."""
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def check_whole(service: Service, chat: Chat, tail: list[dict[str, Any]]) -> None:
    ending = service.listen("demo").ending("demo/1")
    losses = [event for event in tail if event["type"] == "attempt.lost"]
    assert len(losses) == 3, losses
    assert (ending.type, ending.fields["text"]) == ("turn.done", WORDS)
    assert told(tail) == chat.turn.text == WORDS
    assert f" {WORDS} " in chat.drawn()
    assert "3 attempts lost" in chat.drawn()
    (row,) = service.show("turns", session="demo")
    assert row["attempts"] == 4


def test_who_joins_between_two_attempts_gets_all_that_was_said(make_service: Callable[..., Service]) -> None:
    """No worker can take the turn up again yet: what it had said is shown all the same."""
    service = make_service(workers="count = 1\nspares = 0", turns="attempts_max = 5")
    service.say("demo", "[[goon count=60 interval=0.05]] go")
    first = service.listen("demo")
    first.until(lambda: "word5" in first.words)
    # Text is shown before it is durable; what is not durable is lost with the supervisor.
    until(lambda: durable_characters(service) > 0)
    service.kill()
    service.start()
    with stopped(zygote_of(service)):
        late = service.listen("demo")
        late.until(lambda: late.words)
        # Either no worker has the turn yet, or the first words after the loss have not been said.
        said = late.of_type("attempt.lost")[0].fields["offset"]
        assert (late.words[:said], len(late.words[:said])) == (first.words[:said], said)
    assert late.ending("demo/1").fields["text"] == " ".join(f"word{number}" for number in range(60))


def durable_characters(service: Service) -> int:
    """Of the text of all attempts."""
    with closing(sqlite3.connect(service.places.journal)) as connection:
        return int(connection.execute("SELECT coalesce(sum(text_length), 0) FROM attempts").fetchone()[0])


def words_of(messages: list[dict[str, Any]]) -> int:
    """As the fake model counts what it was asked."""
    return sum(len(tokens_of(str(message.get("content")))) for message in messages)


def test_the_tokens_of_a_killed_attempt_are_counted(open_service: Service, model: FakeModel) -> None:
    """Its first reply, which called the tool, is; the one that was under way is not."""
    service = open_service
    service.say("demo", shell("sleep 60"))
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("tool.started"))
    os.kill(worker_of(service, "demo"), signal.SIGKILL)
    usage = listener.ending("demo/1").fields["usage"]
    first, second = model.requests()
    assert usage["output_tokens"] == second.tokens
    assert usage["input_tokens"] == words_of(first.messages) + words_of(second.messages)
    (row,) = service.show("turns", session="demo")
    assert {name: row[name] for name in usage} == usage
