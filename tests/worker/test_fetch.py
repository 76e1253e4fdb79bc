"""The tool fetch: pages as text from a real server, and addresses that it does not ask."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.raw_server import raw_server
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
    "/broken": (200, "text/plain; charset=utf-8", b"caf\xe9"),
    "/unknown": (200, "text/plain; charset=x-mine", "café".encode()),
    "/packed": (200, "text/plain; charset=zlib_codec", b"words"),
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


def test_bytes_that_are_not_of_the_charset_are_shown_as_such(server: _Server) -> None:
    assert fetch_call.fetch(at(server, "/broken"), private=True).endswith("\ncaf\ufffd")


@pytest.mark.parametrize(("path", "words"), [("/unknown", "café"), ("/packed", "words")])
def test_a_charset_that_is_not_known_is_read_as_utf_8(server: _Server, path: str, words: str) -> None:
    assert fetch_call.fetch(at(server, path), private=True).endswith(f"\n{words}")


def test_words_after_a_stray_end_of_a_script_are_shown() -> None:
    page = "</script>one<script>two<style>three</style>four</script>five"
    assert fetch_call._without_markup(page) == "onefive"


def test_the_words_of_a_page_end_with_their_block_and_nothing_of_a_picture_is_shown() -> None:
    page = "<p>one</p>two<svg>x<style>y</style>z</svg><template>no</template><br>three &lt; AT&T"
    assert fetch_call._without_markup(page) == "one\ntwo\nthree < AT&T"


@pytest.mark.parametrize(
    ("kind", "is_text"),
    [("application/ld+json; x=y", True), ("application/xml", True), ("font/woff", False), ("x/jsonp", False)],
)
def test_a_type_that_is_a_form_of_text_is_shown(kind: str, is_text: bool) -> None:
    assert bool(fetch_call._TEXT_TYPES.match(kind)) is is_text


def test_an_answer_that_is_just_as_long_as_allowed_is_whole(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = len(ANSWERS["/data"][2])
    for bytes_max, ending in ((length, '{"a": 1}'), (length - 1, '{"a": 1\n[… the rest was left out]')):
        monkeypatch.setattr(fetch_call, "_BODY_BYTES_MAX", bytes_max)
        assert fetch_call.fetch(at(server, "/data"), private=True).endswith(f"\n{ending}")


def test_what_is_wrong_is_said_in_words_that_any_model_reads(server: _Server) -> None:
    assert fetch("\ud83d").text.startswith("error: ? is no address of a web page")
    for url in ("http://127.0.0.1:1/", at(server, "/to/ftp://127.0.0.1:1/")):
        with pytest.raises(fetch_call.CallError) as raised:
            fetch_call.fetch(url, private=True)
        assert "cannot be fetched: " in str(raised.value)
        assert "urlopen" not in str(raised.value)


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


def test_the_redirects_of_one_call_are_counted(server: _Server) -> None:
    def after(redirects: int) -> str:
        url = at(server, "/data")
        for _ in range(redirects):
            url = at(server, f"/to/{url}")
        return url

    assert fetch_call.fetch(after(5), private=True).endswith('\n{"a": 1}')
    server.seen.clear()
    with pytest.raises(fetch_call.CallError, match="status 302, text/plain"):
        fetch_call.fetch(after(6), private=True)
    assert len(server.seen) == 6


def test_what_is_no_http_is_a_fault_in_words() -> None:
    with (
        raw_server(lambda: iter([b"220 mail.example\r\n"])) as server,
        pytest.raises(fetch_call.CallError, match=r"cannot be fetched: 220 mail\.example"),
    ):
        fetch_call.fetch(server.base_url, private=True)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433"]
)
def test_this_host_is_asked_only_where_the_settings_allow_it(server: _Server, host: str) -> None:
    server.seen.clear()
    refused = fetch(f"http://{host}:{server.server_port}/data", private=False)
    assert (refused.ok, server.seen) == (False, [])


def test_a_tool_that_was_told_nothing_of_private_addresses_asks_none(server: _Server) -> None:
    async def scene() -> Report:
        return await Fetch().run({"url": at(server, "/data")}, lambda text: None)

    server.seen.clear()
    assert "private network" in asyncio.run(scene()).text
    assert server.seen == []


def test_an_address_with_tls_is_checked_like_any_other(server: _Server) -> None:
    url = at(server, "/data").replace("http:", "https:")
    with pytest.raises(fetch_call.CallError, match="private network"):
        fetch_call.fetch(url, private=False)


def test_the_certificate_and_the_name_of_a_server_are_verified(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[object] = []

    def wrap(context: ssl.SSLContext, plain: socket.socket, server_hostname: str) -> ssl.SSLSocket:
        verified.extend([context.verify_mode, context.check_hostname, server_hostname])
        plain.close()
        raise OSError("no further")

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap)
    with pytest.raises(fetch_call.CallError, match="no further"):
        fetch_call.fetch(f"https://localhost:{server.server_port}/data", private=True)
    assert verified == [ssl.CERT_REQUIRED, True, "localhost"]


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


class _Network:
    """Names have these addresses, and sockets note where they would have connected to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
        self.asked: list[str] = []
        self.refuses: set[str] = set()
        self.sockets: list[socket.socket] = []
        network = self

        class Socket(socket.socket):
            def connect(self, address: Any) -> None:
                network.asked.append(address[0])
                network.sockets.append(self)
                if address[0] in network.refuses:
                    raise ConnectionRefusedError(111, f"{address[0]} refuses")

        addresses = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, 80)) for each in found]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        monkeypatch.setattr(socket, "socket", Socket)


def test_a_public_address_is_asked_at_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks the real one."""
    network = _Network(monkeypatch, "93.184.215.14")
    with fetch_call._connect("example.org", 80, private=False) as connection:
        # Less than the whole call may take: its process says what was wrong.
        assert connection.gettimeout() == 20
    assert network.asked == ["93.184.215.14"]


def test_the_next_address_of_a_name_is_asked_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _Network(monkeypatch, "93.184.215.14", "93.184.215.15")
    network.refuses = {"93.184.215.14"}
    with fetch_call._connect("example.org", 80, private=False):
        assert network.asked == ["93.184.215.14", "93.184.215.15"]
        assert [each.fileno() < 0 for each in network.sockets] == [True, False]
    network.refuses.add("93.184.215.15")
    with pytest.raises(ConnectionRefusedError, match=r"93\.184\.215\.15 refuses"):
        fetch_call._connect("example.org", 80, private=False)


def test_a_private_address_among_those_of_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _Network(monkeypatch, "93.184.215.14", "10.0.0.1")
    network.refuses = {"93.184.215.14"}
    with pytest.raises(ValueError, match="private network"):
        fetch_call._connect("example.org", 80, private=False)
    assert network.asked == ["93.184.215.14"]


def test_a_name_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _Network(monkeypatch)
    with pytest.raises(OSError, match=r"example\.org has no address"):
        fetch_call._connect("example.org", 80, private=False)


@pytest.mark.parametrize("arguments", [{}, {"url": ""}, {"url": "x" * 4001}, {"url": "x", "method": "POST"}])
def test_wrong_arguments_are_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        asyncio.run(Fetch().run(arguments, lambda text: None))
