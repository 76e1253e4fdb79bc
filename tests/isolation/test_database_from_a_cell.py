"""The journal's database from inside real cells: neither its socket nor its password leads in."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from ipc.isolation import Targets
from supervisor.journal.postgres.server_survey import survey
from tests.fake_model import FakeModel
from tests.isolation.surroundings import ROOT_USER, OwnedService, Trial, folder_of
from tests.postgres_cluster import USER, Cluster
from worker.attacks.database_attack import database

PASSWORD = "a password of the test"
# As Debian has it: who may use the socket is known by it, over the network a password is wanted.
ASKS = f"local all all trust\nhost all {USER} 127.0.0.1/32 scram-sha-256\n"


@contextmanager
def cluster_with(rules: str) -> Iterator[Cluster]:
    # Where a cell sees other files of the host: its memory is its own in any case.
    cluster = Cluster(tempfile.gettempdir())
    try:
        cluster.make()
        # Written over: the server of a test trusts all who reach it.
        (cluster.data / "pg_hba.conf").write_text(rules)
        cluster.start()
        # As the folder of a server that others use: rights keep no agent from the socket.
        cluster.folder.chmod(0o755)
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute(f"ALTER ROLE {USER} PASSWORD '{PASSWORD}'".encode())
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def asking() -> Iterator[Cluster]:
    with cluster_with(ASKS) as cluster:
        yield cluster


@pytest.fixture
def make(model: FakeModel) -> Iterator[Callable[..., OwnedService]]:
    with ExitStack() as made:

        def start(**tables: str) -> OwnedService:
            if os.geteuid() != 0:
                pytest.skip("the service of these tests runs as root")
            folder = made.enter_context(folder_of(ROOT_USER))
            (folder / "password").write_text(PASSWORD)
            (folder / "password").chmod(0o600)
            service = OwnedService(folder, ROOT_USER, model, workers="count = 1", **tables)
            made.enter_context(service)
            return service

        yield start


def seen(found: Trial, attack: str = "database") -> tuple[str, str]:
    (row,) = [row for row in found.report["attacks"] if row["attack"] == attack]
    return row["verdict"], row["seen"]


def journal(url: str, password_file: str = "") -> str:
    named = f'\npassword_file = "{password_file}"' if password_file else ""
    return f'url = "{url}"{named}'


@pytest.mark.parametrize("level", ["workspace", "home", "host"])
def test_h8_the_database_does_not_open_from_a_cell(
    make: Callable[..., OwnedService], asking: Cluster, level: str
) -> None:
    """By its socket, which lets the user of the service in without a password, and over the network."""
    url = asking.url(asking.new_schema())
    found = make(sandbox=f'level = "{level}"', journal=journal(url)).trial()
    assert (found.faults(), found.code) == ([], 0)
    assert found.report["level"] == level
    assert seen(found)[0] == "held"


@pytest.mark.parametrize("level", ["workspace", "host"])
def test_h8_the_password_file_is_in_no_view(
    make: Callable[..., OwnedService], asking: Cluster, level: str
) -> None:
    url = asking.url(asking.new_schema(), asking.port)
    found = make(sandbox=f'level = "{level}"', journal=journal(url, "../password")).trial()
    assert (found.faults(), found.code) == ([], 0)
    assert seen(found) == ("held", f"127.0.0.1:{asking.port}: the server asks for a password")
    assert seen(found, "keys")[0] == "held"


def test_a_database_that_asks_no_password_is_a_fault_that_is_named(
    make: Callable[..., OwnedService], asking: Cluster
) -> None:
    with cluster_with("local all all trust\nhost all all 127.0.0.1/32 trust\n") as trusting:
        service = make(journal=journal(trusting.url()))
        found = service.trial()
        assert found.code == 5
        assert seen(found) == ("open", f"127.0.0.1:{trusting.port}")
        lines = service.hermesctl("doctor").stdout.splitlines()
        assert any(line.startswith("✘ database access") and "asks no password" in line for line in lines)


def test_the_role_that_owns_the_server_is_tried_too(asking: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password in the environment of the caller is none that an agent has."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert survey(asking.url(), "")["open"] == []
    owner = f"{ASKS}host all postgres 127.0.0.1/32 trust\n"
    with cluster_with(owner) as careless:
        address = f"127.0.0.1:{careless.port}"
        targets = Targets(databases=(address,), role=USER, database="postgres")
        assert database(targets).verdict == "held", "it lets that role in, and has none"
        assert survey(careless.url(), "")["open"] == []
        with psycopg.connect(careless.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE postgres LOGIN")
        assert (database(targets).verdict, database(targets).seen) == ("open", address)
        assert survey(careless.url(), "")["open"] == [address]
    assert os.environ["PGPASSWORD"] == PASSWORD


def test_the_attack_opens_what_is_not_in_a_cell(asking: Cluster, tmp_path: Path) -> None:
    """Run outside any cell, by the same user: the socket lets it in."""
    path = f"{asking.folder}/.s.PGSQL.{asking.port}"
    found = database(Targets(databases=(path,), role=USER, database="postgres"))
    assert (found.verdict, found.seen) == ("open", path)
    asked = database(Targets(databases=(f"127.0.0.1:{asking.port}",), role=USER, database="postgres"))
    assert (asked.verdict, asked.seen) == (
        "held",
        f"127.0.0.1:{asking.port}: the server asks for a password",
    )
    missing = database(Targets(databases=(str(tmp_path / "socket"),), role=USER, database="postgres"))
    assert missing.verdict == "held"
    assert database(Targets()).verdict == "absent"
