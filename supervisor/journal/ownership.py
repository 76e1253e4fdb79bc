"""Where a session is, if several hosts share the journal: asked before anything is decided about it.

With a journal in a file there is no other host, and nothing to ask: `journal.owners` is None. On a server,
`postgres/owners.py` answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from supervisor.journal.asking import Failed


@dataclass(frozen=True, slots=True)
class Here:
    """This host has the session, and no other one decides about it."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another life has the session or should have it; life 0: no host that is there may have it."""

    life: int
    host: str


Found = Here | Elsewhere


class Ownership(Protocol):
    def claim(self, session: str, then: Callable[[Found], None], failed: Failed) -> None:
        """Call `then` with where the session is. If it is here, post the event about it within `then`."""

    def ask_host(self, name: str, state: str, then: Callable[[bool], None], failed: Failed) -> None:
        """Ask a host by its name to be draining or open; `then` is told whether there is such a host."""

    def is_leaving(self, session: str) -> bool:
        """Return whether the session is being given to another host."""
