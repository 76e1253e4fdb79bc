"""A page of another port is of the same site, and its requests have the cookie: they reach nothing."""

import http.server
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.console.console_page import TIMEOUT_MS
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_login import code_for, rows

# What any local page could try, in the order of the answers; `no-cors` needs no permission to send.
_TRIES = """async (gateway) => {
  const told = (promise) => promise.then((answer) => answer.type + " " + answer.status, () => "refused");
  const opened = (socket) => new Promise((done) => {
    socket.onopen = () => done("open");
    socket.onerror = () => done("refused");
  });
  return [
    await told(fetch(gateway + "/api/me", {credentials: "include"})),
    await told(fetch(gateway + "/api/me", {credentials: "include", mode: "no-cors"})),
    await told(fetch(gateway + "/api/logout", {method: "POST", credentials: "include", mode: "no-cors"})),
    await opened(new WebSocket(gateway.replace("http", "ws") + "/api/live")),
    await new Promise((done) => {
      const script = document.createElement("script");
      script.onload = () => done("loaded");
      script.onerror = () => done("refused");
      script.src = gateway + "/api/me";
      document.body.append(script);
    }),
  ];
}"""


class _Hostile(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a game</title>")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def hostile() -> Iterator[str]:
    """The address of a page on the same host, at another port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def test_f5_a_local_page_cannot_use_the_cookie_of_the_console(
    page: Page, gateway: GatewayProcess, hostile: str
) -> None:
    page.goto(gateway.address)
    login = page.evaluate(
        """async (code) => {
            const headers = {"Content-Type": "application/json"};
            const answer = await fetch("/api/login", {method: "POST", headers, body: JSON.stringify({code})});
            return await answer.json();
        }""",
        code_for(gateway, "laptop", rights="talk,watch,operate"),
    )
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("fetch('/api/me').then((answer) => answer.json())") == login
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")

    other = page.context.new_page()
    other.goto(hostile)
    answers = other.evaluate(_TRIES, gateway.address)
    # The second and third are sent, opaque to the page; the gateway refuses them.
    assert answers[0] == answers[3] == answers[4] == "refused"
    assert answers[2] in ("opaque 0", "refused")
    assert rows(gateway)[login["id"]]["state"] == "valid"
    assert page.evaluate("fetch('/api/me').then((answer) => answer.status)") == 200


def test_f4_the_page_of_another_origin_learns_no_secret_from_the_address(
    page: Page, gateway: GatewayProcess
) -> None:
    """The code is behind the sign #, which no request carries; a code in a query is refused."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{gateway.address}/#code={code_for(gateway)}")
    page.wait_for_load_state("networkidle")
    assert not any("code=" in url.partition("#")[0] for url in asked)
