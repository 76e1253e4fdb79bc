"""The gateway's side of the control protocol, beside a supervisor that is played from a script."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from ipc.messages import (
    Accepted,
    Answer,
    Cut,
    RefusalCode,
    Refused,
    Request,
    Respond,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
)
from ipc.places import find_places
from tests.gateway.gateway_process import GatewayProcess, error_of
from tests.gateway.sse_readers import SseReader, SseReaders
from tests.hermesctl.peer import Peer, Story, opened
from tests.waiting import until

STATUSES = {
    "invalid": 400,
    "unknown": 404,
    "conflict": 409,
    "full": 429,
    "unavailable": 503,
    "denied": 403,
    "internal": 500,
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """On the control socket, which the scripted supervisor opens."""
    places = find_places(str(tmp_path))
    with GatewayProcess(places, socket=places.control) as gateway:
        yield gateway


def is_connected(gateway: GatewayProcess) -> bool:
    return bool(gateway.client().get("/api/workers").status_code != 503)


def refusing(peer: Peer, request: Request) -> list[Answer]:
    """Refuses as the text of a message says."""
    if isinstance(request, Submit):
        later = 7.0 if request.text == "unavailable" else None
        return [Refused("it is refused", "do not", later, code=request.text)]  # type: ignore[arg-type]
    return [Refused("no table", "none")]


def test_every_refusal_has_its_status(gateway: GatewayProcess, tmp_path: Path) -> None:
    """A journal that is stuck is 503 with the time to wait, a full queue 429."""
    assert set(STATUSES) == set(get_args(RefusalCode))
    with opened(tmp_path, refusing):
        until(lambda: is_connected(gateway))
        client = gateway.client()
        for code, status in STATUSES.items():
            answer = client.post("/api/sessions/demo/messages", json={"text": code})
            assert answer.status_code == status
            assert answer.json()["error"]["message"] == "it is refused"
            assert answer.headers.get("Retry-After") == {"unavailable": "7", "full": "5"}.get(code)


def test_openai_clients_get_refusals_in_their_shape(gateway: GatewayProcess, tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(({"agent": "default"},) if request.what == "agents" else ())]
        return refusing(peer, request)

    with opened(tmp_path, reply):
        until(lambda: is_connected(gateway))
        for code, status in STATUSES.items():
            requests: dict[str, Any] = {
                "chat/completions": {"messages": [{"role": "user", "content": code}]},
                "responses": {"input": code},
            }
            for path, body in requests.items():
                answer = gateway.client().post(f"/v1/{path}", json={"model": "default", **body})
                error = answer.json()["error"]
                assert (answer.status_code, error["message"]) == (status, "it is refused; do not")
                assert error["type"].endswith("_error")
                assert answer.headers.get("Retry-After") == {"unavailable": "7", "full": "5"}.get(code)


def test_a_message_without_an_answer_is_sent_again_to_the_next_supervisor(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    answers: list[httpx.Response] = []

    def post() -> None:
        answers.append(gateway.client().post("/api/sessions/demo/messages", json={"text": "hi"}))

    def silent(peer: Peer, request: Request) -> list[Answer]:
        return [] if isinstance(request, Submit | Respond) else [Refused("no table", "none")]

    with opened(tmp_path, silent) as peer:
        until(lambda: is_connected(gateway))
        sending = threading.Thread(target=post)
        sending.start()
        asked = peer.wait_for(Submit)
        other = threading.Thread(
            target=lambda: answers.append(
                gateway.client().post("/api/questions/demo%2F1%231/answer", json={"text": "yes"})
            )
        )
        other.start()
        peer.wait_for(Respond)
    other.join()
    assert error_of(answers[0]) == (503, "unavailable")
    with opened(tmp_path, lambda peer, request: [Accepted("m_1", 4)]) as peer:
        sending.join()
        assert peer.requests(Submit) == [asked]
        assert peer.requests(Respond) == []
    assert (answers[1].status_code, answers[1].json()) == (202, {"message": "m_1", "seq": 4})


def test_a_subscription_that_was_cut_begins_again_after_the_last_event(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    """Repeats of what was read, and frames of the ended subscription, reach no reader."""
    story = Story(seq=3)
    fourth, fifth = story.event("a.fourth"), story.event("a.fifth")

    def reply(peer: Peer, request: Request) -> list[Answer]:
        if not isinstance(request, Subscribe):
            return [Refused("no table", "none")]
        again = [fourth, fifth] if request.after is not None else []
        return [Subscribed(3 if request.after is None else 5), *again]

    with opened(tmp_path, reply) as peer:
        until(lambda: is_connected(gateway))
        with SseReaders([SseReader(gateway.address, gateway.first_secret, "demo", after=3)]) as (reader,):
            peer.wait_for(Subscribe)
            until(lambda: reader.statuses)
            peer.say(Subscribe, fourth, Cut("too slow"))
            until(lambda: reader.seqs == [4, 5])
            assert peer.requests(Subscribe) == [Subscribe("demo", None), Subscribe("demo", 4)]
        assert reader.connections == 1
