"""Interrupts, row by row: what runs ends at once and for good; what was said is answered once, in order."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermesctl.errors import CommandError
from ipc.messages import Accepted, Event, Interrupt, Noted, Submit
from tests.acceptance.sight import (
    alive,
    check_one_owner,
    check_one_session_a_process,
    descendants,
    memory_of,
    shell,
    stopped,
    worker_logs,
    worker_of,
    zygote_of,
)
from tests.fake_model import FakeModel
from tests.fake_model_exchange import Record
from tests.service import Listener, Service
from tests.waiting import until

SLOW = "[[slow interval=0.02 count=2000]] go"


def follow(service: Service, text: str, session: str = "demo") -> Listener:
    service.say(session, text)
    return service.listen(session)


def opened_pids(listener: Listener) -> list[int]:
    return [event.fields["pid"] for event in listener.of_type("attempt.opened")]


def bystander(service: Service) -> None:
    """A whole turn in another session: whatever else was under way has had its time."""
    sent = service.hermesctl("send", "bystander", "hello")
    assert sent.stdout == "You said: hello\n", sent.stderr


@pytest.mark.parametrize(
    "mode",
    ["slow interval=0.02 count=2000", "stall", "silent", "429 retry_after=2", "500"],
)
def test_a1_an_interrupted_turn_asks_the_model_nothing_more(
    service: Service, model: FakeModel, mode: str
) -> None:
    listener = follow(service, f"[[{mode}]] go")
    asked = model.wait(lambda requests: len(requests) == 1)
    if mode.startswith(("429", "500")):
        listener.until(lambda: listener.notes)  # it waits for its next try

    def requests() -> list[Record]:
        """Those of the turn. What was sent before a bystander's turn has reached the model after it."""
        bystander(service)
        return [request for request in model.requests() if request.messages == asked[0].messages]

    family = descendants(worker_of(service, "demo"))
    service.interrupt("demo")
    ended = listener.ending("demo/1")
    assert alive(family) == set()
    assert ended.type == "turn.interrupted"
    assert ended.fields["killed"]["all_dead"]
    count = len(requests())
    until(lambda: service.status()["idle"] == 3)
    found = requests()
    assert len(found) == count
    assert all(request.disconnected or request.ended for request in found)
    assert not any(isinstance(each, Noted) for each in listener.heard[listener.heard.index(ended) :])
    if mode.startswith(("slow", "stall", "silent")):
        (only,) = found
        assert only.disconnected
        assert listener.notes == []


def test_a2_the_next_turn_starts_clean_in_another_process(service: Service, model: FakeModel) -> None:
    listener = follow(service, SLOW)
    listener.until(lambda: "word3" in listener.words)
    service.say("demo", "[[slow interval=0.01 text='a clean answer']] now you")
    done = listener.ending("demo/2")
    assert (done.type, done.fields["text"]) == ("turn.done", "a clean answer")
    first, second = opened_pids(listener)
    assert first != second
    closing = next(
        index
        for index, item in enumerate(listener.heard)
        if isinstance(item, Event) and item.type == "turn.interrupted"
    )
    for item in listener.heard[closing + 1 :]:
        turn = item.fields.get("turn", "demo/2") if isinstance(item, Event) else item.turn
        assert turn == "demo/2"
    requests = model.requests()
    assert [request.disconnected for request in requests] == [True, False]
    assert requests[0].port != requests[1].port


def test_a3_a_late_interrupt_is_refused_by_name_and_touches_nothing(service: Service) -> None:
    service.listen("demo")
    follow(service, "first").ending("demo/1")
    listener = follow(service, "[[slow interval=0.02 count=20]] second")
    listener.until(lambda: "word1" in listener.words)
    with pytest.raises(CommandError, match="turn demo/1 is over, demo/2 runs now"):
        service.interrupt("demo", expect_turn="demo/1")
    with pytest.raises(CommandError, match="turn demo/1 is over, demo/2 runs now"):
        service.say("demo", "too late", expect_turn="demo/1")
    assert listener.ending("demo/2").type == "turn.done"
    assert len(opened_pids(listener)) == 2
    with pytest.raises(CommandError, match="turn demo/2 is over, nothing runs now"):
        service.interrupt("demo", expect_turn="demo/2")
    idle = service.interrupt("demo")
    assert (idle.turns, idle.note) == ((), "nothing runs in session demo")
    assert follow(service, "third").ending("demo/3").fields["text"] == "You said: third"


