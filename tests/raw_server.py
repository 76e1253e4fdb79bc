"""A server on loopback that says what a test writes, byte by byte; HTTP or not."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# More than the header of a request and its body here.
_REQUEST_BYTES_MAX = 1024 * 1024


class RawServer:
    """`heard` is what each connection has sent first."""

    def __init__(self, listener: socket.socket) -> None:
        self.heard: list[bytes] = []
        self.port: int = listener.getsockname()[1]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def raw_server(parts: Callable[[], Iterator[bytes]]) -> Iterator[RawServer]:
    """Answers every request with these parts; a client that has left ends them."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(listener)
    threads: list[threading.Thread] = []
    closing = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            server.heard.append(connection.recv(_REQUEST_BYTES_MAX))
            for part in parts():
                if closing.is_set():
                    return
                connection.sendall(part)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=answer, args=(connection,)))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield server
    finally:
        closing.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for thread in threads:
            thread.join()


def dripping(first: bytes, again: bytes, pause_seconds: float = 0.1) -> Iterator[bytes]:
    """A little at a time, without end."""
    yield first
    while True:
        time.sleep(pause_seconds)
        yield again
