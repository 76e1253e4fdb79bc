"""Whatever is killed and however often it comes back: nothing is lost, nothing is doubled, nothing haunts."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import NotRunning
from ipc.messages import Accepted, Delta, Event, Noted, Respond, Submit
from tests.acceptance.sight import (
    alive,
    check_one_owner,
    descendants,
    named,
    shell,
    sleeper,
    stopped,
    worker_logs,
)
from tests.checker import Sight, check_quiet
from tests.fake_model import FakeModel
from tests.service import ENDINGS, Listener, Service
from tests.waiting import DEADLINE_SECONDS, until

LONG_AGO_SECONDS = 2 * 3600.0
SLOW = "[[slow interval=0.05 count=400]] go"


@pytest.fixture
def mark() -> str:
    """The name of what a test starts, unlike any other process here."""
    return f"work-{os.urandom(6).hex()}"


def begin(service: Service, text: str, session: str = "demo") -> Listener:
    """Says it, and returns when a worker has the turn."""
    service.say(session, text)
    listener = service.listen(session)
    listener.until(lambda: listener.of_type("attempt.opened"))
    return listener


def hear(service: Service, session: str, kind: str, count: int) -> None:
    """Returns when a session has had so many events of a kind."""
    listener = service.listen(session)
    listener.until(lambda: len(listener.of_type(kind)) >= count)


def restart(service: Service) -> None:
    service.kill()
    service.start()


def said_to(model: FakeModel, request: int) -> str:
    """All the messages of a request that the model was sent, as one text."""
    return json.dumps(model.wait(lambda requests: len(requests) > request)[request].messages)


def change(service: Service, sql: str, *values: object) -> None:
    """Alters the journal of a service that is not running."""
    with closing(sqlite3.connect(service.places.journal)) as connection:
        assert connection.execute(sql, values).rowcount > 0
        connection.commit()


def test_d1_a_turn_with_an_answer_is_never_run_again(service: Service, model: FakeModel) -> None:
    begin(service, "only once").ending("demo/1")
    for _ in range(2):
        restart(service)
    service.say("demo", "and now?")
    listener = service.listen("demo")
    assert listener.ending("demo/2").fields["text"] == "You said: and now?"
    assert listener.types().count("attempt.opened") == listener.types().count("turn.done") == 2
    assert "attempt.lost" not in listener.types()
    assert len(model.requests()) == 2
    service.stop()
    check_quiet(service.places.journal, [seen(listener)])


def test_d2_old_content_is_not_taken_up_however_young_its_markers_are(service: Service) -> None:
    listener = begin(service, SLOW)
    listener.until(lambda: "word9" in listener.words)
    service.kill()
    change(service, "UPDATE turns SET content_at = content_at - ?", LONG_AGO_SECONDS)
    service.start()
    again = service.listen("demo", after=listener.events[-1].seq)
    ended = again.ending("demo/1")
    assert (ended.type, again.types()) == ("turn.failed", ["attempt.lost", "turn.failed"])
    assert "older than 3600 s" in ended.fields["error"]


def test_d2_young_content_is_taken_up_however_old_its_markers_are(service: Service) -> None:
    listener = begin(service, "[[slow interval=0.05 count=20]] go")
    listener.until(lambda: "word9" in listener.words)
    service.kill()
    change(service, "UPDATE turns SET opened_at = opened_at - ?", LONG_AGO_SECONDS)
    change(service, "UPDATE attempts SET opened_at = opened_at - ?", LONG_AGO_SECONDS)
    change(
        service, "UPDATE sessions SET last_at = last_at - ?1, created_at = created_at - ?1", LONG_AGO_SECONDS
    )
    service.start()
    assert service.listen("demo").ending("demo/1").type == "turn.done"


def test_d2_a_restart_does_not_make_content_younger(service: Service) -> None:
    begin(service, "[[silent]] go")

    def content_at() -> float:
        with closing(sqlite3.connect(service.places.journal)) as connection:
            return float(connection.execute("SELECT content_at FROM turns").fetchone()[0])

    service.kill()
    before = content_at()
    service.start()
    until(lambda: service.show("turns")[0]["attempts"] == 2)
    service.kill()
    assert content_at() == before


def test_d3_the_third_loss_ends_the_turn_with_the_reason_and_restarts_add_nothing(service: Service) -> None:
    begin(service, "[[slow interval=0.05 count=1000]] go")
    for attempt in (2, 3):
        restart(service)
        hear(service, "demo", "attempt.opened", attempt)
    restart(service)
    listener = service.listen("demo")
    ended = listener.ending("demo/1")
    assert (ended.type, ended.fields["poison"]) == ("turn.failed", True)
    assert "lost 3 times" in ended.fields["error"]
    assert "the supervisor ended while it ran" in ended.fields["error"]
    for _ in range(2):
        restart(service)
    assert service.hermesctl("send", "demo", "still there?").stdout == "You said: still there?\n"
    again = service.listen("demo")
    again.ending("demo/2")
    assert again.types()[len(listener.events) :] == [
        "message.accepted",
        "turn.opened",
        "attempt.opened",
        "turn.done",
    ]


def test_d4_a_turn_that_waits_for_a_human_waits_again_with_the_same_question(
    service: Service, model: FakeModel
) -> None:
    question = {"name": "ask", "arguments": {"question": "Tea or coffee?", "choices": ["tea", "coffee"]}}
    service.say("demo", f"[[tools calls='{json.dumps([question])}']] please")
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("question.asked"))
    asked = listener.of_type("question.asked")[0]
    for _ in range(2):
        restart(service)
        rows = service.show("questions")
        assert [(row["question"], row["text"]) for row in rows] == [
            (asked.fields["question"], "Tea or coffee?")
        ]
    assert len(model.requests()) == 1
    again = service.listen("demo", after=listener.events[-1].seq)
    again.client.post(Respond(asked.fields["question"], "tea", "test"))
    assert again.ending("demo/1").fields["text"] == "Done."
    assert again.types() == ["question.answered", "attempt.opened", "turn.done"]
    assert '"content": "tea"' in said_to(model, 1)


def test_d5_an_answer_that_was_given_before_the_stop_counts(service: Service, model: FakeModel) -> None:
    listener = begin(service, "[[slow interval=0.2 count=3]] quickly")
    listener.until(lambda: "word0" in listener.words)
    assert service.process is not None
    with stopped(service.process.pid):
        # The worker says its last word to a supervisor that cannot hear yet, and that is then told to stop.
        until(lambda: "attempt.ended" in worker_logs(service))
        os.kill(service.process.pid, signal.SIGTERM)
    assert service.process.wait(DEADLINE_SECONDS) == 0
    service.start()
    again = service.listen("demo")
    assert again.ending("demo/1").type == "turn.done"
    assert again.types() == ["message.accepted", "turn.opened", "attempt.opened", "turn.done"]
    assert len(model.requests()) == 1


def test_d6_an_open_tool_call_is_given_back_as_unknown_and_not_repeated(
    open_service: Service, model: FakeModel, shared: Path, mark: str
) -> None:
    service, ran = open_service, shared / "ran"
    service.say("demo", shell(f"echo once >> {ran}; {sleeper(mark)}"))
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("tool.started"))
    until(lambda: named(mark))
    restart(service)
    assert named(mark) == set()
    ended = service.listen("demo").ending("demo/1")
    assert (ended.type, ended.fields["text"]) == ("turn.done", "Done.")
    assert ran.read_text() == "once\n"
    assert "outcome unknown" in said_to(model, 1)


def noticed(listener: Listener, turn: str) -> int:
    """How many notices of a turn were heard."""
    return sum(isinstance(heard, Noted) and heard.turn == turn for heard in listener.heard)


def test_d8_a_running_turn_has_one_notice_and_it_is_gone_with_its_turn(
    service: Service, model: FakeModel
) -> None:
    """Follow-ups interrupt turns that give notice: of a wait for the model, or of a tool's output."""
    listener, other = service.listen("demo"), service.listen("demo")
    ticks = shell("while :; do echo tick; sleep 0.1; done")
    texts = ("[[429 retry_after=2]] first", "[[429 retry_after=2]] second", ticks)
    for number, text in enumerate(texts, start=1):
        service.say("demo", text)
        listener.until(lambda number=number: noticed(listener, f"demo/{number}"))  # type: ignore[misc]
    service.say("demo", "[[429 times=2]] fourth")
    assert listener.ending("demo/4").type == other.ending("demo/4").type == "turn.done"
    refused = [
        str(request.messages[-1]["content"]).split()[-1]
        for request in model.requests()
        if request.mode == "429"
    ]
    for each in (listener, other):
        # One for each request that was refused, and no other.
        for number, word in ((1, "first"), (2, "second"), (4, "fourth")):
            assert noticed(each, f"demo/{number}") == refused.count(word)
        ended: set[str] = set()
        for heard in each.heard:
            if isinstance(heard, Event):
                ended |= {heard.fields["turn"]} if heard.type in ENDINGS else set()
            else:
                assert heard.turn not in ended, f"{heard} after its end"
    assert refused.count("fourth") == 2


