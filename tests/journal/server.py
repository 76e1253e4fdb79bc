"""Journals on a PostgreSQL server, through a proxy that cuts."""

from pathlib import Path
from typing import Any

import psycopg

from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.server_journal import ServerJournal
from tests.cutting_proxy import CuttingProxy
from tests.postgres_cluster import Cluster
from tests.waiting import until


class Server:
    """A schema of a cluster, a proxy before it, and the journals opened through that."""

    def __init__(self, cluster: Cluster, proxy: CuttingProxy, folder: Path) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self._folder = folder
        self._schema = cluster.new_schema()
        self._opened: list[ServerJournal] = []

    def open(self, host: str = "alpha", place: str = "", lease_seconds: float = 3600.0) -> ServerJournal:
        """With a lease that needs no renewal after the first, so that the proxy cuts batches only."""
        url = self.cluster.url(self._schema, self.proxy.port)
        described = Host(host, place or host, lease_seconds)
        journal = ServerJournal.open(url, described, self._folder / f"{place or host}.lock")
        self._opened.append(journal)
        until(lambda: journal._keeper._renew_at)
        return journal

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Past the proxy and past the journal."""
        with psycopg.connect(self.cluster.url(self._schema), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.proxy.close()
        for each in self._opened:
            each.close()


def waiting_for_replica(server: Server) -> list[int]:
    found = server.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY backend_start")
    return [row[0] for row in found]


def replica_comes(server: Server) -> None:
    server.sql("ALTER SYSTEM RESET synchronous_standby_names")
    server.sql("SELECT pg_reload_conf()")
