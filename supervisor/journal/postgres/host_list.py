"""The hosts that share the database, as `hermesctl hosts` lists them, and which of them runs a turn."""

import json
from collections.abc import Mapping, Sequence

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

# An attempt of a life that is gone is resumed soon, by another host or by the next life of this one.
_RUNNING = """
    SELECT turns.id, lives.name AS host, attempts.seat AS worker, nullif(attempts.pid, 0) AS pid
    FROM json_each(?) AS named CROSS JOIN turns ON turns.id = named.value
    JOIN attempts ON attempts.turn = turns.id AND attempts.number = turns.attempts
    JOIN lives ON lives.epoch = attempts.epoch AND NOT lives.gone
    WHERE turns.state = 'running'"""


def hosts(rows: ServerRows, own: int) -> list[Row]:
    """Return a row for each life that is not gone; `own` is the life of this host."""
    found = [dict(row) for row in rows.all(_HOSTS)]
    return [row | {"labels": json.loads(row["labels"]), "is_here": row["life"] == own} for row in found]


def running(rows: ServerRows, turns: Sequence[str]) -> Mapping[str, Row]:
    """Return where those of these turns run that have an attempt: host, worker and pid, by turn."""
    found = [dict(row) for row in rows.all(_RUNNING, (json.dumps(turns),))]
    return {row.pop("id"): row for row in found}
