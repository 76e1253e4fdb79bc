"""The tables on the server, as pruning needs them."""

from collections.abc import Sequence
from typing import Any

from supervisor.journal.postgres.connecting import Connection
from supervisor.journal.postgres.dialect import translated
from supervisor.journal.prune import Found

_TABLES_OF_TURNS = b"""
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND column_name = 'turn' AND table_name <> 'messages'"""


class ServerStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Found:
        return self._connection.execute(translated(sql), values)

    def used_bytes(self) -> int:
        """Return 0: tables do not shrink when rows are deleted, so the size is no reason to delete more."""
        return 0

    def tables_of_turns(self) -> Sequence[str]:
        return [str(row["table_name"]) for row in self._connection.execute(_TABLES_OF_TURNS)]
