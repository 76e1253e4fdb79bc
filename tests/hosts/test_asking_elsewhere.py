"""Any host answers: a request about a session elsewhere is carried out by the host that has it."""

import json
import threading
from collections.abc import Callable

import msgspec
import psycopg
import pytest

from hermesctl.errors import CommandError
from ipc.messages import (
    Accepted,
    Begin,
    Done,
    Exchange,
    Interrupt,
    Queue,
    Request,
    Respond,
    Retry,
    Seen,
    Submit,
    Subscribe,
    Subscribed,
)
from tests.cutting_proxy import CuttingProxy
from tests.fake_model import FakeModel
from tests.hosts.conftest import Make
from tests.postgres_cluster import Cluster
from tests.service import Listener, Service
from tests.waiting import until

HOLD = "[[silent]] hold"
ASKS = """[[tools name=ask arguments='{"question": "Which?", "choices": ["a", "b"] }']] paint it"""


def owner(cluster: Cluster, schema: str, session: str) -> str | None:
    with psycopg.connect(cluster.url(schema)) as connection:
        row = connection.execute(
            "SELECT name FROM owners JOIN lives ON epoch = life WHERE session = %s AND NOT gone", (session,)
        ).fetchone()
    return row[0] if row else None


def running(service: Service, session: str, text: str = HOLD) -> Listener:
    """Have a turn of the session run at this host."""
    listener = service.listen(session)
    service.say(session, text)
    listener.until(lambda: listener.of_type("attempt.opened"))
    return listener


def turn_of(service: Service, id: str) -> dict[str, object]:
    return service.show("turn", id=id)[0]


def test_a_message_is_accepted_by_the_host_that_has_the_session(
    make: Make, cluster: Cluster, schema: str
) -> None:
    one, two = make("one"), make("two")
    near = running(one, "demo")
    first = two.say("demo", "second", key="k", busy="queue")
    again = two.say("demo", "second", key="k", busy="queue")
    assert (first.message, first.seq, first.again) == (again.message, again.seq, False)
    assert again.again
    with pytest.raises(CommandError, match="belongs to another message"):
        two.say("demo", "something else", key="k")
    near.until(lambda: len(near.of_type("message.accepted")) == 2)
    assert owner(cluster, schema, "demo") == "one"
    done = two.hermesctl("send", "demo", "third", "--busy", "interrupt")
    assert done.returncode == 0, done.stderr
    assert near.ending("demo/1").type == "turn.interrupted"
    assert one.show("sessions") == two.show("sessions")


def test_an_interrupt_elsewhere_answers_with_the_proof(make: Make) -> None:
    one, two = make("one"), make("two")
    near = running(one, "demo")
    done = two.hermesctl("interrupt", "demo", "--json")
    assert done.returncode == 0, done.stderr
    killed = json.loads(done.stdout)["killed"]
    assert killed["all_dead"] is True
    assert killed["processes"] >= 1
    assert near.ending("demo/1").fields["by"] == "hermesctl"
    assert "nothing runs" in two.interrupt("demo").note
    with pytest.raises(CommandError, match="is over"):
        two.client().ask(Interrupt("demo", "test", expect_turn="demo/9"), Done)


def test_interrupt_all_stops_what_runs_at_every_host(make: Make) -> None:
    one, two = make("one"), make("two")
    first, second = running(one, "first"), running(two, "second")
    done = two.client().ask(Interrupt(None, "test"), Done)
    assert sorted(done.turns) == ["first/1", "second/1"]
    assert first.ending("first/1").type == second.ending("second/1").type == "turn.interrupted"
    assert two.client().ask(Interrupt(None, "test"), Done).note == "nothing runs"


def test_the_queue_is_listed_dropped_cleared_and_resumed_at_any_host(make: Make) -> None:
    one, two = make("one"), make("two")
    near = running(one, "demo")
    said = [one.say("demo", text, busy="queue").message for text in ("a", "b", "c")]
    for service in (one, two):
        rows = list(service.client().rows(Queue("demo")))
        assert [(row["message"], row["text"], row["held"]) for row in rows] == [
            (said[0], "a", False),
            (said[1], "b", False),
            (said[2], "c", False),
        ]
    assert two.client().ask(Queue("demo", "drop", said[1]), Done).note == "1 dropped"
    with pytest.raises(CommandError, match="does not wait"):
        two.client().ask(Queue("demo", "drop", said[1]), Done)
    two.interrupt("demo")
    near.ending("demo/1")
    until(lambda: all(row["held"] for row in two.client().rows(Queue("demo"))))
    assert two.client().ask(Queue("demo", "resume"), Done).note == "2 go on"
    near.ending("demo/2")
    running_again = running(one, "other")
    one.say("other", "x", busy="queue")
    assert two.client().ask(Queue("other", "clear"), Done).note == "1 dropped"
    assert list(two.client().rows(Queue("other"))) == []
    two.interrupt("other")
    running_again.ending("other/1")


