"""Several supervisors that share one journal on a real server, each in a folder of its own."""

from pathlib import Path
from typing import Any

import psycopg

from tests.fake_model import FakeModel
from tests.service import Service, settings_for

# Short, so that a test need not wait for long; the shortest that the settings take.
LEASE_SECONDS = 2.0


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

    def close(self) -> None:
        for service in self._made:
            service.__exit__(None, None, None)
