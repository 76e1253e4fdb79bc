"""`restart --keep-turns`: the supervisor's program is replaced, and no client of the gateway notices."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.fake_model import FakeModel
from tests.gateway.sse_readers import SseReader, SseReaders
from tests.service import Service, settings_for
from tests.waiting import DEADLINE_SECONDS, until

READERS = 20


@pytest.fixture
def service(tmp_path: Path, model_server: FakeModel) -> Iterator[Service]:
    settings = settings_for(model_server, workers="count = 2", gateway='listen = "127.0.0.1:0"')
    with Service(tmp_path / "home", settings) as service:
        yield service


def gateway_row(service: Service) -> dict[str, Any]:
    """Of the service that the supervisor has started itself."""

    def ready() -> dict[str, Any] | None:
        rows = [row for row in service.show("services") if row["service"] == "gateway"]
        return rows[0] if rows and rows[0]["state"] == "ready" else None

    return until(ready) or {}


def restart(service: Service) -> None:
    kept = service.hermesctl("restart", "--keep-turns")
    assert kept.returncode == 0, kept.stderr


@pytest.mark.timeout(300)
def test_no_connection_drops_and_every_seq_comes_once(service: Service) -> None:
    """Twice in the middle of a turn, whose words go on, and once between two turns."""
    before = gateway_row(service)
    address, secret = before["address"], service.places.token.read_text().strip()
    headers = {"Authorization": f"Bearer {secret}"}
    path = f"{address}/api/sessions/demo/messages"

    def send(text: str) -> None:
        """As clients should: again with the same key while the supervisor is being replaced (503)."""
        keyed = headers | {"Idempotency-Key": text}

        def accepted() -> bool:
            answer = httpx.post(path, json={"text": text}, headers=keyed, timeout=60)
            assert answer.status_code in (202, 503), answer.text
            return answer.status_code == 202

        until(accepted)

    send("first")
    service.listen("demo").ending("demo/1")
    readers = [SseReader(address, secret, "demo", after=0) for _ in range(READERS)]
    live_address = address.replace("http", "ws", 1) + "/api/live"
    with SseReaders(readers), connect(live_address, additional_headers=headers) as live:
        live.send(json.dumps({"subscribe": "demo", "after": 0}))
        live.send(json.dumps({"watch": ["sessions"]}))
        send("[[slow count=100 interval=0.1]]")
        for _ in range(2):
            seen = max(len(reader.items) for reader in readers)
            until(lambda seen=seen: all(len(reader.items) > seen for reader in readers))  # type: ignore[misc]
            restart(service)
        service.listen("demo").ending("demo/2")
        restart(service)
        send("last")
        listener = service.listen("demo")
        last = listener.ending("demo/3").seq
        until(lambda: all(reader.seqs[-1] >= last for reader in readers), 120)
        carried: list[int] = []
        while not carried or carried[-1] < last:
            item = json.loads(live.recv(DEADLINE_SECONDS))
            if "seq" in item and item["type"] != "subscribed":
                carried.append(item["seq"])
    assert carried == list(range(1, last + 1))
    for reader in readers:
        assert reader.seqs == list(range(1, last + 1))
        assert (reader.connections, reader.statuses) == (1, [200])
    # The turn went on in its process: one attempt, the whole text once.
    attempts = [event for event in listener.events if event.type == "attempt.opened"]
    assert [event.fields["turn"] for event in attempts] == ["demo/1", "demo/2", "demo/3"]
    words = [f"word{number}" for number in range(100)]
    assert listener.ending("demo/2").fields["text"].split() == words
    after = gateway_row(service)
    assert (after["pid"], after["address"]) == (before["pid"], before["address"])
