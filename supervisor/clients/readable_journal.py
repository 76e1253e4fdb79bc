"""The journal as queries read it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from ipc import messages as wire
from ipc.paging import Placed, Row
from supervisor.core.state import Session
from supervisor.journal.asking import Asking

# Reads sessions that are not in memory.
WakeAll = Callable[[Sequence[str]], Mapping[str, Session]]


class Tables(Protocol):
    """Tables of the journal, row by row, each with the place behind it."""

    def sessions(self, after: str, limit: int) -> Iterator[Placed]: ...
    def found(self, prefix: str, words: str, after: str) -> Iterator[Placed]: ...
    def turns(
        self, state: wire.TurnState | None, session: str | None, after: str, limit: int, prefix: str = ""
    ) -> Iterator[Placed]: ...
    def history(self, session: str, after: str, limit: int) -> Iterator[Placed]: ...
    def turn(self, id: str, after: str) -> Iterator[Placed]: ...
    def questions(self, after: str, limit: int, prefix: str = "") -> Iterator[Placed]: ...
    def cursors(self, session: str | None, after: str, limit: int) -> Iterator[Placed]: ...
    def story(self, id: str, after: str) -> Iterator[Placed]: ...
    def tool_output(self, turn: str, call: str, after: str) -> Iterator[Placed]: ...


class Past(Protocol):
    """Reads of the journal about one session, turn or message."""

    def session_seq(self, session: str) -> int: ...
    def cursors(self, session: str) -> Mapping[str, int]: ...
    def counts(self) -> Mapping[str, int]: ...


class ReadableJournal(Protocol):
    @property
    def asking(self) -> Asking: ...
    @property
    def tables(self) -> Tables: ...
    @property
    def read(self) -> Past: ...
    @property
    def hosts(self) -> Callable[[], list[Row]] | None:
        """Read the hosts that share it; None when it is a file, which has one."""

    @property
    def running(self) -> Callable[[Sequence[str]], Mapping[str, Row]] | None:
        """Read where turns run, at whichever host; None when there is one host."""

    @property
    def wake_all(self) -> WakeAll | None:
        """None when no other host has sessions."""