def test_questions_cursors_and_retries_are_answered_at_any_host(make: Make) -> None:
    one, two = make("one"), make("two")
    near = one.listen("demo")
    one.say("demo", ASKS)
    near.until(lambda: near.of_type("question.asked"))
    (row,) = until(lambda: two.show("questions"))
    assert two.client().ask(Respond(row["question"], "a", "test"), Done)
    near.ending("demo/1")
    running(one, "held")
    assert two.client().ask(Seen("bridge", "held", 2), Done)
    client = one.client()
    assert client.answer_to(client.post(Subscribe("held", cursor="bridge")), Subscribed).after == 2
    two.interrupt("held")
    listener = two.listen("held")
    listener.ending("held/1")
    retried = two.client().ask(Retry("held/1", "again"), Accepted)
    assert not retried.again
    assert two.client().ask(Retry("held/1", "again"), Accepted).message == retried.message
    two.interrupt("held")


def test_a_session_is_begun_and_copied_at_any_host(make: Make) -> None:
    one, two = make("one"), make("two")
    one.say("origin", "hello")
    one.listen("origin").ending("origin/1")
    running(one, "busy")
    with pytest.raises(CommandError, match="exists already"):
        two.client().ask(Begin("busy", "key", (Exchange("hi", "hello"),)), Done)
    assert two.client().ask(Begin("copy", "key", from_session="origin", through_turn=1), Done)
    assert one.client().ask(Begin("copy", "key", from_session="origin", through_turn=1), Done)
    assert [row["turn"] for row in one.show("history", session="copy")]


def test_why_turns_sessions_and_questions_are_the_same_at_every_host(make: Make) -> None:
    one, two = make("one"), make("two")
    running(one, "demo")
    one.say("demo", "behind it", busy="queue")
    asking = one.listen("asking")
    one.say("asking", ASKS)
    asking.until(lambda: asking.of_type("question.asked"))
    for command in (("sessions",), ("questions",), ("why", "demo/1"), ("queue", "demo")):
        outputs = [service.hermesctl(*command, "--json") for service in (one, two)]
        assert [each.returncode for each in outputs] == [0, 0], outputs[1].stderr
        assert outputs[0].stdout == outputs[1].stdout, command
    turns = [
        [{key: row[key] for key in row.keys() - {"worker", "pid"}} for row in service.show("turns")]
        for service in (one, two)
    ]
    assert turns[0] == turns[1]
    assert {row["session"]: row["state"] for row in two.show("sessions")}["demo"] != "at rest"


def test_why_tells_at_any_host_what_a_turn_waits_for(make: Make, model: FakeModel) -> None:
    """The owner alone knows it; without an answer of the owner the story is told as the journal has it."""
    one, two = make("one"), make("two")
    model.set_mode("500", status=503)
    one.say("demo", "hello")
    near = one.listen("demo")
    near.until(lambda: any("it waits for the model server" in note for note in near.notes))
    until(lambda: "model" in one.show("story", id="demo/1")[0]["waits"])
    assert "model" in two.show("story", id="demo/1")[0]["waits"]
    said = near.of_type("message.accepted")[0].fields["message"]
    assert "model" in two.show("story", id=said)[0]["waits"]
    assert one.process is not None
    one.process.send_signal(19)
    try:
        assert two.show("story", id="demo/1")[0]["waits"] == ""
    finally:
        one.process.send_signal(18)


