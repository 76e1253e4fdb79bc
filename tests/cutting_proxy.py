"""A TCP proxy of loopback that cuts connections at a chosen moment, as a network does.

It passes everything on until `cut` names what happens to the next batch:

    before    nothing of it reaches the server
    halfway   the server gets the first half and then the end of the connection
    sent      the server gets it whole; the client gets no answer
    answer    as `sent`, but the cut comes only when the server has answered that it committed or read
    late      the server gets it whole, but only when `deliver` is called
"""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Literal

Cut = Literal["before", "halfway", "sent", "answer", "late"]
# The end of the server's answer to a pipeline in PostgreSQL's protocol, and the message that asks for it.
_READY = b"Z\x00\x00\x00\x05"
_SYNC = b"S\x00\x00\x00\x04"
_QUERY = b"Q"
_BYTES = 65536


class CuttingProxy:
    """Threads end with their connections. New ones go to the port `target`, which may change."""

    def __init__(self, port: int) -> None:
        self.target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._next: Cut | None = None
        self._late: list[tuple[socket.socket, bytes]] = []
        self._sockets: list[socket.socket] = []
        self._answered = threading.Event()
        self.cuts = 0
        self.is_away = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "CuttingProxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cut(self, how: Cut) -> None:
        """Decide what happens to the next query or batch that a client sends."""
        with self._lock:
            self._next = how

    def deliver(self) -> None:
        """Send what came late to the server, and wait for its answer."""
        for server, data in self._late:
            self._answered.clear()
            server.sendall(data)
            assert self._answered.wait(30), "the server did not answer what came late"
            _close(server)
        self._late.clear()

    def drop(self) -> None:
        """Cut every connection that is open now."""
        for each in self._sockets:
            _close(each)

    def close(self) -> None:
        _close(self._listener)
        self.drop()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_away:
                    _close(client)
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    _close(client)
                    continue
                self._sockets += (client, server)
                swallowing = threading.Event()
                for pump in (self._up, self._down):
                    threading.Thread(target=pump, args=(client, server, swallowing), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket, swallowing: threading.Event) -> None:
        """From the client to the server."""
        with suppress(OSError):
            while data := client.recv(_BYTES):
                with self._lock:
                    # The first message of a connection has no type; it is passed on.
                    is_query = not data.startswith(b"\x00")
                    how, self._next = (self._next, None) if is_query else (None, self._next)
                if how is not None:
                    data = _whole(data, client)
                    self._cut(how, data, client, server, swallowing)
                    if how != "answer":
                        return
                else:
                    server.sendall(data)
        _close(client, server)

    def _cut(
        self, how: Cut, data: bytes, client: socket.socket, server: socket.socket, swallowing: threading.Event
    ) -> None:
        self.cuts += 1
        match how:
            case "before":
                _close(client, server)
            case "halfway":
                server.sendall(data[: len(data) // 2])
                _close(client, server)
            case "sent":
                _close(client)
                server.sendall(data)
            case "answer":
                swallowing.set()
                server.sendall(data)
            case "late":
                self._late.append((server, data))
                _close(client)

    def _down(self, client: socket.socket, server: socket.socket, swallowing: threading.Event) -> None:
        """From the server to the client."""
        swallowed = b""
        with suppress(OSError):
            while data := server.recv(_BYTES):
                if any(server is each for each, _ in self._late):
                    self._answered.set()
                elif swallowing.is_set():
                    swallowed += data
                    if _READY in swallowed:
                        break
                else:
                    client.sendall(data)
        _close(client, server)


def _whole(data: bytes, client: socket.socket) -> bytes:
    """Read until the query or the pipeline ends, or the connection."""
    while not _is_whole(data) and (more := client.recv(_BYTES)):
        data += more
    return data


def _is_whole(data: bytes) -> bool:
    """A query without parameters is one message, whose length counts all but its type; others end in Sync."""
    if data.startswith(_QUERY):
        return len(data) > int.from_bytes(data[1:5])
    return _SYNC in data


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
