"""While the journal cannot be written: 503 with a time to wait; an interrupt proves, and nothing doubles."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_interrupt_without_disk import stuck
from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.test_messages import SPIN, calling, send
from tests.service import Service, settings_for
from tests.waiting import until

PATIENCE_SECONDS = 120.0


@pytest.fixture
def service(tmp_path: Path, model_server: FakeModel) -> Iterator[Service]:
    with Service(tmp_path / "home", settings_for(model_server, workers="count = 1")) as service:
        yield service


def test_a_stuck_journal_is_said_and_a_repetition_is_one_message(service: Service) -> None:
    key = {"Idempotency-Key": "once"}
    with GatewayProcess(service.places) as gateway:
        client = gateway.client()
        send(client, "busy", calling(SPIN))
        listener = service.listen("busy")
        listener.until(lambda: listener.of_type("tool.started"))
        with stuck(service):
            # The first one may wait for its commit until the gateway gives up.
            first = client.post("/api/sessions/demo/messages", json={"text": "hello"}, headers=key)
            assert error_of(first) == (503, "unavailable")
            assert int(first.headers["Retry-After"]) >= 1
            until(lambda: service.status()["state"] == "stuck", PATIENCE_SECONDS)
            second = client.post("/api/sessions/demo/messages", json={"text": "hello"}, headers=key)
            assert error_of(second) == (503, "unavailable")
            assert int(second.headers["Retry-After"]) >= 1
            assert "journal" in second.text
            health = until(lambda: answer if (answer := client.get("/health")).status_code == 503 else None)
            assert health is not None
            assert health.json() == {"status": "stuck", "reasons": ["the journal cannot be written"]}
            proof = client.post("/api/sessions/busy/interrupt").json()
            assert (proof["turn"], proof["killed"]["all_dead"]) == ("busy/1", True)
            assert proof["unwritten"]
        until(lambda: service.status()["state"] == "ready", PATIENCE_SECONDS)
        third = client.post("/api/sessions/demo/messages", json={"text": "hello"}, headers=key)
        assert third.status_code == 202
        told = service.listen("demo")
        assert told.ending("demo/1").fields["text"] == "You said: hello"
        assert [event.fields["message"] for event in told.of_type("message.accepted")] == [
            third.json()["message"]
        ]
        assert listener.ending("busy/1").type == "turn.interrupted"
