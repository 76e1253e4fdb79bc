"""Event streams: ids are seqs, readers resume without loss or repeat, slow and revoked ones end."""

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from gateway.open_streams import BEAT_SECONDS
from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.sse_readers import SseReader, SseReaders
from tests.gateway.test_messages import ended, send
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until


def stream(client: httpx.Client, session: str, seq: int, **options: Any) -> list[dict[str, Any]]:
    """The durable events of a stream up to a seq, each with the id that it came under."""
    found = []
    with client.stream("GET", f"/api/sessions/{session}/events", **options) as answer:
        assert answer.status_code == 200
        id = ""
        for line in answer.iter_lines():
            if line.startswith("id: "):
                id = line[4:]
            elif line.startswith("data: ") and id:
                found.append(json.loads(line[6:]) | {"id": int(id)})
                id = ""
                if found[-1]["seq"] >= seq:
                    break
    return found


@pytest.fixture(scope="module")
def told(gateway: GatewayProcess, service: Service) -> list[dict[str, Any]]:
    """A session with some events, as the supervisor tells them."""
    client = gateway.client()
    for _ in range(2):
        send(client, "told", "hello")
    ended(client, "told/2")
    listener = service.listen("told")
    listener.ending("told/2")
    return [{"seq": event.seq, "type": event.type, **event.fields} for event in listener.events]


def test_the_id_of_an_event_is_its_seq(gateway: GatewayProcess, told: list[dict[str, Any]]) -> None:
    client = gateway.client()
    events = stream(client, "told", told[-1]["seq"], params={"after": 0})
    assert [event["seq"] for event in events] == [event["id"] for event in events]
    assert [event["seq"] for event in events] == list(range(1, len(told) + 1))
    for event, expected in zip(events, told, strict=True):
        assert expected.items() <= event.items()
        assert event["session"] == "told"


def test_a_reader_resumes_after_the_last_id_without_loss_or_repeat(
    gateway: GatewayProcess, told: list[dict[str, Any]]
) -> None:
    client, last = gateway.client(), told[-1]["seq"]
    resumed = stream(client, "told", last, params={"after": 0}, headers={"Last-Event-ID": "3"})
    assert [event["seq"] for event in resumed] == list(range(4, last + 1))
    assert [event["seq"] for event in stream(client, "told", last, params={"after": last - 1})] == [last]
    for bad in (
        {"params": {"after": last + 1}},
        {"params": {"after": "x"}},
        {"headers": {"Last-Event-ID": "x"}},
    ):
        assert error_of(client.get("/api/sessions/told/events", **bad)) == (400, "invalid")
    assert error_of(client.get("/api/sessions/never/events")) == (404, "unknown")


def test_proxies_are_told_to_hold_nothing_back_and_silence_is_broken(
    gateway: GatewayProcess, told: list[dict[str, Any]]
) -> None:
    with gateway.client().stream("GET", "/api/sessions/told/events") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert "no-transform" in answer.headers["Cache-Control"]
        assert "Content-Encoding" not in answer.headers
        began = time.monotonic()
        for line in answer.iter_lines():
            if line.startswith(":"):
                break
        assert time.monotonic() - began >= BEAT_SECONDS - 1


def test_deltas_have_no_id_and_a_reader_that_joins_gets_the_text_so_far(gateway: GatewayProcess) -> None:
    client = gateway.client()
    send(client, "words", "[[slow count=400 interval=0.1]]")
    readers = [SseReader(gateway.address, gateway.first_secret, "words") for _ in range(2)]
    with SseReaders(readers[:1]) as (first,):
        until(lambda: len([item for item in first.items if item["type"] == "delta"]) >= 5)
        with SseReaders(readers[1:]) as (second,):
            until(lambda: [item for item in second.items if item["type"] == "delta"])
            joined = next(item for item in second.items if item["type"] == "delta")
            assert joined["offset"] == 0
            assert joined["text"].startswith("word0 word1 word2 ")
            assert "seq" not in joined
    client.post("/api/sessions/words/interrupt")


def test_a_history_longer_than_the_ring_is_read_in_pages(gateway: GatewayProcess, service: Service) -> None:
    """Texts of 100 kB make the ring hold a few turns only; readers from 0 and from the middle get all."""
    client = gateway.client()
    for turn in range(1, 13):
        send(client, "long", "x" * 100_000)
        ended(client, f"long/{turn}")
    last = client.get("/api/turns/long/12/why").json()["rows"][-1]["seq"]
    readers = [SseReader(gateway.address, gateway.first_secret, "long", after=n) for n in (0, 0, 7, 0, 30)]
    with SseReaders(readers):
        until(lambda: all(reader.seqs and reader.seqs[-1] == last for reader in readers))
    for reader, first in zip(readers, (1, 1, 8, 1, 31), strict=True):
        assert reader.seqs == list(range(first, last + 1))
        assert reader.connections == 1


