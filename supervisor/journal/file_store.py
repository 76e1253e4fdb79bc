"""The tables of a journal file, as pruning needs them."""

import sqlite3
from collections.abc import Sequence
from typing import Any


class FileStore:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.execute = connection.execute

    def used_bytes(self) -> int:
        """Return the bytes in use: free pages are reused before the file grows."""
        pages, free, size = (
            int(self._pragma(name)) for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def tables_of_turns(self) -> Sequence[str]:
        found = self._connection.execute(
            """SELECT schema.name FROM sqlite_schema AS schema JOIN pragma_table_info(schema.name) AS info
               WHERE schema.type = 'table' AND info.name = 'turn' AND schema.name <> 'messages'"""
        )
        return [row[0] for row in found]

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]
