"""Who gets in: tokens, Host and Origin are checked before everything, on every route."""

import os
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from gateway.routes import WEBSOCKET, Route, routes
from gateway.tokens import TokenStore
from tests.gateway.gateway_process import GatewayProcess, error_of, lone_places

PUBLIC = {
    ("GET", "/"),
    ("GET", "/console/{file}"),
    ("GET", "/service-worker.js"),
    ("GET", "/manifest.webmanifest"),
    ("GET", "/health"),
    ("POST", "/api/pair"),
    ("POST", "/api/login"),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Without a supervisor: a request that gets past the checks is answered with 503."""
    places = lone_places(tmp_path_factory.mktemp("home"))
    with GatewayProcess(places, hosts=["agent.example.org"], origins=["https://app.example.org"]) as gateway:
        yield gateway


def path_of(route: Route) -> str:
    parts = [quote("demo/1" if part == "{id}" else "demo") if part[:1] == "{" else part
             for part in route.path.split("/")]  # fmt: skip
    return "/".join(parts)


def asked(client: httpx.Client, route: Route, **headers: str) -> httpx.Response:
    """A WebSocket's handshake is a GET with these headers."""
    if route.method != WEBSOCKET:
        return client.request(route.method, path_of(route), headers=headers)
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    return client.get(path_of(route), headers=upgrade | headers)


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route.method} {route.path}")
def test_f3_no_route_answers_without_a_token(gateway: GatewayProcess, route: Route) -> None:
    """F1, F3: deny by default. The routes that need none are named here, too."""
    answer = asked(gateway.client(""), route)
    if (route.method, route.path) in PUBLIC:
        assert route.right == "anyone"
        assert answer.status_code != 401
    else:
        assert error_of(answer) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        wrong = asked(gateway.client("hermes_wrong"), route)
        assert wrong.status_code in (401, 429)


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route.method} {route.path}")
def test_f5_f6_every_route_refuses_foreign_hosts_and_origins(gateway: GatewayProcess, route: Route) -> None:
    client = gateway.client()
    assert error_of(asked(client, route, Host="evil.example")) == (421, "host")
    assert error_of(asked(client, route, Origin="https://evil.example")) == (403, "denied")


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route.method} {route.path}")
def test_f7_rights_come_from_the_tokens_row_alone(gateway: GatewayProcess, route: Route) -> None:
    lacking = {"watch": "operate", "talk": "watch", "operate": "talk"}.get(route.right)
    if lacking is None:
        return
    client = gateway.client(gateway.token(f"only-{lacking}-{os.urandom(4).hex()}", rights=lacking))
    claimed = asked(client, route, **{"X-Rights": "talk,watch,operate", "X-Scopes": "operate"})
    assert error_of(claimed) == (403, "denied")


def test_an_unknown_path_is_401_without_and_404_with_a_token(gateway: GatewayProcess) -> None:
    assert gateway.client("").get("/no/such/path").status_code in (401, 429)
    assert error_of(gateway.client().get("/no/such/path")) == (404, "unknown")
    assert error_of(gateway.client().get("/api/me/")) == (404, "unknown")


def test_a_method_that_a_path_does_not_take_is_405_with_those_it_does(gateway: GatewayProcess) -> None:
    answer = gateway.client().post("/api/me")
    assert error_of(answer) == (405, "method")
    assert answer.headers["Allow"] == "GET"
    assert gateway.client().options("/api/me").status_code == 405


@pytest.mark.parametrize(
    "host", ["127.evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "", "evil@127.0.0.1"]
)
def test_f4_f6_a_name_that_looks_like_loopback_is_none(gateway: GatewayProcess, host: str) -> None:
    assert error_of(gateway.client().get("/health", headers={"Host": host})) == (421, "host")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9999", "127.0.0.1", "[::1]:80", "Agent.Example.Org"]
)
def test_the_gateways_own_names_are_answered(gateway: GatewayProcess, host: str) -> None:
    assert gateway.client().get("/api/me", headers={"Host": host}).status_code == 200


def test_only_its_own_and_named_origins_may_use_it(gateway: GatewayProcess) -> None:
    client = gateway.client()
    own = gateway.address
    assert client.get("/api/me", headers={"Origin": own}).status_code == 200
    assert client.get("/api/me", headers={"Origin": "https://app.example.org"}).status_code == 200
    for origin in ("null", "https://app.example.org.evil.com", own + "0", "http://localhost:1"):
        assert error_of(client.get("/api/me", headers={"Origin": origin})) == (403, "denied")
    assert "access-control-allow-origin" not in client.get("/api/me", headers={"Origin": own}).headers


