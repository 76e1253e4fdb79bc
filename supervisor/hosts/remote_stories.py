"""The story of a message or turn (`hermesctl why`) at any host: what it waits for is known to its owner only.

The journal has the whole story, so any host tells it. One sentence is not in the journal: that the turn waits
for a model that is away, or for the end of a worker. The host that has the session is asked for it; if it
does not answer soon, the story is told without.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from ipc import messages as wire
from ipc.errors import WireError
from supervisor.clock import monotonic
from supervisor.hosts.requests import Reply, Requests
from supervisor.journal.asking import Failed
from supervisor.journal.errors import JournalError

# For one sentence more, a person waits this long.
_PATIENCE_SECONDS = 1.0
_OPEN = frozenset({"transcribing", "waiting", "queued", "running", "asking"})

Give = Callable[[wire.Table], None]


class Views(Protocol):
    def show(self, request: wire.Show, give: Give, failed: Failed) -> None: ...
    def stand(
        self, session: str, name: str | None, then: Callable[[int, int], None], failed: Failed
    ) -> None: ...


class Owners(Protocol):
    """Looks up the life that has a session, 0 for none."""

    def owner(self, session: str, then: Callable[[int], None], failed: Failed) -> None: ...


class RemoteStories:
    """Stands where a host alone has its views."""

    def __init__(
        self,
        views: Views,
        requests: Requests,
        life: int,
        rows: Owners,
        is_here: Callable[[str], bool],
    ) -> None:
        self.stand = views.stand
        self._views = views
        self._requests = requests
        self._life = life
        self._rows = rows
        self._is_here = is_here

    def show(self, request: wire.Show, give: Give, failed: Failed) -> None:
        if request.what == "story" and not request.after:
            give = partial(self._told, request, give)
        self._views.show(request, give, failed)

    def serve(self, request: wire.Show, reply: Reply) -> None:
        """Answer another host."""

        def failed(error: JournalError | WireError) -> None:
            reply(wire.Refused(error.fault, error.hint, code="unavailable"))

        self._views.show(request, reply, failed)

    def _told(self, request: wire.Show, give: Give, table: wire.Table) -> None:
        """Ask the host that has the session, if that is another one and something may be waited for."""
        head = table.rows[0] if table.rows else {}
        session = head.get("session", "")
        if not _OPEN & {head.get("state"), head.get("turn_state")} or self._is_here(session):
            give(table)
            return

        def answered(answer: wire.Answer) -> None:
            give(answer if isinstance(answer, wire.Table) else table)

        def found(life: int) -> None:
            if life in (0, self._life):
                give(table)
            else:
                until = monotonic() + _PATIENCE_SECONDS
                self._requests.ask(life, request, answered, partial(give, table), until)

        self._rows.owner(session, found, lambda error: give(table))
