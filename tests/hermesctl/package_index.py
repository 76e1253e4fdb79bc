"""A Python package index on loopback that serves small packages, or half of one and then nothing more."""

import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def wheel(package: str, version: str, members: dict[str, bytes]) -> bytes:
    """The smallest archive that pip takes for a package."""
    folder = f"{package.replace('-', '_')}-{version}.dist-info"
    described = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n".encode(),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/RECORD": b"",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, **described}.items():
            archive.writestr(name, data)
    return content.getvalue()


class Index:
    """What is served, by file name; a claimed size above the real one makes a download that stalls."""

    def __init__(self) -> None:
        self.wheels: dict[str, tuple[bytes, int]] = {}
        self.environment: dict[str, str] = {}
        self.closing = threading.Event()

    def add(self, package: str, version: str, content: bytes, claimed_bytes: int | None = None) -> None:
        name = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        self.wheels[name] = (content, claimed_bytes or len(content))


@contextmanager
def serving() -> Iterator[Index]:
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").rpartition("/")[2]
            if name in index.wheels:
                self._send("application/zip", *index.wheels[name])
                return
            wanted = [one for one in index.wheels if one.startswith(name.replace("-", "_") + "-")]
            page = "".join(f'<a href="/files/{one}">{one}</a>' for one in wanted).encode()
            self._send("text/html", page, len(page))

        def _send(self, kind: str, content: bytes, claimed_bytes: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(claimed_bytes))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
            if claimed_bytes > len(content):
                index.closing.wait()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the tests read what pip says."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    index.environment = only_from(server.server_address[1])
    try:
        yield index
    finally:
        index.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def only_from(port: int) -> dict[str, str]:
    """pip's settings that leave it nothing but this index, whatever the machine has configured."""
    return {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "NO_PROXY": "127.0.0.1",
    }
