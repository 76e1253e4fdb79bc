"""A decision while it is being made: the state it may change, the time, and its results so far."""

import heapq
from typing import Any

from supervisor.core.effects import Answer, Decision, Effect
from supervisor.core.records import Record
from supervisor.core.state import Session, State
from supervisor.core.timers import Due


class Draft:
    """Collects the results of handlers; nothing is visible before the whole decision is made."""

    def __init__(self, state: State, now: float) -> None:
        self.state = state
        self.now = now
        self.answer: Answer | None = None
        self._records: list[Record] = []
        self._effects: list[Effect] = []

    def tell(self, session: Session, record: type[Record], **fields: Any) -> None:
        """Add a record that is also the next event of its session."""
        session.seq += 1
        self._records.append(record(session=session.name, at=self.now, seq=session.seq, **fields))

    def note(self, session: Session, record: type[Record], **fields: Any) -> None:
        """Add a record that is no event."""
        self._records.append(record(session=session.name, at=self.now, **fields))

    def perform(self, effect: Effect) -> None:
        self._effects.append(effect)

    def remind(self, at: float, due: Due) -> None:
        """Set a timer. One that no longer applies is ignored when it is due."""
        state = self.state
        state.deadlines_made += 1
        heapq.heappush(state.deadlines, (at, state.deadlines_made, due))

    def decision(self) -> Decision:
        return Decision(tuple(self._records), tuple(self._effects), self.answer)