def test_d9_who_speaks_during_the_start_waits_outside_until_recovery_is_done(service: Service) -> None:
    listener = begin(service, "[[slow interval=0.02 count=20]] first")
    service.kill()
    sent: list[Accepted] = []

    def speak() -> bool:
        """As early as there is anything to speak to."""
        try:
            client = Client(service.places)
        except NotRunning:
            return False
        try:
            sent.append(client.ask(Submit("demo", "second", "early", busy="queue"), Accepted))
        finally:
            client.close()
        return True

    start_process(service)
    until(speak)
    again = service.listen("demo")
    assert again.ending("demo/1").type == again.ending("demo/2").type == "turn.done"
    lost = again.of_type("attempt.lost")[0]
    assert len(listener.events) < lost.seq < sent[0].seq
    check_one_owner(again.events)


def start_process(service: Service) -> None:
    """Starts the service without waiting for it."""
    with (service.home / "supervisor.log").open("ab") as log:
        command = [sys.executable, "-m", "supervisor", "--home", str(service.home)]
        service.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def test_d10_a_turn_cannot_end_its_host_and_a_resumed_one_knows_that_it_is(
    service: Service, model: FakeModel
) -> None:
    """It aims at the supervisor, and at a process that stands for all others of its user, as this test."""
    assert service.process is not None
    supervisor = service.process.pid
    # A group and a session of its own: what is sent to all of either reaches no other process.
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as other:
        assert {os.getpgid(pid) for pid in (supervisor, other.pid)} == {supervisor, other.pid}
        aims = (supervisor, other.pid, f"-{supervisor}", f"-{other.pid}")
        command = "; ".join(f"kill -9 -- {aim} && echo hit" for aim in aims)
        # The rest of its own group, and all that it can reach, unless that is more than itself.
        service.say("demo", shell(f"{command}; kill -0 {other.pid} || kill -9 -1"))
        listener = service.listen("demo")
        listener.ending("demo/1")
        assert other.poll() is None
        other.kill()
    results = [str(m["content"]) for request in model.requests() for m in request.messages]
    assert not [result for result in results if "\nhit" in result]
    assert (service.process.poll(), service.status()["epoch"]) == (None, 1)
    service.say("demo", "[[slow interval=0.05 count=30]] again")
    listener.until(lambda: "word5" in listener.words)
    restart(service)
    assert service.listen("demo").ending("demo/2").type == "turn.done"
    assert "[note: the answer above was cut off" in said_to(model, -1)


