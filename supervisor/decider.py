"""Decisions in batches: from events to records that are committed, without I/O and without asyncio.

A commit costs the same for one record and for hundreds. So events gather while a commit is under way, and the
next batch takes all of them: one sender waits for one commit, many senders share one. `supervisor/engine.py`
drives this module with an event loop, `tests/simulated_engine.py` in the simulator. Both do the same:

    wanted()     what the journal is to be asked before, where it does not answer in place (lookahead.py)
    take()       decides all that has gathered and returns the records to commit, which may be none
    refused()    the disk did not take them: the driver commits the same records again after RETRY_SECONDS
    written()    the records are on disk, or there were none: returns the batch, which the driver performs
    performed()  the next batch may be taken

| state    | take      | refused | written | performed |
| -------- | --------- | ------- | ------- | --------- |
| resting  | → decided | never   | never   | never |
| decided  | never     | → decided, with `trouble` set | → written | never |
| written  | never     | never   | never   | → resting |

Invariants:

- Nothing of a batch is performed, answered, published or acknowledged before `written`. The state is ahead of
  the disk by one batch at most, and by nothing while the decider rests.
- A refused batch is neither dropped nor decided again: the state already contains it. Nothing else is decided
  until it is written. Events still gather, except those that are worth nothing later (event_queue.py).
- Events are decided in the order in which they were posted. What the journal knows of an event is looked up
  right before it is decided (enrichment.py), so that it counts what its own batch has decided before it.
- A batch is performed in the order that performer.py gives. Workers learn that their frames are safe after
  all that, and only of frames that were taken into the batch.

Time in which the host could not act counts against no deadline. When a commit was refused at first, or this
loop did not turn and missed a deadline by more than `_LATE_SECONDS`, the next batch begins with StoodStill.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from supervisor import enrichment
from supervisor.core.decide import decide, next_deadline
from supervisor.core.effects import AssignTurn, Decision, Refused
from supervisor.core.events import Event, StoodStill, Ticked, WorkerUnreachable
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.records import Record
from supervisor.core.state import State
from supervisor.enrichment import Lookup
from supervisor.event_queue import EventQueue, GiveAnswer
from supervisor.lookahead import NewSessions, Wanted, wanted

# Events decided before their records are committed: bounds both a transaction and how long a first sender
# waits.
_BATCH_MAX = 512
# A full disk may have room again at any moment: the wait is short, and a retry costs little.
RETRY_SECONDS = 0.5
# A deadline missed by more than this says that the host stood still, not that a worker was late.
_LATE_SECONDS = 2.0

Rules = Callable[[State, Event, float], Decision]
Decided = list[tuple[Event, Decision, GiveAnswer | None]]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing can be written now, and since when. It may pass."""

    error: str
    hint: str
    since: float


class Outputs(Protocol):
    """Told when all that has gathered is in the batch, and when the batch is on disk."""

    def all_taken(self) -> None: ...
    def committed(self, seconds: float, count: int) -> None: ...


class Containment(Protocol):
    """Where an exception ends what was being served, and nothing else."""

    def around(self, place: Any, serve: Callable[..., Any], failed: Callable[..., Any]) -> Any: ...


class Fault(Protocol):
    """What may be told of an exception."""

    @property
    def error(self) -> str: ...
    @property
    def hint(self) -> str: ...


