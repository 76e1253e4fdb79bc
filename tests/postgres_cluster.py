"""A real PostgreSQL server in a temporary folder, on a unix socket and a port of loopback.

The server is a child of the test process and ends with it, however that ends. As root it runs as Debian's
user `postgres`, because it refuses to run as root.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.waiting import until

USER = "hermes"
# The variable with the folder of the clusters of one run. The first of them is the template of all others.
FOLDER = "HERMES_TEST_POSTGRES"
# A file system in memory. On a disk the many small files of a schema cost more than what is done with them.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES_MIN = 2 << 30
_NAMES = count(1)


@cache
def programs() -> Path | None:
    """The folder of initdb and postgres: Debian has one for each version and none of them on the path."""
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    if found:
        # A link to it may stand alone; the others are beside the program itself.
        return Path(found).resolve().parent
    return debian[-1].parent if debian else None


def require() -> None:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: `make programs` installs it where it may")


def folder_of_run() -> str:
    """Make the folder for FOLDER, in memory where there is room for some clusters."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES_MIN
    folder = tempfile.mkdtemp(prefix="hermes-pg-", dir=_MEMORY if has_room else None)
    os.chmod(folder, 0o711)
    return folder


class Cluster:
    """`folder` is private to the server's user. Settings are those of the server's command line."""

    def __init__(self, parent: str | None = None, **settings: str) -> None:
        require()
        self._settings = {"fsync": "off", "max_connections": "60"} | settings
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-pg-", dir=parent or os.environ.get(FOLDER)))
        self.as_user: list[str] = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.data = self.folder / "data"
        self.port = 0
        self._server: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Copy the first cluster of this run: initdb takes ten times as long."""
        of_run = os.environ.get(FOLDER)
        template = Path(of_run, "template") if of_run else None
        if template is not None and template.exists():
            _copy(template, self.data)
            return
        self.run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        if template is not None:
            own = template.with_name(f"template-{os.getpid()}")
            _copy(self.data, own)
            # It has its name when it is whole. Another process may have been first.
            with suppress(OSError):
                own.rename(template)

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the server as its user, and return its output."""
        folder = programs()
        assert folder is not None
        done = subprocess.run(
            [*self.as_user, str(folder / program), *arguments],
            cwd="/",
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self) -> None:
        """Returns when the server takes connections. It keeps its port over a restart."""
        folder = programs()
        assert folder is not None
        self.port = self.port or free_port()
        settings = self._settings | {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        # SIGQUIT is an immediate shutdown.
        dies_along = ["setpriv", "--pdeathsig", "QUIT"] if not self.as_user else [*self.as_user]
        if self.as_user:
            dies_along += ["--pdeathsig", "QUIT"]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [*dies_along, str(folder / "postgres"), "-D", str(self.data), *options],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            )
        until(self._answers, 60, 0.02)

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            with psycopg.connect(self.url(), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False

    def stop(self, mode: str = "fast") -> None:
        """As `pg_ctl stop -m MODE`; immediate is a crash of the server."""
        if self._server is not None:
            self.run("pg_ctl", "stop", "-D", str(self.data), "-m", mode, "-w")
            self._server.wait(60)
            self._server = None

    def promote(self) -> None:
        """Returns when a replica takes writes."""
        self.run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def remove(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, schema: str = "", port: int = 0) -> str:
        """By the unix socket; with a port by loopback, where a proxy may stand between."""
        options = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        host = "127.0.0.1" if port else quote(str(self.folder), safe="")
        return f"postgresql://{USER}@/postgres?host={host}&port={port or self.port}{options}"

    def new_schema(self) -> str:
        """Make an empty schema for one test, and return its name."""
        name = f"test_{os.getpid()}_{next(_NAMES)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return name


@contextmanager
def running(**settings: str) -> Iterator[Cluster]:
    cluster = Cluster(**settings)
    try:
        cluster.make()
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


@contextmanager
def replica_of(primary: Cluster, is_synchronous: bool = True) -> Iterator[Cluster]:
    """A replica that is connected. With `is_synchronous`, every commit of the primary waits for it."""
    replica = Cluster(fsync="on")
    try:
        source = ("-h", str(primary.folder), "-p", str(primary.port), "-U", USER)
        replica.run("pg_basebackup", "-D", str(replica.data), *source, "-R", "-X", "stream", "-c", "fast")
        replica.start()
        with psycopg.connect(primary.url(), autocommit=True) as connection:
            if is_synchronous:
                # After the copy was made: the replica itself waits for none when it is promoted.
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
            wanted = "sync" if is_synchronous else "async"
            connected = "SELECT 1 FROM pg_stat_replication WHERE sync_state = %s AND state = 'streaming'"
            until(lambda: connection.execute(connected, (wanted,)).fetchone())
        yield replica
    finally:
        replica.remove()


def _copy(source: Path, target: Path) -> None:
    """With the owner of each file, who is not root."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def free_port() -> int:
    """A port that is free now; the server binds it a moment later."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
