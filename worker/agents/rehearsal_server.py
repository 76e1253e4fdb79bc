"""A model server for the rehearsal of an agent: on the loopback, in a thread, with one fixed answer."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Iterator

# Long for a loopback turn even on a machine that is swapping; longer is a failed start.
SECONDS_MAX = 30
WORDS = ("All", " is", " well", ".")
_POLL_SECONDS = 0.01


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Gives the base URL; at the end no socket or thread of it is left."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="rehearsal")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join(SECONDS_MAX)


class _Server(socketserver.TCPServer):
    """Not http.server's: that one looks up its own name in DNS, which can take seconds."""

    timeout = SECONDS_MAX


class _Handler(socketserver.StreamRequestHandler):
    """Reads one request and streams one answer: as much HTTP as one client needs."""

    timeout = SECONDS_MAX

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline(65_536)) not in (b"\r\n", b"\n", b""):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        self.rfile.read(length)
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for event in _events():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")


def _events() -> Iterator[bytes]:
    for word in WORDS:
        yield _event({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]})
    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield _event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}})
    yield b"data: [DONE]\n\n"


def _event(part: dict[str, object]) -> bytes:
    head = {"id": "rehearsal", "object": "chat.completion.chunk", "created": 0, "model": "rehearsal"}
    return f"data: {json.dumps(head | part)}\n\n".encode()