def test_the_same_key_is_one_message_when_its_owner_dies_in_the_middle(make: Make) -> None:
    """Its host is stopped with the request and killed: who asked finds it gone, and takes the session."""
    one, two = make("one"), make("two")
    running(one, "demo")
    assert one.process is not None
    one.process.send_signal(19)
    answers: list[Accepted | CommandError] = []
    key = "the same"

    def say() -> None:
        try:
            answers.append(two.client().ask(Submit("demo", "again", key, busy="queue"), Accepted))
        except CommandError as error:
            answers.append(error)

    sender = threading.Thread(target=say)
    sender.start()
    one.kill()
    sender.join(30)
    accepted = answers[-1] if isinstance(answers[-1], Accepted) else two.say("demo", "again", key=key)
    assert two.say("demo", "again", key=key).message == accepted.message
    far = two.listen("demo")
    far.until(lambda: len(far.of_type("attempt.opened")) == 2)
    two.interrupt("demo")
    far.ending("demo/1")
    assert far.types().count("message.accepted") == 2
    assert [event.seq for event in far.events] == list(range(1, len(far.events) + 1))


def test_a_request_that_reaches_the_wrong_host_is_sent_back(
    make: Make, cluster: Cluster, schema: str
) -> None:
    """Its session has moved on the way: who asked looks again, and no host passes a request on."""
    one = make("one")
    make("two")
    running(one, "demo")
    body = msgspec.json.encode(Submit("demo", "hello", "key")).decode()
    with psycopg.connect(cluster.url(schema), autocommit=True) as connection:
        connection.execute(
            """WITH two AS (SELECT epoch FROM lives WHERE name = 'two'), asked AS (
                   INSERT INTO requests (id, from_life, to_life, body)
                   SELECT 'x', 99, epoch, %(body)s FROM two)
               SELECT pg_notify(
                   'hermes_' || 'lives'::regclass::oid || '_' || epoch,
                   '[["ask", ' || extract(epoch FROM clock_timestamp()) || ', "x", 99, null]]') FROM two""",
            {"body": body},
        )
        until(lambda: connection.execute("SELECT answer FROM requests").fetchall() == [('"moved"',)])
    assert [row["state"] for row in one.show("turns")] == ["running"]
    one.interrupt("demo")


def test_a_host_that_does_not_answer_is_named(make: Make) -> None:
    one, two = (make(name, hosts=f'name = "{name}"\nlease = "60s"') for name in ("one", "two"))
    running(one, "demo")
    assert one.process is not None
    one.process.send_signal(19)
    try:
        refused = two.hermesctl("send", "demo", "hello")
        assert refused.returncode == 5
        assert "host one, which did not answer within 8 s" in refused.stderr
    finally:
        one.process.send_signal(18)
    listener = one.listen("demo")
    two.interrupt("demo")
    listener.ending("demo/1")
    assert listener.types().count("message.accepted") == 1, "what was refused for its age is not done later"


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: Submit("demo", "hello", "key"),
        lambda: Interrupt("demo", "test"),
        lambda: Queue("demo", "clear"),
        lambda: Seen("bridge", "demo", 1),
    ],
)
def test_a_database_that_is_away_is_the_reason_of_a_refusal(
    make: Make, proxy: CuttingProxy, request_of: Callable[[], Request]
) -> None:
    one, two = make("one"), make("two", proxy.port)
    near = running(one, "demo")
    proxy.is_away = True
    proxy.drop()
    with pytest.raises(CommandError, match="the database does not answer"):
        two.client().ask(request_of(), object)
    proxy.is_away = False
    one.interrupt("demo")
    near.ending("demo/1")


def test_a_long_message_and_a_long_answer_go_through_their_rows(make: Make) -> None:
    one, two = make("one"), make("two")
    near = running(one, "demo")
    text = "long\0é" * 20_000
    said = two.say("demo", text, busy="queue")
    near.until(lambda: len(near.of_type("message.accepted")) == 2)
    assert near.of_type("message.accepted")[1].fields["text"] == text
    assert near.of_type("message.accepted")[1].fields["message"] == said.message
    two.interrupt("demo")


def test_no_request_is_left_behind(make: Make, cluster: Cluster, schema: str) -> None:
    one, two = make("one"), make("two")
    running(one, "demo")
    for number in range(5):
        two.say("demo", f"text {number}", busy="queue")
    two.interrupt("demo", drop=True)

    def rows() -> int:
        with psycopg.connect(cluster.url(schema)) as connection:
            found = connection.execute("SELECT count(*) FROM requests").fetchone()
        return found[0] if found else -1

    until(lambda: rows() == 0)
