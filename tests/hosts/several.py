"""Several supervisors that share one journal on a real server, each in a folder of its own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

import psycopg

from hermesctl.errors import CommandError
from tests.fake_model import FakeModel
from tests.service import Service, settings_for

# Short, so that a test need not wait for long; the shortest that the settings take.
LEASE_SECONDS = 2.0
# So often a host is stopped, cut off or loses its database in one test; `make hosts` sets more.
ROUNDS = int(os.environ.get("HERMES_HOST_ROUNDS", "2"))
# A turn that runs until it is stopped.
HOLD = "[[silent]] hold"
# What a failed test shows of each host, and of the server.
_SHOWN = ("status", "services", "workers")
_ASKED = (
    "SELECT epoch, name, batch, gone, until - clock_timestamp(), state FROM lives",
    "SELECT * FROM owners",
    "SELECT session, seq, type FROM events ORDER BY session, seq",
    "SELECT pid, application_name, state, wait_event_type, wait_event, query FROM pg_stat_activity",
    "SELECT pid, locktype, mode, granted, relation::regclass FROM pg_locks WHERE NOT granted",
)


def running(service: Service, session: str) -> int:
    """The worker that runs the session's turn, when that is written."""
    listener = service.listen(session)
    listener.until(lambda: listener.of_type("attempt.opened"))
    return int(next(row["pid"] for row in service.show("workers") if row["session"] == session))


def runs(pid: int) -> bool:
    """Whether the process is there, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def _told(look: Callable[[str], Any], what: str) -> str:
    try:
        return pformat(look(what), width=160)
    except (CommandError, psycopg.Error) as error:
        return repr(error)


class Hosts:
    def __init__(self, folder: Path, model: FakeModel, url: str) -> None:
        self.url = url
        self._folder = folder
        self._model = model
        self._made: list[Service] = []

    def make(self, name: str, hosts: str = "", **tables: str) -> Service:
        """A supervisor that is not started; `hosts` and `tables` add lines to those of its settings."""
        lines = f'name = "{name}"\nlease = "{LEASE_SECONDS}s"\n{hosts}'
        tables = {"workers": "count = 2", "journal": f'url = "{self.url}"', "hosts": lines} | tables
        self._made.append(Service(self._folder / name, settings_for(self._model, **tables)))
        return self._made[-1]

    def start(self, name: str, hosts: str = "", **tables: str) -> Service:
        service = self.make(name, hosts, **tables)
        service.start()
        return service

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Past every supervisor."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def owner(self, session: str) -> str | None:
        """The name of the host that has a session."""
        found = self.sql(
            "SELECT name FROM owners JOIN lives ON epoch = life WHERE session = %s AND NOT gone", session
        )
        return found[0][0] if found else None

    def evidence(self) -> Iterator[tuple[str, str]]:
        """What each host and the server say of themselves, with a title each."""
        for service in self._made:
            is_there = service.process is not None and service.process.poll() is None
            shown = _SHOWN if is_there else ()
            told = [service.log()[-4000:], *(_told(service.show, what) for what in shown)]
            yield f"host {service.home.name}", "\n".join(told)
        yield "server", "\n".join(_told(self.sql, sql) for sql in _ASKED)

    def close(self) -> None:
        for service in self._made:
            service.__exit__(None, None, None)
