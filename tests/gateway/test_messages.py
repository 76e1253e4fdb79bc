"""Messages, interrupts, queues, questions and tables over HTTP, with a real supervisor behind the gateway."""

import json
import shlex
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.service import Service
from tests.waiting import until

MIB = 1024 * 1024
QUESTION = {"name": "ask", "arguments": {"question": "Which colour?", "choices": ["red", "blue"]}}
SPIN = {"name": "shell", "arguments": {"command": "sleep 1000"}}


def calling(*calls: dict[str, Any]) -> str:
    rounds = json.dumps([list(calls)]).replace("]]", "] ]")
    return f"[[tools calls={shlex.quote(rounds)}]] go"


def send(client: httpx.Client, session: str, text: str, **fields: Any) -> dict[str, Any]:
    answer = client.post(f"/api/sessions/{session}/messages", json={"text": text, **fields})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ended(client: httpx.Client, turn: str, state: str = "done") -> dict[str, Any]:
    """The turn, once it has ended."""

    def look() -> dict[str, Any] | None:
        answer = client.get(f"/api/turns/{turn}")
        return answer.json() if answer.status_code == 200 and answer.json()["state"] == state else None

    return until(look) or {}


def test_a_message_is_accepted_once_it_is_durable_and_answered(
    gateway: GatewayProcess, service: Service
) -> None:
    client = gateway.client()
    accepted = send(client, "demo", "hello")
    assert accepted["seq"] == 1
    listener = service.listen("demo")
    assert listener.ending("demo/1").fields["text"] == "You said: hello"
    assert listener.events[0].fields["message"] == accepted["message"]
    assert ended(client, "demo/1")["session"] == "demo"


def test_a_message_says_who_sent_it_and_may_name_an_agent(gateway: GatewayProcess, service: Service) -> None:
    client = gateway.client(gateway.token("tablet"))
    send(client, "wish", "hello", agent="default", instructions="Be brief.")
    assert service.listen("wish").ending("wish/1").type == "turn.done"
    story = client.get("/api/turns/wish/1/why").json()["rows"]
    assert [row["by"] for row in story if row.get("type") == "message.accepted"] == ["tablet"]
    unknown = client.post("/api/sessions/wish/messages", json={"text": "x", "agent": "nemo"})
    assert error_of(unknown)[0] in (400, 404)


