"""The files of the web console: read and compressed once, when the gateway starts.

A request selects a file by its name in a dictionary, so no path is ever made of what a client sent. Browsers
keep the files and ask each time whether they have changed (ETag); so a page and its scripts are of one
version after an update.
"""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import HttpError
from gateway.exchange import Exchange, Headers
from gateway.parts import Parts

FOLDER = Path(__file__).parent / "console"
INDEX = "index.html"
# At the root: a service worker rules the paths below its own, and a manifest names what is beside it.
SERVICE_WORKER = "service-worker.js"
MANIFEST = "manifest.webmanifest"
_AT_ROOT = frozenset({INDEX, SERVICE_WORKER, MANIFEST})

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}
# Scripts, styles and requests of the gateway alone, and no script makes markup of text. The one policy of
# trusted types is for the address of the service worker, which cannot be registered without. A service worker
# has the policy of its own script, therefore every file is sent with it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types service-worker"
)


@dataclass(frozen=True)
class ConsoleFile:
    media_type: str
    etag: str
    body: bytes
    # Empty when it would not be shorter.
    compressed: bytes

    async def answer(self, exchange: Exchange) -> None:
        is_compressed = bool(self.compressed) and _takes_gzip(exchange.header(b"accept-encoding"))
        etag = f'"{self.etag}-gzip"' if is_compressed else f'"{self.etag}"'
        headers: Headers = (
            (b"etag", etag.encode()),
            (b"cache-control", b"no-cache"),
            (b"vary", b"accept-encoding"),
            (b"content-security-policy", POLICY.encode()),
        )
        if _is_known(etag, exchange.headers(b"if-none-match")):
            await exchange.begin(304, headers)
            await exchange.send_part(b"", more=False)
            return
        headers += ((b"content-type", self.media_type.encode()),)
        if is_compressed:
            headers += ((b"content-encoding", b"gzip"),)
        await exchange.answer_bytes(200, self.compressed if is_compressed else self.body, headers)


class ConsoleFiles:
    """The routes of the console's files. A file whose suffix has no type here is none of them."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {path.name: _read(path) for path in folder.iterdir() if path.suffix in _TYPES}

    async def get_index(self, parts: Parts, exchange: Exchange) -> None:
        await self._answer(exchange, INDEX)

    async def get_service_worker(self, parts: Parts, exchange: Exchange) -> None:
        await self._answer(exchange, SERVICE_WORKER)

    async def get_manifest(self, parts: Parts, exchange: Exchange) -> None:
        await self._answer(exchange, MANIFEST)

    async def get_file(self, parts: Parts, exchange: Exchange) -> None:
        name = exchange.parameters["file"]
        await self._answer(exchange, "" if name in _AT_ROOT else name)

    async def _answer(self, exchange: Exchange, name: str) -> None:
        exchange.query()
        file = self._files.get(name)
        if file is None:
            raise HttpError(404, "the console has no such file", "open the gateway's address in a browser")
        await file.answer(exchange)


def _read(path: Path) -> ConsoleFile:
    body = path.read_bytes()
    # Without a time, so that the same file is the same bytes after every start.
    compressed = gzip.compress(body, mtime=0)
    digest = hashlib.sha256(body).hexdigest()[:32]
    return ConsoleFile(_TYPES[path.suffix], digest, body, compressed if len(compressed) < len(body) else b"")


def _takes_gzip(accepted: str) -> bool:
    for choice in accepted.lower().split(","):
        coding, _, quality = choice.partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _is_known(etag: str, lists: list[str]) -> bool:
    """A proxy that compresses marks the tag as weak; the file is the same."""
    tags = {tag.strip().removeprefix("W/") for tags in lists for tag in tags.split(",")}
    return etag in tags or "*" in tags
