"""`doctor` about the database of the journal: the line to it, its clock, its standby, and who gets in."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermesctl.doctor import database_checks
from hermesctl.doctor.finding import Finding, Surroundings
from ipc.places import find_places
from supervisor.config.database_address import address_of
from supervisor.journal.postgres.server_survey import survey
from tests import postgres_cluster
from tests.postgres_cluster import Cluster
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with postgres_cluster.running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Cluster]:
    """A server with a certificate that it has signed itself."""
    made = Cluster(ssl="on", ssl_cert_file="cert.pem", ssl_key_file="key.pem")
    try:
        made.make()
        for name in ("cert.pem", "key.pem"):
            (made.data / name).touch(0o600)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", made.data / "key.pem",
             "-out", made.data / "cert.pem"],
            check=True, capture_output=True,
        )  # fmt: skip
        owner = made.data.stat()
        for name in ("cert.pem", "key.pem"):
            os.chown(made.data / name, owner.st_uid, owner.st_gid)
        made.start()
        yield made
    finally:
        made.remove()


def around(tmp_path: Path, facts: dict[str, Any], cell: str = "pidns") -> Surroundings:
    return Surroundings(find_places(str(tmp_path)), {"database": facts, "cell": {"kind": cell}})


def judged(check: Any, tmp_path: Path, facts: dict[str, Any], **others: Any) -> Finding:
    found = check(around(tmp_path, facts | others))
    assert isinstance(found, Finding)
    return found


def elsewhere(facts: dict[str, Any]) -> dict[str, Any]:
    """The same line, to a server that is not on this host."""
    return facts | {"host": "db.example", "is_socket": False}


def test_a_file_has_no_lines_about_a_database(tmp_path: Path) -> None:
    nothing = Surroundings(find_places(str(tmp_path)), {"database": None})
    checks = (
        database_checks.database,
        database_checks.database_clock,
        database_checks.standby,
        database_checks.database_access,
    )
    assert [check(nothing) for check in checks] == [None] * 4


def test_a_database_that_is_away_is_named_once(tmp_path: Path) -> None:
    facts = survey("postgresql://127.0.0.1:1/nothing", "")
    found = judged(database_checks.database, tmp_path, facts)
    assert found.verdict == "bad"
    assert "does not answer" in found.fact
    assert database_checks.standby(around(tmp_path, facts)) is None


def test_a_line_on_this_host_needs_no_encryption(tmp_path: Path, cluster: Cluster) -> None:
    for url in (cluster.url(), cluster.url(port=cluster.port)):
        found = judged(database_checks.database, tmp_path, survey(url, ""))
        assert found.verdict == "good"
        assert "on this host" in found.fact


def test_a_line_to_another_host_is_encrypted_or_named(
    tmp_path: Path, cluster: Cluster, encrypted: Cluster
) -> None:
    plain = survey(cluster.url(port=cluster.port), "")
    found = judged(database_checks.database, tmp_path, elsewhere(plain))
    assert (found.verdict, "not encrypted" in found.fact) == ("bad", True)
    unchecked = survey(f"{encrypted.url(port=encrypted.port)}&sslmode=require", "")
    found = judged(database_checks.database, tmp_path, elsewhere(unchecked))
    assert (found.verdict, "any server could answer" in found.fact) == ("care", True)
    root = encrypted.data / "cert.pem"
    checked = survey(f"{encrypted.url(port=encrypted.port)}&sslmode=verify-full&sslrootcert={root}", "")
    found = judged(database_checks.database, tmp_path, elsewhere(checked))
    assert (found.verdict, "certificate is checked" in found.fact) == ("good", True)


def test_clocks_that_differ_are_named(tmp_path: Path, cluster: Cluster) -> None:
    facts = survey(cluster.url(), "")
    assert abs(facts["skew_seconds"]) < 1
    assert judged(database_checks.database_clock, tmp_path, facts).verdict == "good"
    for skew, words in ((7.0, "7.0 s ahead of"), (-7.0, "7.0 s behind")):
        found = judged(database_checks.database_clock, tmp_path, facts, skew_seconds=skew)
        assert (found.verdict, words in found.fact) == ("care", True)


def test_a_server_without_a_synchronous_standby_is_named(tmp_path: Path, cluster: Cluster) -> None:
    found = judged(database_checks.standby, tmp_path, survey(cluster.url(), ""))
    assert (found.verdict, "none is synchronous" in found.fact) == ("care", True)
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        connection.execute("SELECT pg_reload_conf()")
        until(lambda: survey(cluster.url(), "")["standby_names"] == "absent")
        facts = survey(cluster.url(), "")
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
    # No other connection can be seen: whether the standby is there is not known.
    assert facts["synchronous"] is None
    assert judged(database_checks.standby, tmp_path, facts).verdict == "good"
    found = judged(database_checks.standby, tmp_path, facts, synchronous=0)
    assert (found.verdict, "commits wait" in found.fact) == ("bad", True)


def test_a_database_that_asks_no_password_is_named(tmp_path: Path, cluster: Cluster) -> None:
    facts = survey(cluster.url(), "")
    assert facts["open"] == [f"127.0.0.1:{cluster.port}"]
    assert judged(database_checks.database_access, tmp_path, facts).verdict == "bad"
    assert judged(database_checks.database_access, tmp_path, facts, open=[]).verdict == "good"
    weaker = database_checks.database_access(around(tmp_path, facts | {"open": []}, cell="sweep"))
    assert weaker is not None
    assert weaker.verdict == "care"


@pytest.mark.parametrize(
    ("url", "sockets", "ports", "role", "database"),
    [
        ("postgresql://me@db.example/journal", (), (("db.example", 5432),), "me", "journal"),
        ("postgresql://me@db.example:6000", (), (("db.example", 6000),), "me", "me"),
        ("postgresql://me@[::1]:6000/j", (), (("::1", 6000),), "me", "j"),
        ("postgresql://me@[::1]/j", (), (("::1", 5432),), "me", "j"),
        ("postgresql://me@a:1,b:2/j", (), (("a", 1), ("b", 2)), "me", "j"),
        ("postgresql://me@%2Frun%2Fpg/j", ("/run/pg/.s.PGSQL.5432",), (), "me", "j"),
        ("postgresql:///j?host=/run/pg&port=7&user=me", ("/run/pg/.s.PGSQL.7",), (), "me", "j"),
        ("postgresql:///j?user=me", ("/run/postgresql/.s.PGSQL.5432", "/tmp/.s.PGSQL.5432"), (), "me", "j"),
        ("postgresql:///?host=a,b&port=1,2&user=me&dbname=j", (), (("a", 1), ("b", 2)), "me", "j"),
        ("postgresql:///?host=a,b&port=9&user=me&dbname=j", (), (("a", 9), ("b", 9)), "me", "j"),
    ],
)
def test_an_address_is_read_as_the_driver_reads_it(
    url: str, sockets: tuple[str, ...], ports: tuple[tuple[str, int], ...], role: str, database: str
) -> None:
    found = address_of(url)
    assert (found.sockets, found.ports, found.role, found.database) == (sockets, ports, role, database)


def test_the_folder_of_a_socket_is_hidden_unless_other_programs_use_it() -> None:
    hidden = address_of("postgresql:///j?user=me").hidden
    assert [str(path) for path in hidden] == ["/run/postgresql", "/tmp/.s.PGSQL.5432"]
