"""A replica takes the place of the primary under load: nothing acknowledged is lost, or the loss is named."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermesctl.client import Client
from hermesctl.errors import CommandError
from ipc.messages import Accepted, Submit
from tests import postgres_cluster
from tests.cutting_proxy import CuttingProxy
from tests.fake_model import FakeModel
from tests.hosts.several import Hosts
from tests.postgres_cluster import USER, Cluster
from tests.service import Service
from tests.waiting import DEADLINE_SECONDS, until

HOLD = "[[silent]] hold"


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with postgres_cluster.running(fsync="on") as cluster:
        yield cluster


@pytest.fixture
def proxy(primary: Cluster) -> Iterator[CuttingProxy]:
    """The address that hosts know, as that of a load balancer."""
    with CuttingProxy(primary.port) as proxy:
        yield proxy


@pytest.fixture
def hosts(primary: Cluster, proxy: CuttingProxy, tmp_path: Path, model: FakeModel) -> Iterator[Hosts]:
    hosts = Hosts(tmp_path, model, primary.url(port=proxy.port))
    yield hosts
    hosts.close()


class Load:
    """A client that sends message after message, each until it is accepted."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self.accepted: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._thread.join(DEADLINE_SECONDS)

    def _run(self) -> None:
        client, number = Client(self._service.places), 0
        while not self._stopping.is_set():
            try:
                answer = client.ask(Submit("loaded", f"number {number}", f"key {number}", "queue"), Accepted)
            except CommandError:
                continue  # the same key again is the same message
            self.accepted.append(answer.message)
            number += 1
        client.close()

    def goes_on(self, more: int = 20) -> None:
        seen = len(self.accepted)
        until(lambda: len(self.accepted) >= seen + more, 60)


def switch(primary: Cluster, replica: Cluster, proxy: CuttingProxy) -> None:
    """The old primary lives, and its connections are ended while commits wait for the replica."""
    replica.promote()
    proxy.target = replica.port
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'hermes%'"
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        connection.execute(ended)


def sql(cluster: Cluster, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_a_promoted_synchronous_replica_has_all_that_was_acknowledged(
    hosts: Hosts, primary: Cluster, proxy: CuttingProxy
) -> None:
    with postgres_cluster.replica_of(primary) as replica:
        alpha = hosts.start("alpha")
        alpha.say("loaded", HOLD)
        with Load(alpha) as load:
            load.goes_on()
            switch(primary, replica, proxy)
            load.goes_on()
        found = [row[0] for row in sql(replica, "SELECT id FROM messages WHERE text LIKE 'number %'")]
        assert sorted(load.accepted) == sorted(set(load.accepted)), "each was accepted once"
        assert set(load.accepted) <= set(found)
        assert len(found) <= len(load.accepted) + 1, "one may be written and not acknowledged yet"
        seqs = [
            row[0] for row in sql(replica, "SELECT seq FROM events WHERE session = 'loaded' ORDER BY seq")
        ]
        assert seqs == list(range(1, len(seqs) + 1))
        assert alpha.status()["state"] == "ready"
        assert alpha.stop() == 0


def test_an_address_that_names_both_servers_leads_to_the_promoted_one(
    primary: Cluster, tmp_path: Path, model: FakeModel
) -> None:
    with postgres_cluster.replica_of(primary) as replica:
        ports = f"{primary.port},{replica.port}"
        hosts = Hosts(tmp_path, model, f"postgresql://{USER}@/postgres?host=127.0.0.1,127.0.0.1&port={ports}")
        alpha = hosts.start("alpha")
        alpha.say("loaded", HOLD)
        with Load(alpha) as load:
            load.goes_on()
            primary.stop("immediate")
            replica.promote()
            load.goes_on()
        found = {row[0] for row in sql(replica, "SELECT id FROM messages WHERE text LIKE 'number %'")}
        assert set(load.accepted) <= found
        hosts.close()


def test_what_an_asynchronous_replica_did_not_have_is_named(
    hosts: Hosts, primary: Cluster, proxy: CuttingProxy
) -> None:
    with postgres_cluster.replica_of(primary, is_synchronous=False) as replica:
        alpha = hosts.start("alpha")
        alpha.say("loaded", HOLD)
        with Load(alpha) as load:
            load.goes_on()
            cut_off(primary, replica)
            behind = len(load.accepted)
            load.goes_on()
        switch(primary, replica, proxy)
        assert alpha.process is not None
        until(lambda: not renewed(alpha))
        assert alpha.process.wait(DEADLINE_SECONDS) == 1
        assert "the database has lost" in alpha.log()
        (lost,) = [int(word) for word in alpha.log().partition("has lost ")[2].split()[:1]]
        assert lost >= len(load.accepted) - behind - 1
        alpha.start()
        (count,) = sql(replica, "SELECT count(*) FROM messages WHERE text LIKE 'number %'")[0]
        assert count < len(load.accepted)
        assert alpha.stop() == 0


def cut_off(primary: Cluster, replica: Cluster) -> None:
    """The replica gets nothing more, and does not know it."""
    with psycopg.connect(replica.url(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port=1 user={USER}'")
        connection.execute("SELECT pg_reload_conf()")
    until(lambda: sql(primary, "SELECT count(*) FROM pg_stat_replication") == [(0,)])


def renewed(service: Service) -> bool:
    """Whether it is still there; a message makes it write."""
    assert service.process is not None
    if service.process.poll() is not None:
        return False
    client = Client(service.places)
    try:
        client.ask(Submit("loaded", "one more", "one more", "queue"), Accepted)
    except CommandError:
        pass
    finally:
        client.close()
    return service.process.poll() is None