def test_the_same_idempotency_key_is_one_message(gateway: GatewayProcess) -> None:
    client = gateway.client()
    headers = {"Idempotency-Key": "order-17"}
    answers = [
        client.post("/api/sessions/once/messages", json={"text": "x"}, headers=headers) for _ in range(3)
    ]
    assert {answer.json()["message"] for answer in answers} == {answers[0].json()["message"]}
    assert [answer.json().get("again", False) for answer in answers] == [False, True, True]
    bad = client.post(
        "/api/sessions/once/messages", json={"text": "x"}, headers={"Idempotency-Key": "k" * 201}
    )
    assert error_of(bad) == (400, "invalid")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"text": "a" ', 400),
        (b"", 415),
        (b"[]", 400),
        (b'{"text": 3}', 400),
        (b'{"words": "x"}', 400),
        (b'{"text": ""}', 400),
        (b'{"text": " \\n "}', 400),
        (b'{"text": "x", "busy": "loud"}', 400),
        (b'{"text": "\xff"}', 400),
        (b'{"text": "' + b"x" * (MIB + 1) + b'"}', 413),
        (b'{"text": "' + b"x" * (8 * MIB) + b'"}', 413),
        (b"[" * 100_000, 400),
    ],
    ids=lambda value: str(value)[:24],
)
def test_bad_input_is_refused_with_a_sentence(gateway: GatewayProcess, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"} if body else {}
    answer = gateway.client().post("/api/sessions/bad/messages", content=body, headers=headers)
    assert error_of(answer)[0] == status
    assert error_of(gateway.client().get("/api/sessions/bad/queue")) == (404, "unknown")


def test_a_text_of_a_mebibyte_is_accepted(gateway: GatewayProcess) -> None:
    assert send(gateway.client(), "large", "\u0001" * MIB)["seq"] == 1


def test_an_interrupt_answers_with_the_proof(gateway: GatewayProcess, service: Service) -> None:
    client = gateway.client()
    send(client, "stop", calling(SPIN))
    listener = service.listen("stop")
    listener.until(lambda: listener.of_type("tool.started"))
    other = client.post("/api/sessions/stop/interrupt", json={"expect_turn": "stop/9"})
    assert error_of(other)[0] in (404, 409)
    proof = client.post("/api/sessions/stop/interrupt").json()
    assert (proof["turn"], proof["state"]) == ("stop/1", "interrupted")
    assert proof["killed"]["all_dead"]
    assert proof["killed"]["processes"] >= 1
    assert listener.ending("stop/1").fields["by"] == "first"
    nothing = client.post("/api/sessions/stop/interrupt").json()
    assert (nothing["turn"], nothing["killed"]) == (None, None)
    assert nothing["note"]
    assert error_of(client.post("/api/sessions/never/interrupt")) == (404, "unknown")


def test_what_waits_is_listed_dropped_and_resumed_and_a_full_queue_is_429(gateway: GatewayProcess) -> None:
    client = gateway.client()
    send(client, "line", "[[slow count=1000 interval=0.5]]")
    until(lambda: client.get("/api/turns", params={"session": "line", "state": "running"}).json()["turns"])
    waiting = [send(client, "line", f"number {n}")["message"] for n in range(3)]
    full = client.post("/api/sessions/line/messages", json={"text": "one too many"})
    assert error_of(full) == (429, "full")
    assert int(full.headers["Retry-After"]) >= 1
    listed = client.get("/api/sessions/line/queue").json()["messages"]
    assert [row["message"] for row in listed] == waiting
    assert client.delete(f"/api/sessions/line/queue/{waiting[1]}").status_code == 200
    assert error_of(client.delete("/api/sessions/line/queue/m_none"))[0] in (404, 409)
    client.post("/api/sessions/line/interrupt")
    assert [row["held"] for row in client.get("/api/sessions/line/queue").json()["messages"]] == [True, True]
    assert client.post("/api/sessions/line/queue/resume").status_code == 200
    assert ended(client, "line/3")
    send(client, "line", "[[slow count=1000 interval=0.5]]")
    send(client, "line", "dropped with all")
    client.delete("/api/sessions/line/queue")
    assert client.get("/api/sessions/line/queue").json() == {"messages": []}
    client.post("/api/sessions/line/interrupt")


def test_a_question_is_listed_and_answered_once(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("painter", "paint"))
    send(client, "wall", calling(QUESTION))

    def asked() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = client.get("/api/questions").json()["questions"]
        return rows

    (row,) = until(asked)
    assert (row["question"], row["session"], row["choices"]) == ("wall/1#1", "wall", ["red", "blue"])
    path = f"/api/questions/{quote('wall/1#1', safe='')}/answer"
    assert client.post(path, json={"text": "blue"}).status_code == 200
    assert ended(client, "wall/1")
    assert error_of(client.post(path, json={"text": "red"}))[0] in (404, 409)
    assert error_of(client.post(path, json={"text": ""})) == (400, "invalid")


def test_the_history_of_turns_and_messages_is_told_and_a_failed_turn_retried(gateway: GatewayProcess) -> None:
    client = gateway.client()
    message = send(client, "why", "[[slow count=1000 interval=0.5]]")["message"]
    until(lambda: client.get("/api/turns", params={"session": "why", "state": "running"}).json()["turns"])
    client.post("/api/sessions/why/interrupt")
    rows = client.get("/api/turns/why/1/why").json()["rows"]
    assert [row["type"] for row in rows if "type" in row][-1] == "turn.interrupted"
    assert client.get(f"/api/messages/{message}/why").json()["rows"][0]["id"] == message
    assert error_of(client.get("/api/turns/why/9/why")) == (404, "unknown")
    assert error_of(client.get("/api/messages/m_none/why")) == (404, "unknown")
    again = client.post("/api/turns/why/1/retry", headers={"Idempotency-Key": "again"})
    assert again.status_code == 202
    assert client.post("/api/turns/why/1/retry", headers={"Idempotency-Key": "again"}).json()["again"]
    client.post("/api/sessions/why/interrupt", json={"drop": True})
    assert error_of(client.post("/api/messages/m_none/retry")) == (404, "unknown")


def test_operators_see_workers_services_status_and_metrics_and_change_seats(gateway: GatewayProcess) -> None:
    client = gateway.client()
    assert {row["seat"] for row in client.get("/api/workers").json()["workers"]} >= {0, 1}
    assert isinstance(client.get("/api/services").json()["services"], list)
    assert client.get("/api/status").json()["seats"] == 2
    metrics = client.get("/metrics")
    assert "hermes_messages_accepted_total" in metrics.text
    assert 'hermes_gateway_answers_total{status="2xx"}' in metrics.text
    assert client.get("/health").json() == {"status": "ok", "reasons": []}
    assert client.post("/api/drain").status_code == 200
    assert client.get("/api/status").json()["draining"]
    assert client.post("/api/undrain").status_code == 200
    assert client.post("/api/scale", json={"seats": 3}).status_code == 200
    assert client.post("/api/scale", json={"seats": 2}).status_code == 200
    assert error_of(client.post("/api/scale", json={})) == (400, "invalid")


def test_tables_come_in_pages(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("pager", "pages"))
    for number in range(5):
        send(client, f"s{number}", "hi")
        # A session that moves in the table between two pages may be on none of them.
        ended(client, f"s{number}/1")
    found, after = [], ""
    for _ in range(5):
        page = client.get("/api/sessions", params={"limit": 2, "after": after}).json()
        found += [row["session"] for row in page["sessions"]]
        if not (after := page["more"]):
            break
    assert sorted(found) == [f"s{number}" for number in range(5)]
    assert {row["turn"] for row in client.get("/api/turns").json()["turns"]} <= {
        f"{name}/1" for name in found
    }
    for query in ("limit=0", "limit=x", "limit=99999", "after=nonsense", "colour=red"):
        assert error_of(client.get(f"/api/sessions?{query}")) == (400, "invalid")
    assert error_of(client.get("/api/turns?state=sleepy")) == (400, "invalid")


def test_f10_a_strangers_session_does_not_exist(gateway: GatewayProcess, service: Service) -> None:
    """Whatever the client calls it: the owner's prefix is put before every name that comes in."""
    anna, bob = (gateway.client(gateway.token(name, name)) for name in ("anna", "bob"))
    message = send(anna, "chat", calling(QUESTION))["message"]
    until(lambda: anna.get("/api/questions").json()["questions"])
    service.say("plain", "mine")
    for name in ("chat", "anna:chat", "plain", ":chat", "../chat"):
        path = quote(name, safe="")
        for method, rest in (("GET", "events"), ("GET", "queue"), ("POST", "interrupt")):
            assert error_of(bob.request(method, f"/api/sessions/{path}/{rest}")) == (404, "unknown"), (
                name,
                rest,
            )
        assert error_of(bob.get(f"/api/turns/{path}/1")) == (404, "unknown")
        assert error_of(bob.get(f"/api/turns/{path}/1/why")) == (404, "unknown")
        assert error_of(bob.post(f"/api/turns/{path}/1/retry"))[0] in (404, 409)
        question = quote(f"{name}/1#1", safe="")
        assert error_of(bob.post(f"/api/questions/{question}/answer", json={"text": "red"}))[0] in (404, 409)
    assert error_of(bob.get(f"/api/messages/{message}/why")) == (404, "unknown")
    assert error_of(bob.post(f"/api/messages/{message}/retry")) == (404, "unknown")
    for table in ("sessions", "turns", "questions"):
        assert bob.get(f"/api/{table}").json()[table] == []
    assert send(bob, "chat", "mine")["message"] != message
    assert service.listen("bob:chat").ending("bob:chat/1").fields["text"] == "You said: mine"
    assert {row["session"] for row in bob.get("/api/sessions").json()["sessions"]} == {"chat"}
    workers = bob.get("/api/workers").json()["workers"]
    assert {row["session"] for row in workers} <= {None, "chat"}
    assert anna.get("/api/questions").json()["questions"][0]["question"] == "chat/1#1"


def test_names_with_slashes_and_other_signs_are_sessions_like_any(gateway: GatewayProcess) -> None:
    client = gateway.client()
    for name in ("telegram:42", "a/b", "ü ☃", "50%", "x?y#z"):
        path = quote(name, safe="")
        send(client, path, "hi")
        assert ended(client, f"{path}/1")["session"] == name
    assert error_of(client.post("/api/sessions/%20/messages", json={"text": "x"})) == (400, "invalid")
    assert error_of(client.post(f"/api/sessions/{'n' * 201}/messages", json={"text": "x"})) == (
        400,
        "invalid",
    )


def upload(client: httpx.Client, session: str, audio: bytes, **fields: str) -> httpx.Response:
    files = {"audio": ("note.ogg", audio, "audio/ogg")}
    return client.post(f"/api/sessions/{session}/messages", files=files, data=fields)


def test_audio_is_stored_before_its_message_is_accepted(gateway: GatewayProcess) -> None:
    """Speech is switched off here: the clip is accepted, and its message says so."""
    client = gateway.client()
    clip = bytes(range(256)) * 12_000
    answer = upload(client, "voice", clip, busy="queue")
    assert answer.status_code == 202, answer.text
    stored = [path.read_bytes() for path in gateway.places.clips.iterdir()]
    assert stored == [clip]
    assert [path.stat().st_mode & 0o777 for path in gateway.places.clips.iterdir()] == [0o600]


def test_a_clip_that_is_refused_leaves_nothing_behind(gateway: GatewayProcess) -> None:
    client = gateway.client()
    before = set(gateway.places.clips.iterdir())
    assert error_of(upload(client, "v", b"x" * (25 * MIB + 1))) == (413, "too_large")
    assert error_of(upload(client, "v", b"")) == (400, "invalid")
    assert error_of(upload(client, "v", b"x", busy="loud")) == (400, "invalid")
    assert error_of(upload(client, "v", b"x", colour="red")) == (400, "invalid")
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b\r\nnonsense", b'--b\r\nContent-Disposition: form-data; name="audio"\r\n\r\nhalf'):
        answer = client.post("/api/sessions/v/messages", content=body, headers=headers)
        assert error_of(answer) == (400, "invalid")
    assert error_of(
        client.post("/api/sessions/v/messages", content=b"x", headers={"Content-Type": "multipart/form-data"})
    ) == (400, "invalid")
    assert set(gateway.places.clips.iterdir()) == before
