"""The journal's database, asked for a connection without a password by the first messages of its protocol.

The server answers the startup message with what it wants: a password, or nothing. Its rules may differ with
and without encryption, so both are tried over TCP; and with the role, so that of the server's owner is tried
besides that of the journal. The connection ends when the server would take a query.
"""

import errno
import socket
import ssl
import struct
from itertools import product

from ipc.isolation import Targets
from worker.attacks.outcome import Outcome, any_of

_CONNECT_SECONDS = 3.0
_PROTOCOL = 196608
_ENCRYPTED = struct.pack("!ii", 8, 80877103)
_IS_OK = 0
_OWNER = "postgres"


def database(targets: Targets) -> Outcome:
    def ask(address: str) -> None:
        refusals: list[OSError] = []
        for role, is_encrypted in product((targets.role, _OWNER), (False, True)):
            if is_encrypted and address.startswith("/"):
                continue  # a socket of the host has no encryption
            try:
                _open(address, is_encrypted, role, targets.database)
            except OSError as error:
                refusals.append(error)
            else:
                return
        raise refusals[0]

    return any_of(targets.databases, ask, "the journal is a file")


def _open(address: str, is_encrypted: bool, role: str, name: str) -> None:
    """OSError with the reason, unless the server lets the role in."""
    with _connected(address) as plain:
        plain.settimeout(_CONNECT_SECONDS)
        line = _encrypted(plain) if is_encrypted else plain
        body = struct.pack("!i", _PROTOCOL) + b"".join(
            part.encode() + b"\0" for part in ("user", role, "database", name, "")
        )
        line.sendall(struct.pack("!i", len(body) + 4) + body)
        while (found := _message(line))[0] != b"Z":  # ready for a query
            if found[0] == b"E":
                raise PermissionError(errno.EACCES, "the server refuses the role from here")
            if found[0] == b"R" and struct.unpack("!i", found[1][:4])[0] != _IS_OK:
                raise PermissionError(errno.EACCES, "the server asks for a password")


def _message(line: socket.socket) -> tuple[bytes, bytes]:
    """Read the kind and the content of one message."""
    head = _read(line, 5)
    return head[:1], _read(line, struct.unpack("!i", head[1:])[0] - 4)


def _connected(address: str) -> socket.socket:
    if not address.startswith("/"):
        host, _, port = address.rpartition(":")
        return socket.create_connection((host, int(port)), _CONNECT_SECONDS)
    line = socket.socket(socket.AF_UNIX)
    try:
        line.connect(address)
    except OSError:
        line.close()
        raise
    return line


def _encrypted(line: socket.socket) -> socket.socket:
    line.sendall(_ENCRYPTED)
    if _read(line, 1) != b"S":
        raise PermissionError(errno.EACCES, "the server has no encryption")
    # An attacker does not care whose certificate it is.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(line)


def _read(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = line.recv(count - len(found))
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, "the server ends the connection")
        found += part
    return found
