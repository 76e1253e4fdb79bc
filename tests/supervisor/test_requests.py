"""Requests of clients, each with its exact answer, asked of a supervisor whose workers are puppets."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ipc.bounds import INSTRUCTIONS_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_CHARACTERS_MAX
from ipc.cpus import available_cpus, seats_for
from ipc.messages import (
    Accepted,
    Begin,
    Done,
    Drain,
    Event,
    Exchange,
    Interrupt,
    Queue,
    Refused,
    Request,
    Respond,
    Retry,
    Scale,
    Seen,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
    Transcribe,
    Undrain,
    Unsubscribe,
)
from supervisor.clients import scaling
from supervisor.clients.changes import message_id
from tests.raw_client import RawClient
from tests.supervisor.puppet_service import PuppetService
from tests.waiting import until


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PuppetService]:
    with PuppetService(tmp_path_factory.mktemp("home")) as made:
        yield made


def turn(service: PuppetService, session: str, text: str, state: str = "done") -> dict[str, Any]:
    """The row of a session's first turn, once it has come so far."""
    assert isinstance(service.ask(Submit(session, text, "k")), Accepted)
    return service.until_state(f"{session}/1", state)


NAMED = f"has 1 to {NAME_CHARACTERS_MAX} printable characters and no space at its ends"
SESSION = f"a session's name {NAMED}"
CURSOR = f"a cursor's name {NAMED}"
BEGINS = "a session begins with turns, or with those of another session"
KEY = "the message's key is empty or too long"


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Submit(" s", "x", "k"), SESSION),
        (Submit("s\n", "x", "k"), SESSION),
        (Submit("", "x", "k"), SESSION),
        (Submit("s", " \n", "k"), "the message is empty"),
        (Submit("s", "x", ""), KEY),
        (Submit("s", "x", "k", clip="a.wav"), "a message is a text or a clip, not both"),
        (Submit("s", "x", "k", agent="poet"), "there is no agent poet"),
        (Submit("try:default:1", "x", "k", agent="default"), "session try:default:1 is a trial of one agent"),
        (
            Submit("isolation:default", "x", "k", agent="default"),
            "session isolation:default is a trial of one agent",
        ),
        (
            Submit("s", "x", "k", instructions="ä" * (INSTRUCTIONS_BYTES_MAX // 2) + "x"),
            f"the instructions are {INSTRUCTIONS_BYTES_MAX + 1} bytes, the limit is {INSTRUCTIONS_BYTES_MAX}",
        ),
        (
            Submit("s", "ä" * (MESSAGE_BYTES_MAX // 2) + "x", "k"),
            f"the message is {MESSAGE_BYTES_MAX + 1} bytes, the limit is {MESSAGE_BYTES_MAX}",
        ),
        (Begin("", "k", (Exchange("a"),)), SESSION),
        (Begin("s", "", (Exchange("a"),)), KEY),
        (Begin("s", "k"), "a session begins with turns, or with those of another session"),
        (
            Begin("s", "k", (Exchange("a"),), "t"),
            "a session begins with turns, or with those of another session",
        ),
        (Begin("s", "k", from_session="s"), "a session cannot begin with itself"),
        (Begin("s", "k", from_session="nobody"), "there is no session nobody"),
        (Transcribe("a", ""), KEY),
        (Transcribe("a", "k"), "the clip is not in the clips folder"),
        (Interrupt(" ", "me"), SESSION),
        (Queue("", "clear"), SESSION),
        (Respond("s/1:c", "  ", "me"), "the message is empty"),
        (Retry("s/1", ""), KEY),
        (Retry("s/1", "k"), "turn s/1 is not known"),
        (Retry("m_1", "k"), "message m_1 is not known"),
        (Seen("c", "", 1), SESSION),
        (Seen(" c", "s", 1), CURSOR),
        (Subscribe("s", cursor=" c"), CURSOR),
        (Subscribe(None, after=1), "events are counted within one session"),
        (Subscribe(None, cursor="c"), "a cursor counts within one session"),
        (Subscribe("new", after=1), "session new has 0 events, so there is nothing after number 1 yet"),
        (Scale(seats=1, per_cpu=1.0), "seats and seats per CPU are both given"),
        (Scale(seats=0), "0 seats cannot be had"),
        (Scale(seats=10_001), "10001 seats cannot be had"),
        (Scale(per_cpu=0.0), "0 seats per CPU cannot be had"),
        (Scale(per_cpu=1000.5), "1000.5 seats per CPU cannot be had"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_faulty_request_is_refused_by_name(service: PuppetService, request_: Request, error: str) -> None:
    answer = service.ask(request_)
    assert isinstance(answer, Refused), answer
    assert answer.error == error
    assert answer.hint


def test_bounds_are_within(service: PuppetService) -> None:
    longest = "n" * NAME_CHARACTERS_MAX
    answer = service.ask(Submit(longest, "finish" + " " * (MESSAGE_BYTES_MAX - 6), "k" * NAME_CHARACTERS_MAX))
    assert answer == Accepted(message_id(longest, "k" * NAME_CHARACTERS_MAX), 1)
    assert scaling.seats_asked(Scale(seats=10_000)) == 10_000
    assert scaling.seats_asked(Scale(seats=1)) == 1
    assert scaling.seats_asked(Scale(per_cpu=1000.0)) == min(10_000, seats_for(1000.0))
    assert scaling.seats_asked(Scale(per_cpu=0.5)) == seats_for(0.5)


def test_the_same_key_is_the_same_message(service: PuppetService) -> None:
    first = service.ask(Submit("keys", "finish", "k"))
    assert isinstance(first, Accepted)
    assert first == Accepted(message_id("keys", "k"), 1)
    service.until_state("keys/1", "done")
    again = service.ask(Submit("keys", "finish", "k"))
    assert isinstance(again, Accepted)
    assert (again.message, again.seq, again.again) == (message_id("keys", "k"), 1, True)
    assert isinstance(service.ask(Submit("keys", "another", "k")), Refused)
    assert [row["turn"] for row in service.rows("turns", session="keys")] == ["keys/1"]
    of_message, of_turn = (service.rows("story", id=each)[0] for each in (first.message, "keys/1"))
    assert (of_message["kind"], of_message["turn_state"]) == ("message", "done")
    assert (of_turn["kind"], of_turn["id"]) == ("turn", "keys/1")


def test_a_running_turn_is_shown_with_its_worker(service: PuppetService) -> None:
    row = turn(service, "running", "say wait", "running")
    (worker,) = [each for each in service.rows("workers") if each["turn"] == "running/1"]
    assert (row["worker"], row["pid"]) == (worker["seat"], worker["pid"])
    assert (worker["state"], worker["session"], worker["words"]) == ("busy", "running", "")
    assert worker["pid"] == worker["incarnation"]  # of a puppet
    assert 0 <= worker["progress"] < 60
    assert 0 <= worker["process"] < 60
    assert 0 <= worker["loop"] < 60
    assert 0 <= worker["age_seconds"] < 60
    (session,) = [each for each in service.rows("sessions") if each["session"] == "running"]
    assert (session["state"], session["turn"], session["waiting"]) == ("occupied", "running/1", 0)
    status = service.status()
    assert (status["state"], status["busy"], status["running"], status["seats"]) == ("ready", 1, 1, 2)
    assert (status["sessions_live"], status["spares"], status["waiting"]) == (1, 0, 0)
    assert service.ask(Interrupt("running", "me")) == Done(("running/1",))
    ended = service.until_state("running/1", "interrupted")
    assert (ended["worker"], ended["pid"], ended["ended_by"]) == (None, None, "me")


def test_pages_continue_where_the_last_one_ended(service: PuppetService) -> None:
    for name in ("p1", "p2", "p3"):
        turn(service, name, "finish")
    for what, key in (("sessions", "session"), ("turns", "turn"), ("workers", "seat")):
        page = service.ask(Show(what, limit=1))  # type: ignore[arg-type]
        assert isinstance(page, Table)
        rest = service.rows(what, limit=1, after=page.more)
        assert len(page.rows) == 1
        found = [row[key] for row in (*page.rows, *rest)]
        assert sorted(set(found), key=str) == sorted(found, key=str)
        assert found == [row[key] for row in service.rows(what)]
    assert [row["turn"] for row in service.rows("turns", session="p2")] == ["p2/1"]
    assert {row["state"] for row in service.rows("turns", state="done")} == {"done"}
    assert isinstance(service.ask(Show("turns", after="nowhere")), Refused)


def test_waiting_messages_are_listed_dropped_and_cleared(service: PuppetService) -> None:
    turn(service, "queue", "say wait", "running")
    for key in ("a", "b", "c"):
        answer = service.ask(Submit("queue", f"finish {key}", key, busy="queue"))
        assert isinstance(answer, Accepted)
    table = service.ask(Queue("queue"))
    assert isinstance(table, Table)
    ids = [message_id("queue", key) for key in ("a", "b", "c")]
    assert [row["message"] for row in table.rows] == ids
    row = table.rows[0]
    assert (row["kind"], row["state"], row["busy"]) == ("text", "waiting", "queue")
    assert (row["text"], row["held"]) == ("finish a", False)
    (session,) = [each for each in service.rows("sessions") if each["session"] == "queue"]
    assert session["waiting"] == 3
    assert service.status()["waiting"] == 3
    summary, *told = service.rows("story", id=ids[0])
    assert (summary["kind"], summary["state"]) == ("message", "waiting")
    assert [(row["type"], row["message"]) for row in told] == [("message.accepted", ids[0])]
    assert isinstance(service.ask(Queue("queue", "drop", ids[1])), Done)
    assert [each["message"] for each in service.client.rows(Queue("queue"))] == [ids[0], ids[2]]
    assert isinstance(service.ask(Queue("queue", "clear")), Done)
    assert list(service.client.rows(Queue("queue"))) == []
    assert list(service.client.rows(Queue("nobody"))) == []
    assert service.ask(Interrupt("queue", "me", expect_turn="queue/1")) == Done(("queue/1",))
    service.until_state("queue/1", "interrupted")


def test_an_interrupt_holds_what_waits_until_it_is_resumed(service: PuppetService) -> None:
    turn(service, "held", "say wait", "running")
    assert isinstance(service.ask(Submit("held", "finish", "next", busy="queue")), Accepted)
    assert service.ask(Interrupt("held", "me")) == Done(("held/1",))
    service.until_state("held/1", "interrupted")
    (waiting,) = service.client.rows(Queue("held"))
    assert waiting["held"] is True
    assert isinstance(service.ask(Queue("held", "resume")), Done)
    service.until_state("held/2", "done")


def test_an_interrupt_can_drop_what_waits(service: PuppetService) -> None:
    turn(service, "dropped", "say wait", "running")
    assert isinstance(service.ask(Submit("dropped", "finish", "next", busy="queue")), Accepted)
    assert service.ask(Interrupt("dropped", "me", drop=True)) == Done(("dropped/1",))
    service.until_state("dropped/1", "interrupted")
    assert list(service.client.rows(Queue("dropped"))) == []


def test_an_interrupt_of_all_names_all_and_of_none_says_so(service: PuppetService) -> None:
    assert service.ask(Interrupt(None, "me")) == Done(note="nothing runs")
    quiet = service.ask(Interrupt("nobody", "me"))
    assert isinstance(quiet, Done)
    assert quiet.turns == ()
    assert quiet.note
    turn(service, "all1", "say wait", "running")
    turn(service, "all2", "say wait", "running")
    # An expected turn is of one session; for all it counts for nobody.
    answer = service.ask(Interrupt(None, "me", expect_turn="all1/7"))
    assert isinstance(answer, Done)
    assert sorted(answer.turns) == ["all1/1", "all2/1"]
    for name in ("all1", "all2"):
        service.until_state(f"{name}/1", "interrupted")


def test_an_interrupt_of_another_turn_is_refused(service: PuppetService) -> None:
    turn(service, "expected", "say wait", "running")
    assert isinstance(service.ask(Interrupt("expected", "me", expect_turn="expected/2")), Refused)
    assert service.rows("turns", session="expected")[0]["state"] == "running"
    assert service.ask(Interrupt("expected", "me", expect_turn="expected/1")) == Done(("expected/1",))


def test_only_a_failed_or_interrupted_turn_is_retried(service: PuppetService) -> None:
    turn(service, "retry", "fail", "failed")
    turn(service, "fine", "finish")
    refused = service.ask(Retry("fine/1", "again"))
    assert isinstance(refused, Refused)
    assert refused.error == "turn fine/1 is done"
    assert isinstance(service.ask(Retry("retry/1", "again")), Accepted)
    service.until_state("retry/2", "failed")
    story = service.rows("story", id=message_id("retry", "again"))
    assert [row["text"] for row in story if row.get("type") == "message.accepted"] == ["fail"]
    no_clip = service.ask(Retry(message_id("retry", "again"), "clip"))
    assert isinstance(no_clip, Refused)
    assert "only a clip" in no_clip.hint


def test_a_turn_that_runs_is_not_copied(service: PuppetService) -> None:
    turn(service, "origin", "say wait", "running")
    refused = service.ask(Begin("copy", "k", from_session="origin", through_turn=1))
    assert isinstance(refused, Refused)
    assert (refused.error, refused.code) == ("turn origin/1 has not ended", "conflict")
    assert service.ask(Interrupt("origin", "me")) == Done(("origin/1",))
    service.until_state("origin/1", "interrupted")
    assert isinstance(service.ask(Begin("copy", "k", from_session="origin", through_turn=1)), Done)


def test_a_retry_is_no_answer_to_a_question(service: PuppetService) -> None:
    turn(service, "unsure", "fail", "failed")
    assert isinstance(service.ask(Submit("unsure", "ask finish", "l")), Accepted)
    service.until_state("unsure/2", "asking")
    assert isinstance(service.ask(Retry("unsure/1", "again")), Accepted)
    assert service.rows("turns", session="unsure")[0]["state"] == "asking"
    queued = service.ask(Queue("unsure"))
    assert isinstance(queued, Table)
    assert [row["message"] for row in queued.rows] == [message_id("unsure", "again")]
    assert isinstance(service.ask(Interrupt("unsure", "me", drop=True)), Done)


def test_the_wishes_of_a_clip_are_kept(service: PuppetService) -> None:
    service.places.clips.mkdir(exist_ok=True)
    (service.places.clips / "abc").write_bytes(b"sound")
    clip = Submit("voice", "", "k", clip="abc", agent="default", instructions="be brief", by="me")
    assert isinstance(service.ask(clip), Accepted)
    [told] = [row for row in service.rows("story", id=message_id("voice", "k")) if row.get("seq") == 1]
    assert (told["kind"], told["agent"]) == ("voice", "default")
    with closing(sqlite3.connect(service.places.journal)) as journal:
        [row] = journal.execute("SELECT instructions, sent_by FROM messages WHERE clip = 'abc'")
    assert row == ("be brief", "me")


def test_a_retried_clip_is_to_wait_whatever_the_busy_mode_of_its_session_is(service: PuppetService) -> None:
    service.places.clips.mkdir(exist_ok=True)
    (service.places.clips / "retold").write_bytes(b"sound")
    spoken, retried = message_id("retold", "k"), message_id("retold", "again")
    assert isinstance(service.ask(Submit("retold", "", "k", clip="retold")), Accepted)
    until(lambda: service.rows("story", id=spoken)[0]["state"] == "failed")
    assert isinstance(service.ask(Retry(spoken, "again")), Accepted)
    told = [service.rows("story", id=message)[1] for message in (spoken, retried)]
    assert [event["type"] for event in told] == ["message.accepted"] * 2
    assert [event["busy"] for event in told] == ["interrupt", "queue"]


def test_a_question_is_shown_and_answered(service: PuppetService) -> None:
    turn(service, "asks", "ask finish", "asking")
    (question,) = [row for row in service.rows("questions") if row["turn"] == "asks/1"]
    assert service.status()["asking"] == 1
    assert isinstance(service.ask(Respond(question["question"], "a", "me")), Done)
    service.until_state("asks/1", "done")
    assert isinstance(service.ask(Respond(question["question"], "b", "me")), Refused)


def test_cursors_are_kept_and_a_subscription_begins_there(service: PuppetService) -> None:
    turn(service, "cursor", "finish")
    told = next(row["seq"] for row in service.rows("sessions") if row["session"] == "cursor")
    assert isinstance(service.ask(Seen("bridge", "cursor", 2)), Done)
    assert [(row["cursor"], row["seq"]) for row in service.rows("cursors", session="cursor")] == [
        ("bridge", 2)
    ]
    number = service.client.post(Subscribe("cursor", cursor="bridge"))
    assert service.next_to(number) == Subscribed(told, 2)
    events = [service.next_to(number) for _ in range(told - 2)]
    assert [event.seq for event in events if isinstance(event, Event)] == list(range(3, told + 1))
    assert service.ask(Unsubscribe(number)) == Done()
    assert service.ask(Subscribe("cursor")) == Subscribed(told, told)
    assert service.ask(Subscribe("cursor", after=1, cursor="bridge")) == Subscribed(told, 1)
    assert service.ask(Subscribe("cursor", cursor="unknown")) == Subscribed(told, 0)


def test_a_drained_service_accepts_and_begins_nothing(service: PuppetService) -> None:
    assert isinstance(service.ask(Drain()), Done)
    assert isinstance(service.ask(Submit("drained", "finish", "k")), Accepted)
    status = service.status()
    assert (status["state"], status["draining"]) == ("draining", True)
    assert status["draining_since"] is not None
    assert not service.rows("turns", session="drained")
    assert isinstance(service.ask(Undrain()), Done)
    service.until_state("drained/1", "done")
    assert service.status()["draining_since"] is None


def test_the_number_of_seats_is_shown_and_changed(service: PuppetService) -> None:
    cpus = available_cpus()
    shown = Done(note=f"2 seats on {cpus:g} CPUs, {2 / cpus:.2g} per CPU")
    assert service.ask(Scale()) == shown
    assert isinstance(service.ask(Scale(seats=3)), Done)
    until(lambda: len(service.rows("workers")) == 3)
    assert service.status()["seats"] == 3
    assert isinstance(service.ask(Scale(seats=2)), Done)
    until(lambda: len(service.rows("workers")) == 2)


def test_sessions_and_turns_are_shown_with_their_content(service: PuppetService) -> None:
    turn(service, "shown:a", "say tool finish")
    turn(service, "shown:b", "finish")
    assert {row["session"] for row in service.rows("sessions", prefix="shown:")} == {"shown:a", "shown:b"}
    (found,) = service.rows("sessions", prefix="shown:", words="finish TOOL")
    assert (found["session"], found["state"]) == ("shown:a", "at rest")
    (row,) = service.rows("history", session="shown:a")
    assert (row["turn"], row["state"]) == ("shown:a/1", "done")
    assert row["messages"][0]["text"] == "say tool finish"
    assert service.rows("turn", id="shown:a/1") == [row]
    assert service.rows("turn", id="shown:a/2") == service.rows("history", session="nobody") == []
    assert {row["turn"] for row in service.rows("turns", prefix="shown:")} == {"shown:a/1", "shown:b/1"}
    assert service.rows("questions", prefix="shown:") == []


def test_status_tells_the_busy_mode_of_a_session_if_one_is_named(service: PuppetService) -> None:
    assert "busy_mode" not in service.status()
    assert service.rows("status", session="s")[0]["busy_mode"] == "interrupt"
    assert service.status()["hints"] == []


def test_bad_frames_are_answered_where_there_is_somebody_to_answer(service: PuppetService) -> None:
    with RawClient(service.places) as client:
        client.post(b"short", b"x")
        found = client.receive()
        assert found is not None
        assert found[0] == b"short"
        assert found[1] == Refused(
            "a request number has 8 bytes", "see docs/protocol.md for the parts of a request"
        )
        client.post(b"12345678", b"\xffnothing")
        found = client.receive()
        assert found is not None
        assert isinstance(found[1], Refused)
        client.post(b"too", b"many", b"parts")
        assert isinstance(client.ask({"t": "show", "what": "status"}), Table)
