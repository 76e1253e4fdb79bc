"""The parts of a PostgreSQL address that matter to cells: where the server listens, for which role.

The driver reads the address itself; this is for what must be known without it.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

_PORT = 5432
# The folders in which a server listens by default; which of them depends on who built it.
_SOCKET_FOLDERS = ("/run/postgresql", "/tmp")
# A socket in a folder that other programs use is hidden alone.
_SHARED_FOLDERS = ("/tmp", "/run", "/var/run", "/var/tmp")
_SECRETS = (".pgpass", ".postgresql/postgresql.key")


@dataclass(frozen=True)
class DatabaseAddress:
    """`sockets` are files, `ports` are pairs of host and port."""

    sockets: tuple[str, ...]
    ports: tuple[tuple[str, int], ...]
    role: str
    database: str

    @property
    def hidden(self) -> tuple[Path, ...]:
        """Return what no cell may see: the folders of sockets, because a new start makes a new socket."""
        paths = [Path(each) for each in self.sockets]
        return tuple(path if str(path.parent) in _SHARED_FOLDERS else path.parent for path in paths)


def address_of(url: str) -> DatabaseAddress:
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    user, _, listed = parts.netloc.rpartition("@")
    named = [_host_and_port(each) for each in listed.split(",")]
    hosts = query["host"].split(",") if "host" in query else [host for host, _ in named]
    ports = query["port"].split(",") if "port" in query else [port for _, port in named]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    sockets: list[str] = []
    lines: list[tuple[str, int]] = []
    for host, text in zip(hosts, ports, strict=False):
        port = int(text) if text.isdecimal() else _PORT
        if host and not host.startswith("/"):
            lines.append((host, port))
        else:
            folders = (host,) if host else _SOCKET_FOLDERS
            sockets += [f"{folder}/.s.PGSQL.{port}" for folder in folders]
    role = query.get("user") or unquote(user) or _own_user()
    database = query.get("dbname") or unquote(parts.path.lstrip("/")) or role
    return DatabaseAddress(tuple(sockets), tuple(lines), role, database)


def driver_secrets() -> tuple[Path, ...]:
    """Return the files in which the driver looks for a password or a key by itself."""
    named = [Path("~").expanduser() / each for each in _SECRETS]
    named += [Path(os.environ[name]) for name in ("PGPASSFILE", "PGSSLKEY") if os.environ.get(name)]
    return tuple(path for path in named if path.exists())


def _own_user() -> str:
    """Return the role that the driver uses when none is named."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _host_and_port(text: str) -> tuple[str, str]:
    host, _, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "")
    return unquote(host.strip("[]")), port