class Decider:
    """Everything that happens passes through here, one batch at a time."""

    def __init__(
        self,
        state: State,
        queue: EventQueue,
        *,
        now: Callable[[], float],
        journal: enrichment.Journal,
        outputs: Outputs,
        contain: Containment,
        rules: Rules = decide,
        batch_max: int = _BATCH_MAX,
    ) -> None:
        """`rules` lets a simulation look at the state after every single decision of a batch."""
        self.state = state
        self.trouble: Trouble | None = None
        self.committing_since: float | None = None
        self._queue = queue
        self._now = now
        self._outputs = outputs
        self._rules = rules
        self._batch_max = batch_max
        self._lookup = Lookup(state, journal)
        self._prepare = contain.around("request", self._prepared, self._not_prepared)
        self._batch: Decided = []
        self._records: list[Record] = []
        self._ahead_max = batch_max  # events that the journal was asked about
        self._new: NewSessions | None = None  # where the journal does not answer in place
        self._unassigned: set[int] = set()  # workers whose Assign waits for the commit under way
        self._rested_at = now()
        self._lost_seconds = 0.0

    @property
    def deadline(self) -> float | None:
        """When a batch is wanted even if nothing happens."""
        return next_deadline(self.state)

    def has_its_turn(self, incarnation: int) -> bool:
        """Whether the worker that is to run a turn was told so; one that waits for a commit was not."""
        return bool(incarnation) and incarnation not in self._unassigned

    def wanted(self) -> Wanted:
        """What the next batch needs of the journal; the batch is that of now, whatever is posted later."""
        happened = self._queue.peek(self._batch_max)
        self._ahead_max = len(happened)
        self.committing_since = self._now()
        self._new = self._new or NewSessions()
        return wanted(happened, self.state, self._new)

    def unanswered(self, error: str, hint: str) -> None:
        """The journal was asked and did not answer; it may do so later."""
        self.trouble = self.trouble or Trouble(error, hint, since=self._now())
        self._queue.is_in_trouble = True

    def take(self) -> list[Record]:
        """Decides what has gathered, or that time has passed; returns what is to be committed for it."""
        assert not self._batch, "the batch before this one is not performed"
        self.committing_since = None
        if stood_still := self._stood_still_seconds():
            self._decide(StoodStill(stood_still))
        for event, answer in self._queue.take(self._ahead_max):
            self._decide(event, answer)
        if self._queue.is_empty:
            self._outputs.all_taken()
        if not self._batch:
            self._decide(Ticked())
        self._records = [record for _, decision, _ in self._batch for record in decision.records]
        if self._records:
            self._unassigned = {
                effect.who.incarnation
                for _, decision, _ in self._batch
                for effect in decision.effects
                if isinstance(effect, AssignTurn)
            }
            self.committing_since = self._now()
        return self._records

    def _stood_still_seconds(self) -> float:
        """How long the disk was waited for, or this loop did not turn so that it missed a deadline."""
        lost, self._lost_seconds = self._lost_seconds, 0.0
        now, deadline = self._now(), next_deadline(self.state)
        if not lost and deadline is not None and now - deadline > _LATE_SECONDS:
            lost = now - self._rested_at
        return lost

    def _decide(self, event: Event, answer: GiveAnswer | None = None) -> None:
        prepared = self._prepare(event, answer)
        if prepared is not None:
            decision = self._rules(self.state, prepared, self._now())
            self._lookup.decided(decision.records)
            self._batch.append((prepared, decision, answer))

    def _prepared(self, event: Event, answer: GiveAnswer | None) -> Event:
        return self._lookup.prepared(event)

    def _not_prepared(self, fault: Fault, event: Event, answer: GiveAnswer | None) -> None:
        if answer is not None:
            answer(Refused(fault.error, fault.hint, code="internal"))
        elif (who := getattr(event, "who", None)) is not None:
            self._queue.post(WorkerUnreachable(who, Reason(EndReason.BAD_FRAME, f"kept: {fault.error}")))

    def refused(self, error: str, hint: str) -> None:
        """The commit failed and may do better later. Nothing of the batch was reported."""
        assert self._batch, "nothing waits for a commit"
        self.unanswered(error, hint)

    def written(self) -> Decided:
        """The batch is on disk: return it, to be performed."""
        assert self._batch, "nothing waits for a commit"
        if self.committing_since is not None:
            self._outputs.committed(self._now() - self.committing_since, len(self._records))
            self.committing_since = None
        if self.trouble is not None:
            self._lost_seconds = self._now() - self.trouble.since
            self.trouble = None
            self._queue.is_in_trouble = False
        self._unassigned = set()
        return self._batch

    def performed(self) -> None:
        self._lookup.settled(self._records)
        if self._new is not None:
            self._new.take(self._records, self.state)
        self._batch, self._records = [], []
        self._rested_at = self._now()
