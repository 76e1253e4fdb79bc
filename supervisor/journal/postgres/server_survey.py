"""Facts about the database and the line to it, for `hermesctl doctor`; changes nothing."""

import os
from contextlib import closing
from typing import Any

import psycopg

from supervisor.clock import Clock
from supervisor.config.database_address import DatabaseAddress, address_of
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres.connecting import Connection, connect

_NAME = "hermes doctor"
# Tried a few times: the one with the shortest way tells most about the clock.
_LOOKS = 5
_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8 AS now"
_STANDBY = "SELECT current_setting('synchronous_standby_names') AS names"
# Only a role with pg_read_all_stats sees the states of others.
_REPLICAS = """
    SELECT count(*) AS seen, count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous
    FROM pg_stat_replication WHERE sync_state IS NOT NULL"""
_CONNECT_SECONDS = 3
# The role that owns a server, by the custom of every distribution.
_OWNER = "postgres"


def survey(url: str, password: str) -> dict[str, Any]:
    """Return the facts, or the fault with which the database does not answer."""
    try:
        with closing(connect(url, _NAME, password)) as connection:
            return _facts(connection) | {"open": _open_to_all(address_of(url))}
    except JournalError as error:
        return {"fault": error.fault, "hint": error.hint}
    except psycopg.Error as error:
        return {"fault": f"the database cannot be looked at ({type(error).__name__})", "hint": "look at it"}


def _facts(connection: Connection) -> dict[str, Any]:
    info = connection.info
    options = {each.keyword: each.val for each in connection.pgconn.info}
    standby, replicas = connection.execute(_STANDBY).fetchone(), connection.execute(_REPLICAS).fetchone()
    assert standby is not None  # each is one row
    assert replicas is not None
    skew, way = min((_skew(connection) for _ in range(_LOOKS)), key=lambda found: found[1])
    return {
        "version": info.server_version,
        "host": info.host,
        "port": info.port,
        "is_socket": info.host.startswith("/"),
        "is_encrypted": bool(connection.pgconn.ssl_in_use),
        "sslmode": (options.get(b"sslmode") or b"").decode(),
        "skew_seconds": skew,
        "way_seconds": way,
        "standby_names": standby["names"],
        "synchronous": replicas["synchronous"] if replicas["seen"] else None,
    }


def _skew(connection: Connection) -> tuple[float, float]:
    """Return how far the server's clock is ahead of this host's, and the time of the question."""
    clock = Clock()
    before = clock.now()
    row = connection.execute(_NOW).fetchone()
    after = clock.now()
    assert row is not None  # a SELECT without FROM has one row
    return row["now"] - (before + after) / 2, after - before


def _open_to_all(address: DatabaseAddress) -> list[str]:
    """Return the addresses that let a role in without a password: tools reach them over the network."""
    loopback = [("127.0.0.1", int(each.rpartition(".")[2])) for each in address.sockets]
    # Workers do not have it; the driver would use it.
    own = os.environ.pop("PGPASSWORD", None)
    try:
        return [
            f"{host}:{port}"
            for host, port in (*address.ports, *loopback)
            if any(_opens(address, host, port, role) for role in (address.role, _OWNER))
        ]
    finally:
        if own is not None:
            os.environ["PGPASSWORD"] = own


def _opens(address: DatabaseAddress, host: str, port: int, role: str) -> bool:
    try:
        psycopg.connect(
            host=host,
            port=port,
            user=role,
            dbname=address.database,
            connect_timeout=_CONNECT_SECONDS,
            # Neither the files of the driver nor a certificate of this user: a cell sees none of them.
            passfile="/dev/null",
            sslcert="/dev/null",
            sslkey="/dev/null",
        ).close()
    except psycopg.Error:
        return False
    return True
