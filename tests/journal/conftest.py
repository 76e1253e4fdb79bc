"""A journal in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.journal.contract import Keeper
from supervisor.journal.journal import Journal
from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.server_journal import ServerJournal
from tests import postgres_cluster
from tests.cutting_proxy import CuttingProxy
from tests.journal.server import Server, replica_comes
from tests.memory_journal import MemoryJournal
from tests.postgres_cluster import Cluster

# For tests of what every journal reads, and not only the contract of a few reads.
every_journal = pytest.mark.parametrize("journal", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal | ServerJournal]:
    """A file, if the test does not ask for `every_journal`."""
    opened: Journal | ServerJournal
    if getattr(request, "param", "sqlite") == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.url(cluster.new_schema())
        opened = ServerJournal.open(url, Host("here", "here"), tmp_path / "supervisor.lock")
    else:
        opened = open_in(tmp_path)
    yield opened
    opened.close()


class Shelf:
    """Where a journal of one kind is opened, for one life after the other."""

    def __init__(self, kind: str, folder: Path, url: str = "") -> None:
        self._kind = kind
        self._folder = folder
        self.url = url
        self._memory: MemoryJournal | None = None
        self.opened: Keeper | None = None

    def open(self) -> Keeper:
        """The next life; the one before is over."""
        self.close()
        if self._kind == "sqlite":
            self.opened = open_in(self._folder)
        elif self._kind == "postgres":
            self.opened = ServerJournal.open(self.url, Host("here", "here"), self._folder / "supervisor.lock")
        elif self._memory is None:
            self.opened = self._memory = MemoryJournal()
        else:
            self._memory.new_life()
            self.opened = self._memory
        return self.opened

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()
            self.opened = None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server for all tests of this process; each test has a schema of its own."""
    with postgres_cluster.running() as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """Every kind of journal there is; another one is held to the contract by adding its name."""
    url = ""
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.url(cluster.new_schema())
    shelf = Shelf(request.param, tmp_path, url)
    yield shelf
    shelf.close()


def open_in(folder: Path) -> Journal:
    return Journal.open(folder / "journal.db", folder / "supervisor.lock")


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    with CuttingProxy(cluster.port) as proxy:
        server = Server(cluster, proxy, tmp_path)
        yield server
        server.close()


@pytest.fixture(scope="module")
def restless() -> Iterator[Cluster]:
    """A server that tests stop and configure; what it acknowledges is on disk."""
    with postgres_cluster.running(fsync="on") as cluster:
        yield cluster


@pytest.fixture
def restless_server(restless: Cluster, tmp_path: Path) -> Iterator[Server]:
    with CuttingProxy(restless.port) as proxy:
        server = Server(restless, proxy, tmp_path)
        yield server
        server.close()


@pytest.fixture
def absent_replica(restless_server: Server) -> Iterator[Server]:
    """Every commit waits for a synchronous replica that is not there, until the setting is reset."""
    server = restless_server
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
    yield server
    replica_comes(server)
