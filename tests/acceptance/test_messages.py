"""Messages, row by row: every one that was accepted is kept, in order, once, and ends in a named state."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, BusyMode, Event, Queue, Refused, Submit, Subscribe, Subscribed
from ipc.sockets import SEND_FRAMES_MAX
from tests.fake_model import FakeModel
from tests.service import Service
from tests.waiting import until

HOLD = "[[silent]] hold"
MEGABYTE = 1024 * 1024
# What a supervisor may grow by while it passes on far more than that: buffers, not what passed.
FLAT_BYTES = 64 * MEGABYTE


def queued(service: Service, session: str) -> list[str]:
    """What waits, by id, in order."""
    client = service.client()
    try:
        return [row["message"] for row in client.rows(Queue(session))]
    finally:
        client.close()


def say_many(client: Client, session: str, texts: list[str], busy: BusyMode = "queue") -> list[str]:
    """Says everything at once, then reads the answers; the ids in the order of speaking."""
    numbers = [client.post(Submit(session, text, f"key {text}", busy)) for text in texts]
    return [client.answer_to(number, Accepted).message for number in numbers]


def say_thousand(client: Client, start: int) -> list[str]:
    return say_many(client, "demo", [f"number {start + number}" for number in range(1000)], "steer")


def taken(events: list[Event]) -> list[str]:
    """The messages in the order in which turns took them."""
    taking = (event for event in events if event.type in ("turn.opened", "turn.joined"))
    return [message for event in taking for message in event.fields["messages"]]


def heard(service: Service, session: str) -> list[Event]:
    """All events of a session that has at least one."""
    listener = service.listen(session)
    (row,) = [row for row in service.show("sessions") if row["session"] == session]
    listener.until(lambda: len(listener.events) >= row["seq"])
    return listener.events


def memory_bytes(service: Service) -> int:
    assert service.process is not None
    resident = Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]
    return int(resident) * resource.getpagesize()


# --- B1 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 500])
def test_b1_messages_while_busy_are_all_kept_in_order(
    make_service: Callable[..., Service], count: int
) -> None:
    # A short history, or each of five hundred turns would be given all those before it.
    short = {"agents.default": "history_characters_max = 1000"}
    service = make_service(workers="count = 1", turns='busy = "queue"', **short)
    held = service.say("demo", HOLD)
    messages = say_many(service.client(), "demo", [f"number {number}" for number in range(count)])
    assert queued(service, "demo") == messages
    service.kill()
    service.start()
    assert queued(service, "demo") == messages
    service.interrupt("demo", expect_turn="demo/1")
    assert queued(service, "demo") == messages
    assert service.hermesctl("queue", "demo", "resume").returncode == 0
    listener = service.listen("demo")
    listener.until(lambda: len(listener.of_type("turn.done")) == count, deadline_seconds=250)
    assert taken(listener.events) == [held.message, *messages]
    answers = [event.fields["text"] for event in listener.of_type("turn.done")]
    assert answers == [f"You said: number {number}" for number in range(count)]


def test_b1_beyond_the_limit_the_sender_is_refused_at_once(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1", turns='busy = "queue"\nwaiting_max = 10')
    service.say("demo", HOLD)
    messages = say_many(service.client(), "demo", [f"number {number}" for number in range(10)])
    client = service.client()
    number = client.post(Submit("demo", "one too many", "many"))
    with pytest.raises(CommandError) as refused:
        client.answer_to(number, Refused)
    assert "10 messages wait in session demo" in refused.value.fault
    assert "queue demo clear" in refused.value.hint
    sent = service.hermesctl("send", "demo", "one too many", "--no-wait")
    assert sent.returncode == 5
    assert queued(service, "demo") == messages
    assert service.say("other", "hello").message


# --- B2, B3 -------------------------------------------------------------------------------------------------


def test_b2_what_was_accepted_is_there_after_a_kill_at_once(service: Service) -> None:
    for number in range(3):
        accepted = service.say("demo", f"number {number}", busy="queue")
        service.kill()
        service.start()
        listener = service.listen("demo")
        assert listener.ending(f"demo/{number + 1}").fields["text"] == f"You said: number {number}"
        assert taken(listener.events)[-1] == accepted.message
    assert len(service.show("turns")) == 3


def test_b3_a_message_sent_again_after_restarts_is_the_same_message(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 1", turns='busy = "queue"')
    done = service.say("demo", "once", key="done")
    service.listen("demo").ending("demo/1")
    running = service.say("demo", HOLD, key="running")
    waiting = service.say("demo", "wait", key="waiting")
    dropped = service.say("demo", "never mind", key="dropped")
    assert service.hermesctl("queue", "demo", "drop", dropped.message).returncode == 0
    for end in (service.kill, service.stop):
        end()
        service.start()
        for key, text, first in (
            ("done", "once", done),
            ("running", HOLD, running),
            ("waiting", "wait", waiting),
            ("dropped", "never mind", dropped),
        ):
            again = service.say("demo", text, key=key)
            assert (again.message, again.seq, again.again) == (first.message, first.seq, True)
    assert queued(service, "demo") == [waiting.message]
    assert [row["turn"] for row in service.show("turns")] == ["demo/2", "demo/1"]
    assert [request.mode for request in model.requests()].count("normal") == 1
    other = service.say("other", "once", key="done")
    assert (other.again, other.message != done.message) == (False, True)


def test_b3_a_known_key_with_another_text_is_refused_by_name(service: Service) -> None:
    def send(text: str) -> "subprocess.CompletedProcess[str]":
        return service.hermesctl("send", "demo", text, "--id", "order-17", "--no-wait", "--json")

    first = json.loads(send("one").stdout)
    assert not first["again"]
    for _ in range(2):
        same, other = send("one"), send("two")
        assert json.loads(same.stdout) == first | {"again": True}
        assert (other.returncode, other.stdout) == (5, "")
        assert f"the key order-17 belongs to another message, {first['message']}" in other.stderr
        service.kill()
        service.start()
    texts = [event.fields["text"] for event in heard(service, "demo") if event.type == "message.accepted"]
    assert texts == ["one"]


def test_one_who_waits_is_told_behind_what(service: Service) -> None:
    service.say("demo", HOLD)
    until(lambda: service.show("turns", state="running"))

    def sent(busy: str) -> str:
        return service.hermesctl("send", "demo", "and then?", "--busy", busy, "--no-wait").stderr

    assert sent("queue") == "· it waits until demo/1 ends\n"
    assert sent("queue") == "· it waits until demo/1 ends, behind 1 other message\n"
    assert sent("collect") == "· it is answered with all that gathers until demo/1 ends\n"
    assert sent("steer") == sent("interrupt") == ""


# --- B4, B5 -------------------------------------------------------------------------------------------------


def test_b4_a_steer_that_was_not_taken_in_is_the_next_message(service: Service) -> None:
    service.say("demo", "[[slow interval=0.02 count=30]] go")
    listener = service.listen("demo")
    listener.until(lambda: "word3" in listener.words)
    steer = service.say("demo", "one more thing", busy="steer")
    assert listener.ending("demo/1").type == "turn.done"
    assert listener.ending("demo/2").fields["text"] == "You said: one more thing"
    assert listener.of_type("turn.steered") == []
    assert taken(listener.events)[-1] == steer.message


def test_b4_a_steer_survives_the_interrupt_of_its_turn(service: Service) -> None:
    service.say("demo", HOLD)
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    steer = service.say("demo", "one more thing", busy="steer")
    service.interrupt("demo")
    assert listener.ending("demo/1").type == "turn.interrupted"
    assert queued(service, "demo") == [steer.message]
    assert service.hermesctl("queue", "demo", "resume").returncode == 0
    assert listener.ending("demo/2").fields["text"] == "You said: one more thing"


def test_b5_messages_of_all_modes_are_taken_in_the_order_of_arrival(service: Service) -> None:
    held = service.say("demo", HOLD)
    listener = service.listen("demo")
    listener.until(lambda: listener.of_type("attempt.opened"))
    modes: list[BusyMode] = ["queue", "collect", "collect", "steer", "queue", "collect", "interrupt"]
    sent = [service.say("demo", f"number {at}", busy=mode).message for at, mode in enumerate(modes)]
    # The interrupt at the end stops what holds; everything before it is still answered first or with it.
    listener.until(lambda: sent[-1] in taken(listener.events))
    last = next(event for event in listener.events if sent[-1] in event.fields.get("messages", ()))
    assert listener.ending(last.fields["turn"]).fields["text"] == "You said: number 5\n\nnumber 6"
    assert taken(listener.events) == [held.message, *sent]
    assert [event.fields["message"] for event in listener.of_type("message.accepted")] == [
        held.message,
        *sent,
    ]
    answers = "\n".join(event.fields["text"] for event in listener.of_type("turn.done"))
    assert [number for number in range(7) if f"number {number}" in answers] == list(range(7))


def test_b5_rapid_messages_that_nobody_began_to_answer_are_answered_by_one_turn(service: Service) -> None:
    """In the default mode: what was begun is interrupted, all others are answered together."""
    client, listener = service.client(), service.listen("demo")
    texts = ["one", "two", "three", "four", "five"]
    numbers = [client.post(Submit("demo", text, text)) for text in texts]
    sent = [client.answer_to(number, Accepted).message for number in numbers]
    listener.until(lambda: sent[-1] in taken(listener.events))
    assert taken(listener.events) == sent
    last = next(event.fields["turn"] for event in reversed(listener.events) if "messages" in event.fields)
    assert listener.ending(last).fields["text"].endswith("five")
    begun = {event.fields["turn"] for event in listener.of_type("attempt.opened")}
    assert {event.fields["turn"] for event in listener.of_type("turn.interrupted")} <= begun - {last}
    told = service.hermesctl("why", sent[-1]).stdout
    assert f"message {sent[-1]} was taken by turn {last}, which is done" in told


def test_b5_a_turn_in_line_takes_in_what_comes_before_it_begins(
    make_service: Callable[..., Service],
) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    service.say("other", HOLD)
    until(lambda: service.status()["running"] == 1)
    sent = [service.say("demo", text).message for text in ("one", "two", "three")]
    assert queued(service, "demo") == sent[1:]
    service.interrupt("other")
    listener = service.listen("demo")
    assert listener.ending("demo/1").fields["text"] == "You said: one\n\ntwo\n\nthree"
    assert listener.of_type("turn.joined")[0].fields == {"turn": "demo/1", "messages": sent[1:]}
    told = service.hermesctl("why", sent[2]).stdout
    assert f"before it began, turn demo/1 took in {sent[1]}, {sent[2]} as well" in told


# --- B6 -----------------------------------------------------------------------------------------------------


def test_b6_a_client_that_does_not_read_costs_nobody_else_anything(service: Service) -> None:
    deaf = [service.client() for _ in range(3)]
    for client in deaf:
        client.answer_to(client.post(Subscribe("loud", 0)), Subscribed)
        client.post(Subscribe(None))
    before = memory_bytes(service)
    service.say("loud", "[[huge characters=2000 count=400]] go")
    listener = service.listen("loud")
    ended = listener.ending("loud/1")
    assert len(ended.fields["text"]) == len(listener.words) >= 400 * 2000
    assert service.hermesctl("send", "quiet", "hello").stdout == "You said: hello\n"
    assert memory_bytes(service) - before < FLAT_BYTES


def test_b6_a_client_that_vanishes_loses_nothing_that_was_accepted(service: Service) -> None:
    gone = Client(service.places)
    for number in range(20):
        gone.post(Submit("demo", f"number {number}", f"key {number}", "queue"))
    until(lambda: [row for row in service.show("sessions") if row["seq"] >= 20])
    gone.close()
    listener = service.listen("demo")
    listener.until(lambda: len(listener.of_type("turn.done")) == 20)
    assert [event.fields["text"] for event in listener.of_type("turn.done")] == [
        f"You said: number {number}" for number in range(20)
    ]


def test_b6_a_worker_that_stands_still_is_noticed_and_nothing_is_lost(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers='count = 1\npulse = "8s"', turns='busy = "steer"\nwaiting_max = 10000')
    model.set_mode("silent", times=1)
    held = service.say("demo", "hold")
    listener = service.listen("demo")
    model.wait(lambda requests: len(requests) == 1)
    worker = next(row["pid"] for row in service.show("workers") if row["session"] == "demo")
    os.kill(worker, signal.SIGSTOP)
    # Many, and fewer bytes than its queue holds: neither the stopped one nor its successor is buried in them.
    count = SEND_FRAMES_MAX + 1000
    client = service.client()
    sent = [message for start in range(0, count, 1000) for message in say_thousand(client, start)]
    listener.until(lambda: listener.of_type("attempt.lost"), deadline_seconds=60)
    assert "sign of life" in listener.of_type("attempt.lost")[0].fields["reason"]
    listener.until(lambda: taken(listener.events)[1:2] == sent[:1], deadline_seconds=60)
    assert len(listener.of_type("attempt.lost")) == 1
    service.interrupt("demo")
    # Whatever the next turn has taken together, none is missing and the order is kept.
    listener.until(lambda: [*taken(listener.events), *queued(service, "demo")] == [held.message, *sent])


# --- B7 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2 * MEGABYTE, 20 * MEGABYTE])
def test_b7_a_huge_message_is_refused_by_name(service: Service, size: int) -> None:
    before = memory_bytes(service)
    command = [sys.executable, "-m", "hermesctl", "--home", str(service.home), "send", "demo", "-"]
    sent = subprocess.run(command, input="x" * size, capture_output=True, text=True, timeout=60)
    assert sent.returncode == 5, sent.stderr
    assert "the limit is" in sent.stderr
    assert len(sent.stderr) < 1000
    assert service.show("sessions") == []
    assert memory_bytes(service) - before < FLAT_BYTES


def test_b7_huge_tool_output_is_cut_and_the_supervisor_stays_flat(service: Service, model: FakeModel) -> None:
    arguments = json.dumps({"command": "head -c 300000000 /dev/zero | tr '\\0' x"})
    model.set_mode("tools", name="shell", arguments=arguments, text="Done.")
    before = memory_bytes(service)
    service.say("demo", "go")
    listener = service.listen("demo")
    assert listener.ending("demo/1", deadline_seconds=100).fields["text"] == "Done."
    results = [message for message in model.requests()[-1].messages if message["role"] == "tool"]
    assert 1000 < len(str(results[0]["content"])) < 100_000
    assert memory_bytes(service) - before < FLAT_BYTES


@pytest.mark.parametrize("kind", ["tokens", "line"])
def test_b7_an_answer_without_end_fails_by_name_and_the_supervisor_stays_flat(
    service: Service, model: FakeModel, kind: str
) -> None:
    before = memory_bytes(service)
    service.say("demo", "[[huge]] go" if kind == "tokens" else "[[huge kind=line]] go")
    listener = service.listen("demo")
    ended = listener.ending("demo/1", deadline_seconds=100)
    assert ended.type == "turn.failed"
    assert ended.fields["error"]
    assert ended.fields["hint"]
    assert memory_bytes(service) - before < FLAT_BYTES
    model.reset()
    assert service.hermesctl("send", "demo", "hello").stdout == "You said: hello\n"
