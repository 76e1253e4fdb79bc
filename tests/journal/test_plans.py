"""How the server finds rows: by an index, as the statements of a file say it."""

from pathlib import Path
from typing import Any

import psycopg

from supervisor.journal.postgres.host_life import Host
from supervisor.journal.postgres.server_journal import ServerJournal
from supervisor.lookahead import Wanted
from tests.journal.lives import accepted
from tests.postgres_cluster import Cluster
from tests.waiting import until

_TABLES = "('sessions', 'messages', 'turns', 'events', 'cursors', 'begun')"


def test_neither_batches_nor_what_they_need_read_a_table_whole(cluster: Cluster, tmp_path: Path) -> None:
    """A plan that was made for an empty table would be kept when it has grown."""
    schema = cluster.new_schema()

    def opened() -> ServerJournal:
        return ServerJournal.open(cluster.url(schema), Host("here", "here"), tmp_path / "lock")

    opened().close()
    before, _ = _scans(cluster.url(schema))
    journal = opened()
    wanted = Wanted(sessions={"s"}, messages={"m_s_1"}, cursors={"s"}, begun={"s"})
    for number in range(1, 21):
        journal.commit_now([accepted(number)])
        journal.ahead._look_up(wanted)
    journal.close()
    assert _scans(cluster.url(schema)) == (before, True)


def _scans(url: str) -> Any:
    """How often tables were read whole, and whether by an index; counted when who has read is gone."""
    ours = "SELECT 1 FROM pg_stat_activity WHERE application_name ~ '^hermes'"
    sums = "SELECT sum(seq_scan), sum(idx_scan) > 0 FROM pg_stat_user_tables"
    with psycopg.connect(url, autocommit=True) as connection:
        until(lambda: connection.execute(ours).fetchone() is None)
        counted = f"{sums} WHERE schemaname = current_schema AND relname IN {_TABLES}"
        return connection.execute(counted.encode()).fetchone()
