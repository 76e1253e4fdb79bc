"""The hosts that share the database, as `hermesctl hosts` lists them."""

import json

from ipc.paging import Row
from supervisor.journal.postgres.server_rows import ServerRows

# By the database's clock, as the lease is. A host is overdue when its lease is over and its life not ended.
_HOSTS = """
    SELECT name, version, CASE WHEN until < clock_timestamp() THEN 'overdue' ELSE state END AS state,
        greatest(extract(epoch FROM until - clock_timestamp()), 0)::float8 AS lease_seconds, seats, free,
        (SELECT count(*) FROM owners WHERE life = epoch) AS sessions,
        (SELECT count(*) FROM owners JOIN turns ON turns.session = owners.session AND turns.state = 'running'
            WHERE owners.life = epoch) AS running, labels, epoch AS life,
        extract(epoch FROM clock_timestamp() - began_at)::float8 AS age_seconds
    FROM lives WHERE NOT gone ORDER BY name, epoch"""


def hosts(rows: ServerRows, own: int) -> list[Row]:
    """Return a row for each life that is not gone; `own` is the life of this host."""
    found = [dict(row) for row in rows.all(_HOSTS)]
    return [row | {"labels": json.loads(row["labels"]), "is_here": row["life"] == own} for row in found]
