"""Browsers: a login by code or token, a cookie that no script reads, and requests of the own page alone."""

import json
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gateway import credentials
from gateway.credentials import Credentials
from gateway.limiter import Limiter
from gateway.tokens import BROWSERS_MAX, TokenStore
from tests.gateway.gateway_process import GatewayProcess, error_of, lone_places
from tests.waiting import DEADLINE_SECONDS


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    places = lone_places(tmp_path_factory.mktemp("home"))
    with GatewayProcess(places, origins=["https://app.example.org"]) as gateway:
        yield gateway


def code_for(
    gateway: GatewayProcess, name: str = "paired", owner: str = "", rights: str = "talk,watch"
) -> str:
    store = TokenStore(gateway.places.tokens)
    try:
        return store.make_code(name, owner, rights.split(","))
    finally:
        store.close()


def rows(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    store = TokenStore(gateway.places.tokens)
    try:
        return {row["id"]: row for row in store.rows()}
    finally:
        store.close()


def browser(gateway: GatewayProcess, **login: str) -> tuple[httpx.Client, dict[str, Any]]:
    """A client with a jar of cookies, as its own page would use it, and what the login answered."""
    client = gateway.client("")
    client.headers["Origin"] = gateway.address
    answer = client.post("/api/login", json=login)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return client, found


def live(gateway: GatewayProcess, cookie: str, **headers: str) -> ClientConnection:
    address = gateway.address.replace("http", "ws", 1) + "/api/live"
    return connect(address, additional_headers={"Cookie": cookie, **headers}, open_timeout=60)


def cookie_of(client: httpx.Client) -> str:
    ((name, value),) = client.cookies.items()
    return f"{name}={value}"


def test_a_code_logs_a_browser_in_once(gateway: GatewayProcess) -> None:
    code = code_for(gateway, "tablet", "anna", "talk")
    client, login = browser(gateway, code=code.lower())
    assert (login["name"], login["owner"], login["rights"]) == ("tablet", "anna", ["talk"])
    assert client.get("/api/me").json() == login
    row = rows(gateway)[login["id"]]
    assert (row["kind"], row["state"], row["owner"]) == ("browser", "valid", "anna")
    again = gateway.client("", address="127.0.0.5").post("/api/login", json={"code": code})
    assert error_of(again) == (401, "unauthorized")


def test_a_token_logs_a_browser_in_which_then_has_one_of_its_own(gateway: GatewayProcess) -> None:
    client, login = browser(gateway, token=gateway.token("laptop", "bob", "watch"))
    assert (login["name"], login["owner"], login["rights"]) == ("browser", "bob", ["watch"])
    assert client.get("/api/me").json()["id"] == login["id"]
    assert rows(gateway)[login["id"]]["kind"] == "browser"


def test_the_cookie_is_for_this_gateway_and_no_script(gateway: GatewayProcess) -> None:
    answer = gateway.client("").post("/api/login", json={"token": gateway.first_secret})
    port = gateway.address.rpartition(":")[2]
    name, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert name.startswith(f"hermes_{port}=hermes_")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=34560000"}
    assert "hermes_" not in answer.text
    named = gateway.client("").post(
        "/api/login", json={"token": gateway.first_secret}, headers={"Host": "localhost"}
    )
    assert named.headers["Set-Cookie"].startswith("hermes_80=")
    secret = answer.cookies[f"hermes_{port}"]
    assert gateway.first_secret != secret
    assert secret not in gateway.log.read_text()


@pytest.mark.parametrize(
    "login",
    [{}, {"code": "A", "token": "B"}, {"code": 3}, {"password": "x"}, {"code": "x", "owner": "anna"}],
    ids=json.dumps,
)
def test_a_login_that_is_none_is_refused(gateway: GatewayProcess, login: dict[str, Any]) -> None:
    answer = gateway.client("").post("/api/login", json=login)
    assert error_of(answer) == (400, "invalid")
    assert "Set-Cookie" not in answer.headers


def test_f9_wrong_logins_are_limited_like_wrong_tokens(gateway: GatewayProcess) -> None:
    wrong = gateway.client("", address="127.0.0.6")
    answers = [
        wrong.post("/api/login", json=login)
        for login in [{"code": "AAAA-AAAA"}, {"token": "hermes_wrong"}] * 10
    ]
    assert {answer.status_code for answer in answers} == {401, 429}
    assert int(answers[-1].headers["Retry-After"]) >= 1
    good = gateway.client("", address="127.0.0.6")
    assert good.post("/api/login", json={"token": gateway.first_secret}).status_code == 200


def test_f9_a_request_has_one_credential(gateway: GatewayProcess) -> None:
    client, _ = browser(gateway, token=gateway.first_secret)
    cookie = cookie_of(client)
    stranger = gateway.client("", address="127.0.0.7")
    both = {"Authorization": f"Bearer {gateway.first_secret}", "Cookie": cookie}
    for headers in (both, {"Cookie": f"{cookie}; {cookie}"}, both | {"Cookie": f"{cookie}x"}):
        assert error_of(stranger.get("/api/me", headers=headers)) == (401, "unauthorized")
    assert stranger.get("/api/me", headers={"Cookie": f"theme=dark; {cookie}; x=y"}).status_code == 200


def test_a_secret_counts_only_where_it_belongs(gateway: GatewayProcess) -> None:
    """A browser's is no program's token, and a program's token is no cookie."""
    client, _ = browser(gateway, token=gateway.first_secret)
    name, _, secret = cookie_of(client).partition("=")
    stranger = gateway.client("", address="127.0.0.8")
    asked = stranger.get("/api/me", headers={"Authorization": f"Bearer {secret}"})
    assert error_of(asked) == (401, "unauthorized")
    asked = stranger.get("/api/me", headers={"Cookie": f"{name}={gateway.first_secret}"})
    assert error_of(asked) == (401, "unauthorized")
    assert asked.headers["Set-Cookie"].startswith(f"{name}=; ")
    assert "Max-Age=0" in asked.headers["Set-Cookie"]
    logged = stranger.post("/api/login", json={"token": secret})
    assert error_of(logged) == (401, "unauthorized")


def test_f5_a_change_with_the_cookie_needs_the_own_origin(gateway: GatewayProcess) -> None:
    client, _ = browser(gateway, token=gateway.first_secret)
    cookie = {"Cookie": cookie_of(client)}
    stranger = gateway.client("")
    port = gateway.address.rpartition(":")[2]
    for origin in ({}, {"Origin": "https://app.example.org"}, {"Origin": f"http://127.0.0.1:{port}0"}):
        answer = stranger.post("/api/drain", headers=cookie | origin)
        assert error_of(answer) == (403, "denied")
    assert error_of(stranger.post("/api/drain", headers=cookie | {"Origin": gateway.address})) == (
        503,
        "unavailable",
    )


def test_f5_what_another_page_reads_with_the_cookie_is_refused(gateway: GatewayProcess) -> None:
    """A page of another port is of the same site: its pictures and scripts are asked for with the cookie."""
    client, _ = browser(gateway, token=gateway.first_secret)
    cookie = {"Cookie": cookie_of(client)}
    stranger = gateway.client("")
    for site, status in (("same-site", 403), ("cross-site", 403), ("same-origin", 200), ("none", 200)):
        asked = stranger.get("/api/me", headers=cookie | {"Sec-Fetch-Site": site})
        assert asked.status_code == status, site


def test_f5_a_websocket_with_the_cookie_needs_the_own_origin(gateway: GatewayProcess) -> None:
    client, _ = browser(gateway, token=gateway.first_secret)
    for headers in ({}, {"Origin": "https://app.example.org"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus) as refused:
            live(gateway, cookie_of(client), **headers)
        assert refused.value.response.status_code == 403
    with live(gateway, cookie_of(client), Origin=gateway.address) as connection:
        connection.send('{"unsubscribe": "x"}')
        assert json.loads(connection.recv(DEADLINE_SECONDS))["type"] == "unsubscribed"


def test_f11_logging_out_ends_the_row_the_cookie_and_the_streams(gateway: GatewayProcess) -> None:
    client, login = browser(gateway, token=gateway.first_secret)
    cookie = cookie_of(client)
    with live(gateway, cookie, Origin=gateway.address) as connection:
        answer = client.post("/api/logout")
        assert (answer.status_code, "Max-Age=0" in answer.headers["Set-Cookie"]) == (200, True)
        with pytest.raises(ConnectionClosed):
            connection.recv(DEADLINE_SECONDS)
    assert not list(client.cookies)
    assert rows(gateway)[login["id"]]["state"] == "revoked"
    stranger = gateway.client("", address="127.0.0.10")
    assert error_of(stranger.get("/api/me", headers={"Cookie": cookie})) == (401, "unauthorized")
    assert error_of(gateway.client().post("/api/logout")) == (400, "invalid")
    assert gateway.client().get("/api/me").status_code == 200


def test_f11_a_browser_ends_with_the_token_that_let_it_in(gateway: GatewayProcess) -> None:
    client, login = browser(gateway, token=gateway.token("leaked"))
    with live(gateway, cookie_of(client), Origin=gateway.address) as connection:
        gateway.revoke("leaked")
        with pytest.raises(ConnectionClosed):
            connection.recv(DEADLINE_SECONDS)
    assert rows(gateway)[login["id"]]["state"] == "revoked"


def test_another_login_of_a_browser_replaces_its_row(gateway: GatewayProcess) -> None:
    client, first = browser(gateway, token=gateway.first_secret)
    second = client.post("/api/login", json={"token": gateway.first_secret}).json()
    assert client.get("/api/me").json()["id"] == second["id"]
    found = rows(gateway)
    assert (found[first["id"]]["state"], found[second["id"]]["state"]) == ("revoked", "valid")


def test_another_login_of_a_browser_ends_the_streams_of_its_former_one(gateway: GatewayProcess) -> None:
    client, _ = browser(gateway, token=gateway.first_secret)
    with live(gateway, cookie_of(client), Origin=gateway.address) as connection:
        assert client.post("/api/login", json={"token": gateway.first_secret}).status_code == 200
        with pytest.raises(ConnectionClosed):
            connection.recv(DEADLINE_SECONDS)


def test_wrong_pairing_codes_are_limited_like_wrong_tokens(gateway: GatewayProcess) -> None:
    wrong = gateway.client("", address="127.0.0.13")
    answers = [wrong.post("/api/pair", json={"code": "AAAA-AAAA"}) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {401, 429}


def test_the_store_is_told_of_a_use_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, noted = 1_000.0, list[str]()
    monkeypatch.setattr(credentials, "monotonic", lambda: now)
    store = cast(TokenStore, SimpleNamespace(note_use=noted.append))
    checked = Credentials(store, Limiter(lambda: now))
    for seconds, count in ((0.0, 1), (59.9, 1), (60.0, 2), (61.0, 2)):
        now = 1_000.0 + seconds
        checked._note_use("t_1")
        assert noted == ["t_1"] * count


def test_a_failed_login_leaves_the_former_one(gateway: GatewayProcess) -> None:
    client, first = browser(gateway, token=gateway.first_secret)
    cookie = {"Cookie": cookie_of(client), "Origin": gateway.address}
    other = gateway.client("", address="127.0.0.11")
    assert other.post("/api/login", json={"code": "AAAA-AAAA"}, headers=cookie).status_code == 401
    assert client.get("/api/me").json() == first


def test_an_owner_has_a_bounded_number_of_browsers(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.db")
    token, _ = store.add("phone", "anna", ["talk"])
    other, _ = store.add("phone", "bob", ["talk"])
    kept, _ = store.add_browser(other)
    made = [store.add_browser(token)[0].id for _ in range(BROWSERS_MAX + 2)]
    valid = {row["id"] for row in store.rows() if row["state"] == "valid"}
    assert valid == {token.id, other.id, kept.id, *made[2:]}
    store.close()


def test_over_tls_the_cookie_is_bound_to_the_host(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    with GatewayProcess(lone_places(tmp_path / "home"), tls_cert=str(cert), tls_key=str(key)) as gateway:
        client = gateway.client("", verify=ssl.create_default_context(cafile=cert))
        answer = client.post("/api/login", json={"token": gateway.first_secret})
        port = gateway.address.rpartition(":")[2]
        assert answer.headers["Set-Cookie"].startswith(f"__Host-hermes_{port}=")
        assert "; Secure" in answer.headers["Set-Cookie"]
        assert client.get("/api/me").status_code == 200
        plain = f"http://127.0.0.1:{port}"
        assert error_of(client.post("/api/logout", headers={"Origin": plain})) == (403, "denied")
        assert client.post("/api/logout", headers={"Origin": gateway.address}).status_code == 200