def test_d11_killed_again_and_again_every_message_ends_once(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 2", turns="attempts_max = 10")
    sights = [Sight(name) for name in ("a", "b", "c")]
    for life in range(3):
        for sight in sights:
            key = f"k{life}"
            text = f"[[slow interval=0.01 count={10 * (life + 1)}]] {key}"
            sight.answered(key, service.say(sight.session, text, key=key, busy="queue"))
        hear(service, "a", "attempt.opened", life + 1)
        restart(service)
    for sight in sights:
        listener = service.listen(sight.session)
        for turn in (1, 2, 3):
            assert listener.ending(f"{sight.session}/{turn}").type == "turn.done"
        for event in listener.events:
            sight.saw(event)
    service.kill()
    check_quiet(service.places.journal, sights)


def test_d12_a_client_that_comes_back_hears_each_event_once_and_the_words_so_far(service: Service) -> None:
    sight = Sight("demo")
    listener = begin(service, "[[slow interval=0.05 count=60]] go")
    listener.until(lambda: "word9" in listener.words)
    restart(service)
    second = service.listen("demo", after=listener.events[-1].seq)
    second.until(lambda: "word9" in second.words)
    third = service.listen("demo", after=second.events[-1].seq)
    third.until(lambda: third.words)
    # Words that were spoken before it came are told as one piece, from the beginning.
    first = next(heard for heard in third.heard if isinstance(heard, Delta))
    assert (first.offset, first.text.startswith("word0 word1")) == (0, True)
    ended = third.ending("demo/1")
    assert third.words == ended.fields["text"]
    for event in (*listener.events, *second.events, *third.events):
        sight.saw(event)
    service.kill()
    check_quiet(service.places.journal, [sight])


@pytest.mark.parametrize("cell", ["auto", "sweep"])
def test_d13_no_process_outlives_a_killed_supervisor(
    make_service: Callable[..., Service], mark: str, cell: str
) -> None:
    service = make_service(workers=f'count = 2\ncell = "{cell}"')
    service.say("demo", shell(f"setsid bash -c '{sleeper(mark)}' & {sleeper(mark)}"))
    until(lambda: len(named(mark)) == 2)
    assert service.process is not None
    family = descendants(service.process.pid) | named(mark)
    service.kill()
    until(lambda: not alive(family - {service.process.pid if service.process else 0}))
    assert named(mark) == set()
    service.start()
    assert named(mark) == set()
    service.interrupt("demo")


def seen(listener: Listener) -> Sight:
    """What the listener saw, as the checker wants it."""
    sight = Sight(listener.events[0].session)
    for event in listener.events:
        sight.saw(event)
    return sight
