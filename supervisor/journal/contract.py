"""The contract of a journal, whether it is a file, memory, or later a server that several hosts share.

- A commit is all of its records or none, and durable when it returns.
- Every write names its fence: the state it was decided on, session and seq, turn and attempt. One that finds
  another state is refused (JournalFenced) together with the rest of its batch. So of two writers that both
  believe they own a session, one is refused, without any exchange between them.
- Each run of the supervisor has a higher epoch than every run before it.
- A load returns what was committed, by any earlier run.

`tests/journal/test_contract.py` checks every implementation against it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from supervisor.core.events import Known
from supervisor.core.policy import Policy
from supervisor.core.records import Record
from supervisor.core.state import Session, State


class Told(Protocol):
    """A durable event of a session."""

    @property
    def session(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def fields(self) -> dict[str, Any]: ...


class Feeds(Protocol):
    """Reads of durable events. Only an empty page means that there are no more."""

    def events_after(self, session: str, seq: int, limit: int) -> Sequence[Told]: ...
    def session_seq(self, session: str) -> int: ...


class Keeper(Protocol):
    """A journal, opened for one epoch of a supervisor."""

    @property
    def epoch(self) -> int: ...
    @property
    def transactions(self) -> int: ...
    @property
    def read(self) -> Feeds: ...

    def load(self, policy: Policy) -> State: ...
    def wake(self, session: str) -> Session | None: ...
    def known(self, message: str) -> Known | None: ...
    def cursors(self, session: str) -> dict[str, int]: ...
    def begun_by(self, session: str) -> str | None: ...
    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]": ...
    def commit_now(self, records: Sequence[Record]) -> None: ...
    def close(self) -> None: ...
