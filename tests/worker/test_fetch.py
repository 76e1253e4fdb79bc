"""The tool fetch: pages as text from a real server, and addresses that it does not ask."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from worker import fetch_call
from worker.tools import Report
from worker.tools.fetch import Fetch

PAGE = """<html><head><title>A page</title><style>p { color: red }</style></head>
<body><h1>Head</h1><p>One <b>bold</b> word.</p><script>alert("no")</script>
<ul><li>first<li>second</ul></body></html>"""
ANSWERS = {
    "/page": (200, "text/html; charset=utf-8", PAGE.encode()),
    "/latin": (200, "text/plain; charset=latin-1", "café".encode("latin-1")),
    "/data": (200, "application/json", b'{"a": 1}'),
    "/picture": (200, "image/png", b"\x89PNG"),
    "/long": (200, "text/plain", b"x" * 5_000_000),
    "/missing": (404, "text/plain", b"there is no such page"),
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        status, kind, body = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # It reads no further than it shows.
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


class _Server(ThreadingHTTPServer):
    seen: list[str]


@pytest.fixture(scope="module")
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(url: str, *, private: bool = True) -> Report:
    async def scene() -> Report:
        tool = Fetch(private=private)
        try:
            return await tool.run({"url": url}, lambda text: None)
        finally:
            tool.close()

    return asyncio.run(scene())


def at(server: _Server, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def test_a_page_comes_back_as_its_words(server: _Server) -> None:
    url = at(server, "/page")
    words = "A page\nHead\nOne bold word.\nfirst\nsecond"
    assert fetch(url) == Report(f"[{url}: status 200, text/html; charset=utf-8]\n{words}")
    assert fetch(at(server, "/latin")).text.endswith("\ncafé")
    assert fetch(at(server, "/data")).text.endswith('\n{"a": 1}')
    assert "no text" in fetch(at(server, "/picture")).text


def test_a_long_page_is_cut_and_a_file_has_it_whole(server: _Server, outputs: Path) -> None:
    found = fetch(at(server, "/long")).text
    file = outputs / "1.txt"
    assert found.startswith(
        f"[cut: all of it is in {file}; read it there]\n[{at(server, '/long')}: status 200"
    )
    assert len(found) < 41_000
    whole = file.read_text()
    assert whole.endswith("\n[… the rest was left out]")  # of 2 MiB
    assert whole.count("x") > 1_000_000


def test_an_error_of_the_server_is_an_error_of_the_call(server: _Server) -> None:
    missing = fetch(at(server, "/missing"))
    assert (missing.ok, "status 404" in missing.text, "no such page" in missing.text) == (False, True, True)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/", "/etc/passwd", "http://", "http://[::"]
)
def test_what_is_no_web_page_is_refused(url: str) -> None:
    refused = fetch(url)
    assert not refused.ok
    assert "root:" not in refused.text


def test_a_redirect_leads_to_no_file_and_not_on_for_ever(server: _Server) -> None:
    assert fetch(at(server, f"/to/{at(server, '/data')}")).ok
    assert not fetch(at(server, "/to/file:///etc/passwd")).ok
    around = fetch(at(server, "/to/" * 20 + "data"))
    assert not around.ok


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"]
)
def test_this_host_is_asked_only_where_the_settings_allow_it(server: _Server, host: str) -> None:
    server.seen.clear()
    refused = fetch(f"http://{host}:{server.server_port}/data", private=False)
    assert (refused.ok, server.seen) == (False, [])


@pytest.mark.parametrize(
    "address",
    ["64:ff9b::a00:1", "64:ff9b:1::808:808", "::10.0.0.1", "2002:a00:1::", "fec0::1", "ff02::1", "224.0.0.1"],
)
def test_no_other_form_of_a_private_address_is_public(address: str) -> None:
    assert not fetch_call._is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "2002:808:808::"])
def test_public_addresses_are(address: str) -> None:
    assert fetch_call._is_public(address)


@pytest.mark.parametrize("host", ["100.64.0.1", "169.254.169.254", "10.0.0.1", "[fe80::1]", "[fd00::1]"])
def test_no_address_outside_the_public_networks_is_asked(host: str) -> None:
    """Networks of a provider or a tunnel (100.64.0.0/10) are not public either."""
    refused = fetch(f"http://{host}:9/", private=False)
    assert not refused.ok
    assert "private network" in refused.text


def test_a_public_address_is_asked_at_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the real one: its socket notes where it would have connected to."""
    asked: list[tuple[str, int]] = []

    class Socket(socket.socket):
        def connect(self, address: Any) -> None:
            asked.append(address)

    found = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("93.184.215.14", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [found])
    monkeypatch.setattr(socket, "socket", Socket)
    fetch_call._connect("example.org", 80, private=False).close()
    assert asked == [("93.184.215.14", 80)]