def test_a_slow_reader_is_cut_and_resumes(gateway: GatewayProcess) -> None:
    client = gateway.client()
    send(client, "fast", "begin")
    ended(client, "fast/1")
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        head = "GET /api/sessions/fast/events?after=0 HTTP/1.1\r\nHost: localhost\r\n"
        slow.sendall(f"{head}Authorization: Bearer {gateway.first_secret}\r\n\r\n".encode())
        assert slow.recv(12) == b"HTTP/1.1 200"
        for turn in range(2, 8):
            send(client, "fast", "[[huge count=200 characters=4096]]")
            ended(client, f"fast/{turn}")
        slow.settimeout(DEADLINE_SECONDS)
        received = b""
        while piece := slow.recv(65536):
            received += piece
            if b": cut" in received:
                break
    assert b": cut" in received
    last = client.get("/api/turns/fast/7/why").json()["rows"][-1]["seq"]
    seen = max(int(line[4:]) for line in received.split(b"\n") if line.startswith(b"id: "))
    assert seen < last
    rest = stream(client, "fast", last, headers={"Last-Event-ID": str(seen)})
    assert [event["seq"] for event in rest] == list(range(seen + 1, last + 1))
    assert "hermes_gateway_streams_cut_total 1" in client.get("/metrics").text


def test_f11_revoking_a_token_ends_its_streams(gateway: GatewayProcess, told: list[dict[str, Any]]) -> None:
    client, other = gateway.client(gateway.token("doomed")), gateway.client()
    with (
        open_live(gateway, gateway.token("doomed-too")) as live,
        client.stream("GET", "/api/sessions/told/events") as answer,
        other.stream("GET", "/api/sessions/told/events") as kept,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith("retry")
        gateway.revoke("doomed")
        gateway.revoke("doomed-too")
        revoked_at = time.monotonic()
        assert list(lines) == [""]
        assert time.monotonic() - revoked_at < 5
        with pytest.raises(ConnectionClosed) as closed:
            live.recv(timeout=DEADLINE_SECONDS)
        assert closed.value.rcvd is not None
        assert "revoked" in closed.value.rcvd.reason
        assert not kept.is_closed


def open_live(gateway: GatewayProcess, secret: str | None = None) -> ClientConnection:
    address = gateway.address.replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {secret or gateway.first_secret}"}
    return connect(f"{address}/api/live", additional_headers=headers, open_timeout=DEADLINE_SECONDS)


@pytest.fixture
def live(gateway: GatewayProcess) -> Iterator[ClientConnection]:
    with open_live(gateway) as socket:
        yield socket


def ask(live: ClientConnection, **command: Any) -> None:
    live.send(json.dumps(command))


def next_of(live: ClientConnection, *types: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = json.loads(live.recv(timeout=DEADLINE_SECONDS))
        if found["type"] in types:
            return found


def test_one_socket_carries_many_sessions_with_their_seqs(
    gateway: GatewayProcess, live: ClientConnection, told: list[dict[str, Any]]
) -> None:
    client = gateway.client()
    for name in ("live-a", "live-b"):
        send(client, name, "hi")
        ask(live, subscribe=name, after=0)
    ask(live, subscribe="told", after=told[-1]["seq"] - 2)
    seqs: dict[str, list[int]] = {"live-a": [], "live-b": [], "told": []}
    done = 0
    while done < 3:
        item = json.loads(live.recv(timeout=DEADLINE_SECONDS))
        if "seq" in item and item["type"] != "subscribed":
            seqs[item["session"]].append(item["seq"])
        done += item["type"] == "turn.done"
    assert seqs["live-a"] == list(range(1, len(seqs["live-a"]) + 1))
    assert seqs["live-b"] == list(range(1, len(seqs["live-b"]) + 1))
    assert seqs["told"] == [told[-1]["seq"] - 1, told[-1]["seq"]]
    ask(live, unsubscribe="live-a")
    assert next_of(live, "unsubscribed")["session"] == "live-a"
    send(client, "live-a", "not seen")
    send(client, "live-b", "seen")
    assert next_of(live, "turn.done")["session"] == "live-b"


def test_the_deltas_of_a_socket_are_the_whole_text_in_order(
    gateway: GatewayProcess, live: ClientConnection
) -> None:
    client = gateway.client()
    send(client, "paced", "begin")
    ended(client, "paced/1")
    ask(live, subscribe="paced")
    next_of(live, "subscribed")
    send(client, "paced", "[[slow count=60 interval=0.005]]")
    text = ""
    while (item := next_of(live, "delta", "turn.done"))["type"] == "delta":
        assert (item["turn"], item["offset"]) == ("paced/2", len(text))
        text += item["text"]
    assert text == item["text"]


def test_what_a_socket_cannot_have_is_said_on_it(gateway: GatewayProcess, live: ClientConnection) -> None:
    for command, code in (
        ('{"subscribe": "never"}', "unknown"),
        ('{"subscribe": "told", "after": 99999}', "invalid"),
        ("nonsense", "invalid"),
        ("{}", "invalid"),
        ('{"subscribe": "told", "rights": "operate"}', "invalid"),
    ):
        live.send(command)
        error = next_of(live, "error")["error"]
        assert (error["code"], bool(error["message"]), bool(error["hint"])) == (code, True, True)
    live.send("x" * 100_000)
    with pytest.raises(ConnectionClosed):
        next_of(live, "none")
    assert error_of(gateway.client().get("/api/live")) == (405, "method")


def test_an_owner_sees_its_own_names_on_a_socket(gateway: GatewayProcess) -> None:
    secret = gateway.token("carl", "carl")
    send(gateway.client(secret), "chat", "hi")
    with open_live(gateway, secret) as live:
        ask(live, subscribe="chat", after=0)
        assert next_of(live, "turn.opened")["turn"] == "chat/1"
        assert next_of(live, "turn.done")["session"] == "chat"
    with open_live(gateway) as live:
        ask(live, subscribe="carl:chat", after=0)
        assert next_of(live, "turn.done")["turn"] == "carl:chat/1"