def test_a4_a_real_network_error_is_retried_visibly_and_then_told(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    """Tries are bounded by number within an attempt, then by `[turns] outage_max` in time."""
    service = make_service(workers="count = 2", turns='outage_max = "1s"')
    # The listener is there before the notes: those are fleeting.
    listener = follow(service, "hello")
    assert listener.ending("demo/1").type == "turn.done"
    service.say("demo", "[[drop tokens=0 times=2]] go")
    assert listener.ending("demo/2").type == "turn.done"
    assert len(listener.notes) == 2
    listener.notes.clear()
    service.say("demo", "[[drop tokens=0]] go")
    ended = listener.ending("demo/3")
    assert ended.type == "turn.failed"
    assert ended.fields["error"]
    assert ended.fields["hint"]
    assert "[turns] outage_max" in ended.fields["error"]
    assert [note.rpartition("(")[2] for note in listener.notes[:2]] == ["2 of 3)", "3 of 3)"]
    assert all("trying again in" in note for note in listener.notes[:2])
    assert "it waits for the model server" in listener.notes[2]
    assert 1 + 3 + 3 <= len(model.requests()) <= 1 + 3 + 3 + 1  # the wait may be over before the probe is due


def finish_unheard(service: Service, model: FakeModel, session: str, turn: str) -> None:
    """Lets a turn run to its end in the worker while the supervisor stands still and hears nothing of it."""
    model.wait(lambda requests: any(f"finish {session}" in str(each.messages) for each in requests))
    until(lambda: f"attempt.ended turn={turn} " in worker_logs(service))


@pytest.mark.parametrize("moment", range(5))
def test_a5_a_message_that_races_the_end_is_answered_once(
    service: Service, model: FakeModel, moment: int
) -> None:
    assert service.process is not None
    listener = service.listen("demo")
    client = service.client()
    service.say("demo", f"[[slow interval=0.05 count={moment + 2}]] finish demo")
    listener.until(lambda: "word0" in listener.words)
    with stopped(service.process.pid):
        finish_unheard(service, model, "demo", "demo/1")
        sent = client.post(Submit("demo", "the second", "k2"))
    client.answer_to(sent, Accepted)
    second = listener.ending("demo/2")
    assert (second.type, second.fields["text"]) == ("turn.done", "You said: the second")
    assert listener.ending("demo/1").type in ("turn.done", "turn.interrupted")
    bystander(service)
    assert len(service.show("turns", session="demo")) == 2
    check_one_owner(listener.events)


@pytest.mark.parametrize("moment", range(5))
def test_a6_an_interrupt_that_races_the_end_leaves_the_next_turn_alone(
    service: Service, model: FakeModel, moment: int
) -> None:
    assert service.process is not None
    listener = service.listen("demo")
    client = service.client()
    service.say("demo", f"[[slow interval=0.05 count={moment + 2}]] finish demo")
    listener.until(lambda: "word0" in listener.words)
    with stopped(service.process.pid):
        finish_unheard(service, model, "demo", "demo/1")
        client.post(Interrupt("demo", "test"))
        sent = client.post(Submit("demo", "the second", "k2"))
    client.answer_to(sent, Accepted)
    second = listener.ending("demo/2")
    assert (second.type, second.fields["text"]) == ("turn.done", "You said: the second")
    assert listener.ending("demo/1").type in ("turn.done", "turn.interrupted")
    check_one_owner(listener.events)


def test_a10_an_interrupt_never_hits_the_turn_that_took_the_seat(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    """The worker of the named turn has finished and takes another session's turn at that very moment."""
    service = make_service(workers="count = 1\nspares = 0")
    assert service.process is not None
    first = service.listen("one")
    client = service.client()
    service.say("one", "[[slow interval=0.05 count=4]] finish one")
    service.say("two", "[[slow interval=0.02 count=20]] go")
    first.until(lambda: "word0" in first.words)
    with stopped(service.process.pid):
        finish_unheard(service, model, "one", "one/1")
        client.post(Interrupt("one", "test", expect_turn="one/1"))
    second = service.listen("two")
    assert second.ending("two/1").type == "turn.done"
    assert len(second.of_type("attempt.opened")) == 1
    assert first.ending("one/1").type in ("turn.done", "turn.interrupted")
    with pytest.raises(CommandError, match="turn one/1 is over"):
        service.interrupt("one", expect_turn="one/1")


def test_a11_no_model_call_of_a_closed_turn_begins(
    open_service: Service, model: FakeModel, shared: Path
) -> None:
    """The tool's end, after which the model would be asked again, comes after the turn was closed."""
    service, gate = open_service, shared / "open"
    listener = follow(service, shell(f"until test -e {gate}; do sleep 0.01; done"))
    listener.until(lambda: listener.of_type("tool.started"))
    service.interrupt("demo")
    assert listener.ending("demo/1").type == "turn.interrupted"
    gate.touch()
    bystander(service)
    assert [request.mode for request in model.requests()] == ["tools", "normal"]


def test_a11_no_model_call_of_a_closed_turn_goes_on(
    make_service: Callable[..., Service], model: FakeModel
) -> None:
    service = make_service(workers="count = 2", turns='deadline = "1s"')
    ended = follow(service, SLOW).ending("demo/1")
    assert (ended.type, ended.fields["error"]) == ("turn.failed", "it took longer than 1 s")
    requests = model.wait(lambda requests: requests[0].disconnected)
    assert requests[0].tokens < 2000
    assert len(requests) == 1


def test_a13_fifty_interrupts_in_a_row_lose_nothing(service: Service) -> None:
    client, listener = service.client(), service.listen("demo")
    service.say("demo", SLOW, key="k0")
    listener.until(lambda: "word1" in listener.words)
    before = memory_of(service)
    numbers = [client.post(Submit("demo", SLOW, f"k{n}", busy="interrupt")) for n in range(1, 51)]
    accepted = [client.answer_to(number, Accepted).message for number in numbers]

    def answered() -> list[str]:
        taking = listener.of_type("turn.opened", "turn.joined")
        return [message for event in taking for message in event.fields["messages"]]

    listener.until(lambda: len(answered()) == 51 and listener.events[-1].type == "attempt.opened")
    assert answered()[1:] == accepted
    until(lambda: service.status()["running"] == 1)
    (running,) = service.show("turns", state="running")
    assert running["messages"][-1] == accepted[-1]
    # Whatever was interrupted had been begun: nobody is told of an answer that nobody tried to give.
    stopped_turns = [event.fields["turn"] for event in listener.of_type("turn.interrupted")]
    begun = [event.fields["turn"] for event in listener.of_type("attempt.opened")]
    assert begun == [*stopped_turns, running["turn"]]
    last = int(running["turn"].rpartition("/")[2])
    service.say("demo", "enough")
    assert listener.ending(f"demo/{last + 1}").fields["text"] == "You said: enough"
    check_one_owner(listener.events)
    assert memory_of(service) - before < 16 * 1024 * 1024


def test_a13_fifty_interrupts_each_of_a_running_turn_lose_nothing(service: Service) -> None:
    """Not one of them is spared its kill: each waits until the turn before has a worker."""
    listener = service.listen("demo")
    for number in range(1, 51):
        service.say("demo", f"[[silent]] {number}", key=f"k{number}")
        listener.until(lambda number=number: len(opened_pids(listener)) == number)  # type: ignore[misc]
    service.say("demo", "enough")
    assert listener.ending("demo/51").fields["text"] == "You said: enough"
    assert len(listener.of_type("turn.interrupted")) == 50
    assert len(set(opened_pids(listener)[:2])) == 2
    check_one_owner(listener.events)
    check_one_session_a_process(listener.events)


def test_a13_twenty_sessions_interrupted_at_once_lose_nothing(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 20\nspares = 2")
    names = [f"s{number}" for number in range(20)]
    for name in names:
        service.say(name, SLOW)
    until(lambda: service.status()["running"] == 20)
    client = service.client()
    sent = [client.post(Submit(name, f"next {name}", "k")) for name in names]
    for number in sent:
        client.answer_to(number, Accepted)
    events: list[Event] = []
    for name in names:
        listener = service.listen(name)
        assert listener.ending(f"{name}/2").fields["text"] == f"You said: next {name}"
        assert listener.ending(f"{name}/1").type == "turn.interrupted"
        check_one_owner(listener.events)
        events += listener.events
    check_one_session_a_process(events)


def test_a14_an_interrupt_while_workers_start_loses_nothing(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1\nspares = 0")
    listener = follow(service, SLOW)
    listener.until(lambda: "word1" in listener.words)
    with stopped(zygote_of(service)):
        service.say("demo", "the second")
        until(lambda: [row["state"] for row in service.show("workers")] == ["starting"])
        listener.until(lambda: len(listener.of_type("turn.opened")) == 2)
        service.say("demo", "the third")
        service.interrupt("demo")
        assert listener.ending("demo/2").fields["killed"]["processes"] == 0
        service.say("demo", "the fourth")
    assert listener.ending("demo/3").fields["text"] == "You said: the third\n\nthe fourth"
    assert listener.ending("demo/1").type == "turn.interrupted"


def held(service: Service) -> Listener:
    """A session whose turn was interrupted while three messages waited behind it."""
    listener = follow(service, SLOW)
    for text in ("one", "two", "three"):
        service.say("demo", text, busy="queue")
    service.interrupt("demo")
    assert listener.ending("demo/1").type == "turn.interrupted"
    assert listener.of_type("session.held")[0].fields["waiting"] == 3
    return listener


@pytest.mark.parametrize("how", ["message", "resume"])
def test_a15_what_waits_is_held_visibly_until_it_is_let_go(service: Service, how: str) -> None:
    listener = held(service)
    bystander(service)
    assert len(service.show("turns", session="demo")) == 1
    waiting = json.loads(service.hermesctl("queue", "demo", "--json").stdout)
    assert [(row["text"], row["held"]) for row in waiting] == [
        ("one", True),
        ("two", True),
        ("three", True),
    ]
    assert "held" in service.hermesctl("sessions").stdout
    expected = ["one", "two", "three"]
    if how == "message":
        service.say("demo", "four", busy="queue")
        expected.append("four")
    else:
        assert service.hermesctl("queue", "demo", "resume").returncode == 0
    listener.until(lambda: len(listener.of_type("turn.done")) == len(expected))
    assert [event.fields["text"] for event in listener.of_type("turn.done")] == [
        f"You said: {word}" for word in expected
    ]
    assert listener.of_type("session.released")
