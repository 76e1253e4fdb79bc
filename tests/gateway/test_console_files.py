"""The files of the console: a fixed set, each with its type; compressed on request, kept by browsers."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.console_files import FOLDER, POLICY
from tests.gateway.gateway_process import GatewayProcess, error_of, lone_places

AT_ROOT = {"index.html": "/", "service-worker.js": "/service-worker.js"}
AT_ROOT["manifest.webmanifest"] = "/manifest.webmanifest"
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
}
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Without a supervisor: the page appears, and can say so."""
    with GatewayProcess(lone_places(tmp_path_factory.mktemp("home"))) as gateway:
        yield gateway


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_served_with_its_type_and_policy_to_anyone(gateway: GatewayProcess, file: Path) -> None:
    client = gateway.client("")
    answer = client.get(AT_ROOT.get(file.name, f"/console/{file.name}"))
    assert (answer.status_code, answer.content) == (200, file.read_bytes())
    assert answer.headers["Content-Type"].partition(";")[0] == TYPES[file.suffix]
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_file_is_compressed_only_for_those_that_take_it(gateway: GatewayProcess) -> None:
    client = gateway.client("")
    packed = client.get("/", headers={"Accept-Encoding": "br, gzip;q=0.8"})
    plain = client.get("/", headers={"Accept-Encoding": "gzip;q=0, identity"})
    assert (packed.headers["Content-Encoding"], "Content-Encoding" in plain.headers) == ("gzip", False)
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])
    assert packed.content == plain.content
    assert packed.headers["ETag"] != plain.headers["ETag"]
    assert packed.headers["Vary"] == "accept-encoding"


def test_a_browser_that_has_the_file_is_told_so(gateway: GatewayProcess) -> None:
    client = gateway.client("")
    etag = client.get("/").headers["ETag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        answer = client.get("/", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["ETag"] == etag
    assert client.get("/", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/console/", "/console/index.html", "/console/nothing.js", "/console/..%2F__init__.py",
        "/console/modules", "/console/app.js", "/console/modules%2Fapp.js",
        "/console/%2e%2e%2ftokens.py", "/console/%2Fetc%2Fpasswd", "/console/.", "/console/..",
    ],
)  # fmt: skip
def test_nothing_else_is_a_file_of_the_console(gateway: GatewayProcess, path: str) -> None:
    """As bytes on the wire: clients normalise paths."""
    host, _, port = gateway.address.partition("://")[2].rpartition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(request.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 404 ")


def test_a_query_is_refused_so_that_no_link_carries_a_secret_here(gateway: GatewayProcess) -> None:
    assert error_of(gateway.client("").get("/?code=ABCD-EFGH")) == (400, "invalid")
