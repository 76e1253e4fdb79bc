"""Behind a real nginx that compresses: words arrive one by one, sockets and logins work."""

import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.sync.client import connect

from tests.gateway.gateway_process import TIMEOUT_SECONDS, GatewayProcess, error_of
from tests.gateway.nginx_proxy import Nginx
from tests.gateway.test_messages import send
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS

HOST = {"Host": "agent.example.org"}


@pytest.fixture(scope="module")
def gateway(service: Service) -> Iterator[GatewayProcess]:
    with GatewayProcess(service.places, proxies=["127.0.0.1"], hosts=["agent.example.org"]) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def proxy(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    with Nginx(tmp_path_factory.mktemp("proxy") / "nginx", gateway.address) as proxy:
        yield proxy


def through(proxy: Nginx, secret: str = "") -> httpx.Client:
    headers = HOST | ({"Authorization": f"Bearer {secret}"} if secret else {})
    return httpx.Client(base_url=proxy.address, headers=headers, timeout=TIMEOUT_SECONDS)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_words_arrive_one_by_one(gateway: GatewayProcess, proxy: Nginx, coding: str) -> None:
    """Each word is here while its turn still runs: the client interrupts it after the tenth."""
    secret, session = gateway.first_secret, f"words-{coding}"
    send(gateway.client(), session, "[[slow count=2000 interval=0.1]]")
    reads: list[str] = []
    with (
        through(proxy, secret) as client,
        client.stream(
            "GET", f"/api/sessions/{session}/events?after=0", headers={"Accept-Encoding": coding}
        ) as answer,
    ):
        assert answer.headers.get("Content-Encoding", "identity") == coding
        for text in answer.iter_text():
            reads.append(text)
            if sum('"delta"' in read for read in reads) >= 10:
                break
        with through(proxy, secret) as other:
            proof = other.post(f"/api/sessions/{session}/interrupt").json()
    assert proof["state"] == "interrupted"
    assert all(read.count('"delta"') < 10 for read in reads)
    assert not any("turn.done" in read for read in reads)


def test_a_socket_and_an_upload_pass_through(gateway: GatewayProcess, proxy: Nginx) -> None:
    headers = {"Authorization": f"Bearer {gateway.first_secret}"}
    with (
        connect(f"ws://127.0.0.1:{proxy.port}/api/live", additional_headers=headers) as live,
        through(proxy, gateway.first_secret) as client,
    ):
        live.send(json.dumps({"watch": ["sessions"]}))
        files = {"audio": ("note.ogg", b"OggS" + b"x" * 500_000, "audio/ogg")}
        accepted = client.post("/api/sessions/sung/messages", files=files)
        assert accepted.status_code == 202
        while "sung" not in {
            row.get("session") for row in json.loads(live.recv(DEADLINE_SECONDS)).get("rows", ())
        }:
            pass
        part = client.get(f"/api/messages/{accepted.json()['message']}/clip", headers={"Range": "bytes=0-3"})
        assert (part.status_code, part.content) == (206, b"OggS")


def test_a_browser_of_the_public_name_logs_in(proxy: Nginx, gateway: GatewayProcess) -> None:
    with through(proxy) as client:
        page = client.get("/", headers={"Accept-Encoding": "gzip"})
        assert (page.status_code, page.headers["Content-Encoding"]) == (200, "gzip")
        again = client.get("/", headers={"Accept-Encoding": "gzip", "If-None-Match": page.headers["ETag"]})
        assert again.status_code == 304
        answer = client.post("/api/login", json={"token": gateway.first_secret})
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-hermes_443=hermes_")
        assert "; Secure" in cookie
        sent = {"Cookie": cookie.partition(";")[0]}
        for origin in ("http://agent.example.org", proxy.address):
            refused = client.post("/api/logout", headers=sent | {"Origin": origin})
            assert error_of(refused) == (403, "denied")
        own = {"Origin": "https://agent.example.org"}
        assert client.post("/api/logout", headers=sent | own).status_code == 200


def test_failures_are_counted_by_the_address_that_the_proxy_says(
    proxy: Nginx, gateway: GatewayProcess
) -> None:
    """One client behind the proxy that guesses does not lock the others out of their second try."""
    with through(proxy, "hermes_wrong") as guessing:
        codes = {
            guessing.get("/api/me", headers={"X-Forwarded-For": "203.0.113.9"}).status_code for _ in range(20)
        }
    assert codes == {401, 429}
    direct = gateway.client("hermes_wrong")
    assert direct.get("/api/me", headers={"X-Forwarded-For": "203.0.113.10"}).status_code == 401
