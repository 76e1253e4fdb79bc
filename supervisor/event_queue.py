"""The queue of events that are not decided yet, in the order in which they happened.

Every part of the supervisor posts here what has happened, and the decider takes it in batches. Most events
ask for a batch: `wake` is called for them. Streamed text only keeps its place: it goes with the next batch,
and what it is, is asked then. So is what became of an interrupt in the meantime.

Signs of life and readings of the host are dropped while nothing can be written: that may take long, and
afterwards they prove nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from supervisor.core.effects import Answer
from supervisor.core.events import Event, HostRead, WorkerAlive, WorkerDied

_WORTHLESS_LATER = (WorkerAlive, HostRead)

GiveAnswer = Callable[[Answer], None]
# What happened, or a call that gives it when it is decided.
Happened = Event | Callable[[], Event]


class EventQueue:
    """Unbounded: what is worth posting must be decided, and its senders are bounded."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # When the first event that asks for a batch was posted; None when there is none.
        self.waiting_since: float | None = None
        # Set while commits are refused.
        self.is_in_trouble = False
        self._waiting: deque[tuple[Happened, GiveAnswer | None, bool]] = deque()
        self._urgent = 0  # of them, those that do not wait for company
        self._wake: Callable[[], None] = lambda: None
        self._see_death: Callable[[WorkerDied], None] = lambda event: None

    def open(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def show_deaths(self, see: Callable[[WorkerDied], None]) -> None:
        """Call `see` for the end of a worker as soon as it is posted: an interrupt may wait for its proof."""
        self._see_death = see

    def post(self, event: Happened, answer: GiveAnswer | None = None, *, can_wait: bool = False) -> None:
        """Something happened. `answer` is called after the commit, if the rules have one for it."""
        if self.is_in_trouble and isinstance(event, _WORTHLESS_LATER):
            return
        self._waiting.append((event, answer, not can_wait))
        if not can_wait:
            self._urgent += 1
            if self.waiting_since is None:
                self.waiting_since = self._now()
            self._wake()
            if isinstance(event, WorkerDied):
                self._see_death(event)

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    @property
    def is_urgent(self) -> bool:
        """Whether something has happened that waits for the next batch only."""
        return self._urgent > 0

    def peek(self, events_max: int) -> list[Happened]:
        """Return what `take` would yield; calls are not made."""
        return [event for event, _, _ in islice(self._waiting, events_max)]

    def undecided(self) -> Iterator[Happened]:
        """Yield all that was posted and is not taken yet."""
        return (event for event, _, _ in self._waiting)

    def take(self, events_max: int) -> Iterator[tuple[Event, GiveAnswer | None]]:
        """Yield what has gathered until now, in order."""
        for _ in range(min(len(self._waiting), events_max)):
            event, answer, is_urgent = self._waiting.popleft()
            self._urgent -= is_urgent
            yield event() if callable(event) else event, answer
        self.waiting_since = self._now() if self._urgent else None