@pytest.mark.parametrize("query", ["token=x", "Access_Token=x", "q=SECRET", "api_key="])
def test_f4_a_token_in_a_url_is_refused_even_when_it_is_valid(gateway: GatewayProcess, query: str) -> None:
    answer = gateway.client().get("/api/me?" + query.replace("SECRET", gateway.first_secret))
    assert error_of(answer) == (400, "invalid")
    assert "URL" in answer.text
    assert gateway.first_secret not in gateway.log.read_text()


def test_f9_a_second_credential_is_refused(gateway: GatewayProcess) -> None:
    good = ("Authorization", f"Bearer {gateway.first_secret}")
    for other in (("Authorization", "Bearer bogus"), good):
        answer = gateway.client("").get("/api/me", headers=[good, other])
        assert answer.status_code in (401, 429)
    for value in (f"Basic {gateway.first_secret}", gateway.first_secret, "Bearer", ""):
        answer = gateway.client("").get("/api/me", headers={"Authorization": value})
        assert answer.status_code in (401, 429)


def test_f9_wrong_tokens_are_limited_and_a_good_one_always_passes(gateway: GatewayProcess) -> None:
    """Both at one address, from which nothing else came."""
    wrong = gateway.client("hermes_" + "x" * 43, address="127.0.0.9")
    good = gateway.client(address="127.0.0.9")
    answers = [wrong.get("/api/me") for _ in range(30)]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert error_of(answers[-1]) == (429, "full")
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert good.get("/api/me").status_code == 200


def test_a_token_that_asks_too_often_is_told_when_to_come_back(gateway: GatewayProcess) -> None:
    """A thousand requests at once, without waiting for answers."""
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    request = (
        f"GET /nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {gateway.token('greedy')}\r\n\r\n"
    )
    answers = b""
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(request.encode() * 1000)
        while b"HTTP/1.1 429" not in answers:
            answers += line.recv(65536)
    assert answers.startswith(b"HTTP/1.1 404")
    assert gateway.client().get("/api/me").status_code == 200


def test_a_token_says_who_it_is(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("phone", "anna", "talk,watch"))
    shown = client.get("/api/me").json()
    assert (shown["name"], shown["owner"], shown["rights"]) == ("phone", "anna", ["talk", "watch"])
    store = TokenStore(gateway.places.tokens)
    assert [row["used_at"] is not None for row in store.rows() if row["name"] == "phone"] == [True]
    store.close()


def test_a_revoked_token_is_wrong_at_once(gateway: GatewayProcess) -> None:
    client = gateway.client(gateway.token("short-lived"))
    assert client.get("/api/me").status_code == 200
    gateway.revoke("short-lived")
    assert client.get("/api/me").status_code in (401, 429)


def test_a_pairing_code_is_exchanged_once(gateway: GatewayProcess) -> None:
    store = TokenStore(gateway.places.tokens)
    code = store.make_code("tablet", "anna", ["talk"])
    store.close()
    stranger = gateway.client("")
    paired = stranger.post("/api/pair", json={"code": code.lower()})
    assert (paired.status_code, paired.json()["owner"]) == (200, "anna")
    assert gateway.client(paired.json()["token"]).get("/api/me").json()["name"] == "tablet"
    assert stranger.post("/api/pair", json={"code": code}).status_code in (401, 429)
    assert error_of(stranger.post("/api/pair", json={"kode": code})) == (400, "invalid")


def test_f1_the_first_token_is_made_at_the_first_start(gateway: GatewayProcess) -> None:
    mode = stat.S_IMODE(gateway.places.token.stat().st_mode)
    assert (mode, stat.S_IMODE(gateway.places.tokens.stat().st_mode)) == (0o600, 0o600)
    assert gateway.first_secret.encode() not in gateway.places.tokens.read_bytes()
    assert gateway.client().get("/api/me").json()["rights"] == ["operate", "talk", "watch"]


def test_every_answer_has_security_headers(gateway: GatewayProcess) -> None:
    for answer in (
        gateway.client().get("/api/me"),
        gateway.client().get("/nothing"),
        gateway.client("").get("/api/me"),
    ):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Server" not in answer.headers


def test_without_a_supervisor_the_health_says_so_and_requests_are_told_to_wait(
    gateway: GatewayProcess,
) -> None:
    health = gateway.client("").get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "unavailable")
    answer = gateway.client().get("/metrics")
    assert error_of(answer) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"


def test_what_is_no_http_is_refused(gateway: GatewayProcess) -> None:
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        line.sendall(b"\x00\x01 nonsense\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 400")


def test_with_tls_files_it_serves_https(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    with GatewayProcess(lone_places(tmp_path / "home"), tls_cert=str(cert), tls_key=str(key)) as gateway:
        assert gateway.address.startswith("https://")
        answer = gateway.client(verify=ssl.create_default_context(cafile=cert)).get("/api/me")
        assert answer.status_code == 200
        assert "Strict-Transport-Security" in answer.headers
