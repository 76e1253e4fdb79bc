"""Clips of messages as rows, which any host can read. A row is durable before its message is accepted."""

from collections.abc import Collection

from supervisor.journal.postgres.server_rows import ServerRows

_STORE = "INSERT INTO clips (name, content) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
_CONTENT = "SELECT content FROM clips WHERE name = %s"
# A clip whose transcript is still to come may be in work at another host.
_IN_WORK = "SELECT 1 FROM messages WHERE messages.clip = clips.name AND state = 'transcribing'"
_REMOVE = f"DELETE FROM clips WHERE name = ANY(%s::text[]) AND NOT EXISTS ({_IN_WORK})"
# The oldest first, a bounded number at a time: a row has up to 25 MB.
_PRUNE = f"""
    DELETE FROM clips WHERE name IN (
        SELECT name FROM clips
        WHERE NOT EXISTS ({_IN_WORK}) AND (
            stored_at < clock_timestamp() - make_interval(secs => %s)
            OR stored_at < clock_timestamp() - make_interval(secs => %s)
                AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.clip = clips.name))
        ORDER BY stored_at LIMIT 1000)"""


class ClipRows:
    """Each method is called by a thread that reads."""

    def __init__(self, rows: ServerRows) -> None:
        self._rows = rows

    def store(self, name: str, content: bytes) -> None:
        self._rows.run(lambda connection: connection.execute(_STORE, (name, content)).rowcount)

    def content(self, name: str) -> bytes | None:
        row = self._rows.run(lambda connection: connection.execute(_CONTENT, (name,), binary=True).fetchone())
        return None if row is None else bytes(row["content"])

    def remove(self, names: Collection[str]) -> None:
        """Remove these clips, except those that are being transcribed somewhere."""
        self._rows.run(lambda connection: connection.execute(_REMOVE, (list(names),)).rowcount)

    def prune(self, keep_seconds: float, stray_seconds: float) -> None:
        """Remove clips that are too old, and those without a message for a shorter time."""
        self._rows.run(lambda connection: connection.execute(_PRUNE, (keep_seconds, stray_seconds)).rowcount)
