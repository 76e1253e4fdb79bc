"""Sockets that a cell should not reach: of the user's programs, of the service, and of the network."""

import errno
import os
import socket
import stat
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from ipc.isolation import Targets
from worker.attacks.outcome import Outcome, absent, any_of, held, opened

_CONNECT_SECONDS = 3.0
_REFUSED = (401, 403)
# A stream first, as most are; the right kind shows only by the error of a wrong one.
_KINDS = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)


def systemd(targets: Targets) -> Outcome:
    return any_of(targets.systemd, _connect, "no systemd runs here")


def buses(targets: Targets) -> Outcome:
    return any_of(targets.buses, _connect, "no bus runs here")


def containers(targets: Targets) -> Outcome:
    return any_of(targets.containers, _connect, "no container engine runs here")


def key_agents(targets: Targets) -> Outcome:
    return any_of(targets.key_agents, _connect, "no such agent runs here")


def displays(targets: Targets) -> Outcome:
    return any_of(targets.displays, _connect, "there is no display here")


def terminals(targets: Targets) -> Outcome:
    return any_of(targets.terminals, _connect, "no tmux runs here")


def unix(targets: Targets) -> Outcome:
    return any_of(targets.unix, _connect, "no socket was opened for it")


def abstract(targets: Targets) -> Outcome:
    names = (targets.abstract,) if targets.abstract else ()
    return any_of(names, lambda name: _connect(f"\0{name}"), "no socket was opened for it")


def control(targets: Targets) -> Outcome:
    return any_of(targets.control, _connect, "no socket was named")


def worker_sockets(targets: Targets) -> Outcome:
    """Counts sockets that accept a tool's connection or are open in it; the worker is connected already."""
    if not targets.runtime:
        return absent("no folder was named")
    found = [path for path in _files(targets.runtime) if stat.S_ISSOCK(os.lstat(path).st_mode)]
    taken = [path for path in found if any_of((path,), _connect, "").verdict == "open"]
    inherited = [descriptor for descriptor in map(int, os.listdir("/proc/self/fd")) if _is_socket(descriptor)]
    seen = f"{len(taken)} of the {len(found)} in sight take a connection, {len(inherited)} are inherited"
    return opened(seen) if taken or inherited else held(seen)


def loopback(targets: Targets) -> Outcome:
    if not targets.port:
        return absent("no port was opened for it")
    try:
        socket.create_connection(("127.0.0.1", targets.port), _CONNECT_SECONDS).close()
    except OSError as error:
        return held(error.strerror or str(error))
    return opened("127.0.0.1 takes a connection")


def model(targets: Targets) -> Outcome:
    """Lists its models without a key."""
    if not targets.model:
        return absent("no embedded model serves")
    address = urlsplit(targets.model)
    line = HTTPConnection(address.hostname or "", address.port, timeout=_CONNECT_SECONDS)
    try:
        line.request("GET", f"{address.path.rstrip('/')}/models")
        status = line.getresponse().status
    except (OSError, HTTPException) as error:
        return held(str(error))
    finally:
        line.close()
    return held(f"HTTP {status}") if status in _REFUSED else opened(f"HTTP {status}")


def _connect(address: str) -> None:
    for kind in _KINDS:
        with socket.socket(socket.AF_UNIX, kind) as line:
            line.settimeout(_CONNECT_SECONDS)
            try:
                line.connect(address)
            except OSError as error:
                if kind == _KINDS[-1] or error.errno != errno.EPROTOTYPE:
                    raise
            else:
                return


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _files(folder: str) -> list[str]:
    return [os.path.join(above, name) for above, _, names in os.walk(folder) for name in names]
