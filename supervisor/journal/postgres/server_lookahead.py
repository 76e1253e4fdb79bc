"""The answers of the server to what a batch needs (supervisor/lookahead.py), by a thread of their own."""

import asyncio
import json
from collections.abc import Iterable

from supervisor.core.events import Known
from supervisor.core.state import Session
from supervisor.journal.load import wake_all
from supervisor.journal.postgres.read_threads import ReadThreads
from supervisor.journal.rows import Rows
from supervisor.lookahead import LookedUp, Wanted

_MESSAGES = """
    SELECT messages.id, messages.seq, messages.kind, messages.text
    FROM json_each(?) AS named CROSS JOIN messages ON messages.id = named.value"""
_CURSORS = """
    SELECT cursors.session, cursors.name, cursors.seq
    FROM json_each(?) AS named CROSS JOIN cursors ON cursors.session = named.value"""
_BEGUN = """
    SELECT begun.session, begun.key
    FROM json_each(?) AS named CROSS JOIN begun ON begun.session = named.value"""


class ServerLookahead:
    """Serves one batch at a time: the next question replaces the answers."""

    def __init__(self, rows: Rows, thread: ReadThreads) -> None:
        self._rows = rows
        self._thread = thread
        self._found = LookedUp()

    def ask(self, wanted: Wanted) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def found(answers: LookedUp) -> None:
            self._found = answers
            if not future.done():
                future.set_result(None)

        def failed(error: Exception) -> None:
            if not future.done():
                future.set_exception(error)

        self._thread.ask(lambda: self._look_up(wanted), found, failed)
        return future

    def wake(self, session: str) -> Session | None:
        return self._found.sessions.get(session)

    def known(self, message: str) -> Known | None:
        return self._found.messages.get(message)

    def cursors(self, session: str) -> dict[str, int]:
        return self._found.cursors.get(session, {})

    def begun_by(self, session: str) -> str | None:
        return self._found.begun.get(session)

    def _look_up(self, wanted: Wanted) -> LookedUp:
        """Runs in the thread: a read for each kind of question that is asked."""
        found = LookedUp()
        if wanted.sessions:
            found.sessions = wake_all(self._rows, list(wanted.sessions))
        if wanted.messages:
            for row in self._rows.all(_MESSAGES, (_list(wanted.messages),)):
                text = None if row["kind"] == "voice" else row["text"]
                found.messages[row["id"]] = Known(int(row["seq"]), text)
        if wanted.cursors:
            for row in self._rows.all(_CURSORS, (_list(wanted.cursors),)):
                found.cursors.setdefault(row["session"], {})[row["name"]] = int(row["seq"])
        if wanted.begun:
            found.begun = {
                row["session"]: row["key"] for row in self._rows.all(_BEGUN, (_list(wanted.begun),))
            }
        return found


def _list(names: Iterable[str]) -> str:
    return json.dumps(list(names))
