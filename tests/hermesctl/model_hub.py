"""A model hub on loopback, as far as its library asks for a file: silent, without it, or with another."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Manner = Literal["silent", "without it", "other file"]
_CONTENT = b"something else"


@contextmanager
def hub(manner: Manner) -> Iterator[str]:
    """Yields its address."""
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(_CONTENT)

        def do_HEAD(self) -> None:
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            if manner == "silent":
                closing.wait()
                return
            self.send_response(404 if manner == "without it" else 200)
            if manner == "without it":
                self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("ETag", '"1"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(len(_CONTENT)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the tests read what the command says."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
