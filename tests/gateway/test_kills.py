"""Kills of gateway and supervisor: readers hold every seq once, and a message that is sent again is one."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fake_model import FakeModel
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.sse_readers import SseReader, SseReaders
from tests.service import Service, settings_for
from tests.waiting import until

READERS = 100
# Minutes, for a hundred readers on a busy machine.
PATIENCE_SECONDS = 120.0


@pytest.fixture
def service(tmp_path: Path, model_server: FakeModel) -> Iterator[Service]:
    with Service(tmp_path / "home", settings_for(model_server, workers="count = 1")) as service:
        yield service


def sent(gateway: GatewayProcess, text: str) -> str:
    """Sends a message as clients should: again with the same key, until it is accepted."""
    headers = {"Idempotency-Key": os.urandom(8).hex()}
    client = gateway.client()

    def accepted() -> str:
        try:
            answer = client.post("/api/sessions/demo/messages", json={"text": text}, headers=headers)
        except httpx.TransportError:
            return ""
        assert answer.status_code in (202, 503), answer.text
        return str(answer.json()["message"]) if answer.status_code == 202 else ""

    return until(accepted, PATIENCE_SECONDS)


@pytest.mark.timeout(400)
def test_a_hundred_readers_hold_every_seq_once_through_kills(service: Service) -> None:
    with GatewayProcess(service.places) as gateway:
        messages = [sent(gateway, "first")]
        # They come back more often than the server asks for: a token for each five stays within its limit.
        secrets = [gateway.token(f"reader-{number}") for number in range(READERS // 5)]
        readers = [SseReader(gateway.address, secret, "demo") for secret in secrets for _ in range(5)]
        with SseReaders(readers):
            until(lambda: all(reader.seqs for reader in readers), PATIENCE_SECONDS)
            for text in ("second", "third"):
                gateway.kill()
                gateway.start()
                messages.append(sent(gateway, f"{text} [[slow count=20 interval=0.05]]"))
                service.kill()
                service.start()
                messages.append(sent(gateway, text))
            listener = service.listen("demo")
            listener.until(lambda: len(listener.of_type("turn.done", "turn.interrupted")) == len(messages))
            # Nothing follows the end of the last turn.
            last = listener.events[-1].seq
            until(lambda: all(reader.seqs[-1] >= last for reader in readers), PATIENCE_SECONDS)
    assert len(set(messages)) == 5
    for reader in readers:
        assert reader.seqs == list(range(1, last + 1))
        assert [item["seq"] for item in reader.items if "seq" in item] == reader.seqs
        assert set(reader.statuses) <= {200, 503}


def test_the_supervisors_death_is_a_pause_for_a_stream(service: Service) -> None:
    with GatewayProcess(service.places) as gateway:
        sent(gateway, "before")
        with SseReaders([SseReader(gateway.address, gateway.first_secret, "demo")]) as (reader,):
            until(lambda: reader.seqs)
            service.kill()
            health = gateway.client("")
            until(lambda: health.get("/health").status_code == 503)
            service.start()
            sent(gateway, "after")
            listener = service.listen("demo")
            listener.ending("demo/2")
            until(lambda: reader.seqs[-1] == listener.events[-1].seq)
        assert reader.seqs == [event.seq for event in listener.events]
        assert reader.connections == 1


def test_a_gateway_that_did_not_run_while_the_supervisor_was_replaced_goes_on(service: Service) -> None:
    """It learns of the lost and of the new connection at the same moment."""
    with GatewayProcess(service.places) as gateway:
        sent(gateway, "before")
        with SseReaders([SseReader(gateway.address, gateway.first_secret, "demo")]) as (reader,):
            until(lambda: reader.seqs)
            for turn in (2, 3, 4):
                assert gateway.process is not None
                os.kill(gateway.process.pid, signal.SIGSTOP)
                service.kill()
                service.start()
                os.kill(gateway.process.pid, signal.SIGCONT)
                sent(gateway, "after")
                last = service.listen("demo").ending(f"demo/{turn}").seq
                until(lambda last=last: reader.seqs[-1] >= last)  # type: ignore[misc]
        assert reader.seqs == list(range(1, last + 1))
        assert reader.connections == 1


def test_a_message_that_the_supervisor_did_not_answer_before_it_died_is_sent_again(service: Service) -> None:
    """The supervisor is stopped, so it cannot answer, and then killed: its successor gets the message."""
    with GatewayProcess(service.places) as gateway:
        sent(gateway, "before")
        service.listen("demo").ending("demo/1")
        assert service.process is not None
        os.kill(service.process.pid, signal.SIGSTOP)
        found: list[str] = []
        sending = threading.Thread(target=lambda: found.append(sent(gateway, "meanwhile")))
        sending.start()
        service.kill()
        service.start()
        sending.join(PATIENCE_SECONDS)
        listener = service.listen("demo")
        assert listener.ending("demo/2").fields["text"] == "You said: meanwhile"
        accepted = [event.fields["message"] for event in listener.of_type("message.accepted")]
        assert accepted[1:] == found
