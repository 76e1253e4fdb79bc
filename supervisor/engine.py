"""The one loop: drain what happened, decide, commit once for the batch, and only then answer and act.

While a commit is under way new events gather, so a busy host commits less often and more at a time. A commit
that the disk did not take is tried again, and nothing else is decided until it stands. If it fails for good
the process must end: memory would be ahead of disk. So it must when deciding, committing, starting or killing
raises. What is done for one turn, one clip or one request is contained (containment.py).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from supervisor import enrichment
from supervisor.clock import Clock
from supervisor.core.decide import decide, next_deadline
from supervisor.core.effects import (
    Answer,
    AssignTurn,
    BindWorker,
    Decision,
    Denied,
    Effect,
    ForgetClip,
    KillWorker,
    StartWorker,
    SteerTurn,
    Transcribe,
)
from supervisor.core.events import (
    Event,
    HostRead,
    NotTranscribed,
    Spoke,
    StoodStill,
    Ticked,
    WorkerAlive,
    WorkerUnreachable,
)
from supervisor.core.records import Record
from supervisor.core.state import State
from supervisor.enrichment import Lookup

# Events decided before their records are committed: bounds both a transaction and how long a first sender
# waits.
_BATCH_MAX = 512

# A full disk may have room again at any moment: nobody waits long, and asking costs next to nothing.
_RETRY_SECONDS = 0.5
# A deadline missed by more than this says that the host stood still, not that a worker was late.
_LATE_SECONDS = 2.0

GiveAnswer = Callable[[Answer], None]
TakeWords = Callable[[], Spoke]
_Decided = list[tuple[Event, Decision, GiveAnswer | None]]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing can be written now, and since when. It may pass."""

    error: str
    hint: str
    since: float


class Journal(enrichment.Journal, Protocol):
    """What the engine asks of the journal."""

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]": ...


class Processes(Protocol):
    """What the engine asks of the process room. Outcomes come back as events."""

    def start(self, seat: int, incarnation: int, agent: str) -> None: ...
    def kill(self, incarnation: int) -> None: ...


class Switchboard(Protocol):
    """What the engine asks of the wire from the workers."""

    def all_taken(self) -> None: ...
    def acknowledge(self) -> None: ...


class Assignment(Protocol):
    """What the engine asks for turns to reach their workers."""

    def bind(self, effect: BindWorker) -> None: ...
    def assign(self, effect: AssignTurn) -> None: ...
    def steer(self, effect: SteerTurn) -> None: ...


class Hearing(Protocol):
    """What the engine asks of the ears. Outcomes come back as events."""

    def transcribe(self, effect: Transcribe) -> None: ...
    def forget(self, effect: ForgetClip) -> None: ...


class Feed(Protocol):
    """What the engine asks of the feed."""

    def publish(self, records: Sequence[Record]) -> None: ...


class DecisionLog(Protocol):
    """Where decisions are written for people to read."""

    def decided(self, decisions: Iterable[Decision]) -> None: ...


class Meter(Protocol):
    """Where things are counted."""

    def decided(self, event: Event, decision: Decision) -> None: ...
    def committed(self, seconds: float, count: int) -> None: ...


class Containment(Protocol):
    """Where an exception ends what was being served, and nothing else."""

    def around(self, place: Any, serve: Callable[..., Any], failed: Callable[..., Any]) -> Any: ...
    def vital(self, act: Callable[..., None], fatal: Callable[[BaseException], None]) -> Any: ...


class Fault(Protocol):
    """What may be told of an exception."""

    @property
    def error(self) -> str: ...
    @property
    def hint(self) -> str: ...


class Engine:
    """Everything that happens passes through here, one batch at a time."""

    def __init__(
        self,
        state: State,
        *,
        clock: Clock,
        journal: Journal,
        processes: Processes,
        switchboard: Switchboard,
        assignment: Assignment,
        hearing: Hearing,
        feed: Feed,
        log: DecisionLog,
        meter: Meter,
        contain: Containment,
        passing: Callable[[BaseException], tuple[str, str] | None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        """`passing` gives the fault and the remedy of a failed commit that may do better later."""
        self.state = state
        self.trouble: Trouble | None = None
        self.committing_since: float | None = None
        self._clock = clock
        self._journal = journal
        self._processes = processes
        self._switchboard = switchboard
        self._assignment = assignment
        self._feed = feed
        self._log = log
        self._meter = meter
        self._passing = passing
        self._fatal = fatal
        self._vital_step = contain.vital(self._step, fatal)
        self._vital_commit = contain.vital(self._commit, fatal)
        self._vital_committed = contain.vital(self._committed, fatal)
        self._prepare = contain.around("request", self._prepared, self._not_prepared)
        self._transcribe = contain.around("clip", hearing.transcribe, self._not_transcribed)
        self._forget = contain.around("clip", hearing.forget, _not_done)
        self._loop = asyncio.get_running_loop()
        # What happened, or a call that gives it when it is decided; and whether it waits for company.
        self._inbox: deque[tuple[Event | Callable[[], Event], GiveAnswer | None, bool]] = deque()
        self._urgent = 0  # of them, those that do not wait for company
        self._is_stepping = False
        self._halted: asyncio.Future[None] | None = None
        self._lookup = Lookup(state, journal)
        self._unassigned: set[int] = set()  # workers whose Assign waits for the commit under way
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._stepped_at = clock.now()
        self._lost_seconds = 0.0
        self._proofs: list[Callable[[], None]] = []

    def post(self, event: Event, answer: GiveAnswer | None = None) -> None:
        """Something happened. `answer` is called after the commit, if the rules have one for it."""
        if self.trouble is not None and isinstance(event, WorkerAlive | HostRead):
            return  # nobody is judged by the signs of this time, and it may be long
        self._put(event, answer)

    def post_late(self, make: Callable[[], Event], answer: GiveAnswer) -> None:
        """Something happened; what it is to the rules is asked when they decide it."""
        self._put(make, answer)

    def _put(self, event: Event | Callable[[], Event], answer: GiveAnswer | None) -> None:
        self._inbox.append((event, answer, True))
        self._urgent += 1
        self.nudge()

    @property
    def commit_seconds(self) -> float:
        """For how long the commit under way has been waited for; 0 when none is."""
        return 0.0 if self.committing_since is None else self._clock.now() - self.committing_since

    def has_its_turn(self, incarnation: int) -> bool:
        """Whether the worker that is to run a turn was told so; one that waits for a commit was not."""
        return bool(incarnation) and incarnation not in self._unassigned and self._halted is None

    def prove(self, moved: Callable[[], None]) -> None:
        """`moved` is called once, when a batch has come back from the disk: proof that this loop turns."""
        self._proofs.append(moved)
        self.nudge()

    def hold(self, words: TakeWords) -> None:
        """Words gather in this place until they are decided; they go with the next batch and ask for none."""
        self._inbox.append((words, None, False))

    async def halt(self) -> None:
        """Returns when the batch under way is committed and performed; none follows it."""
        self._halted = self._loop.create_future()
        if not self._is_stepping:
            self._halted.set_result(None)
        await self._halted

    def nudge(self) -> None:
        """There is something to take: an event, or speech on the switchboard."""
        if not self._is_stepping and self._halted is None:
            self._is_stepping = True
            self._loop.call_soon(self._vital_step)

    def _step(self) -> None:
        decisions: _Decided = []
        if stood_still := self._stood_still_seconds():
            self._take(decisions, StoodStill(stood_still))
        for _ in range(min(len(self._inbox), _BATCH_MAX)):
            event, answer, is_urgent = self._inbox.popleft()
            self._urgent -= is_urgent
            self._take(decisions, event() if callable(event) else event, answer)
        if not self._inbox:
            self._switchboard.all_taken()
        if not decisions:
            self._take(decisions, Ticked())
        records = [record for _, decision, _ in decisions for record in decision.records]
        if records:
            self._commit(decisions, records)
        else:
            self._perform(decisions, records)

    def _stood_still_seconds(self) -> float:
        """How long the disk was waited for, or this loop did not turn so that it missed a deadline."""
        lost, self._lost_seconds = self._lost_seconds, 0.0
        now, deadline = self._clock.now(), next_deadline(self.state)
        if not lost and deadline is not None and now - deadline > _LATE_SECONDS:
            lost = now - self._stepped_at
        return lost

    def _take(self, decisions: _Decided, event: Event, answer: GiveAnswer | None = None) -> None:
        prepared = self._prepare(event, answer)
        if prepared is not None:
            decisions.append((prepared, self._decide(prepared), answer))

    def _prepared(self, event: Event, answer: GiveAnswer | None) -> Event:
        return self._lookup.prepared(event)

    def _not_prepared(self, fault: Fault, event: Event, answer: GiveAnswer | None) -> None:
        if answer is not None:
            answer(Denied(fault.error, fault.hint))
        elif (who := getattr(event, "who", None)) is not None:
            self.post(WorkerUnreachable(who, f"it sent a frame that cannot be kept: {fault.error}"))

    def _decide(self, event: Event) -> Decision:
        decision = decide(self.state, event, self._clock.now())
        self._lookup.decided(decision.records)
        return decision

    def _commit(self, decisions: _Decided, records: list[Record]) -> None:
        self._unassigned = {
            effect.who.incarnation
            for _, decision, _ in decisions
            for effect in decision.effects
            if isinstance(effect, AssignTurn)
        }
        if self.committing_since is None:
            self.committing_since = self._clock.now()
        commit = self._journal.commit(records)
        commit.add_done_callback(lambda done: self._vital_committed(done, decisions, records))

    def _committed(self, commit: "asyncio.Future[None]", decisions: _Decided, records: list[Record]) -> None:
        error = commit.exception()
        if error is None:
            began, self.committing_since = self.committing_since, None
            if began is not None:
                self._meter.committed(self._clock.now() - began, len(records))
            if self.trouble is not None:
                self._lost_seconds = self._clock.now() - self.trouble.since
                self.trouble = None
            self._perform(decisions, records)
        elif found := self._passing(error):
            self.trouble = self.trouble or Trouble(*found, since=self._clock.now())
            self._tell_moved()  # the disk has answered, and a restart would find the same disk
            # The very same batch: memory already has it, and nobody was told.
            self._loop.call_later(_RETRY_SECONDS, self._vital_commit, decisions, records)
        else:
            self._fatal(error)

    def _perform(self, decisions: _Decided, records: list[Record]) -> None:
        self._unassigned = set()
        ends, others, starts = _in_order(
            [effect for _, decision, _ in decisions for effect in decision.effects]
        )
        for effect in ends:
            self._act(effect)
        for _, decision, give_answer in decisions:
            if give_answer is not None and decision.answer is not None:
                give_answer(decision.answer)
        self._feed.publish(records)
        for effect in (*others, *starts):
            self._act(effect)
        self._switchboard.acknowledge()
        for event, decision, _ in decisions:
            self._meter.decided(event, decision)
        self._log.decided(decision for _, decision, _ in decisions)
        self._lookup.settled(records)
        self._is_stepping = False
        self._stepped_at = self._clock.now()
        self._tell_moved()
        if self._halted is not None:
            self._halted.set_result(None)
        elif self._urgent:
            self.nudge()
        else:
            self._set_timer()

    def _tell_moved(self) -> None:
        proofs, self._proofs = self._proofs, []
        for moved in proofs:
            moved()

    def _act(self, effect: Effect) -> None:
        match effect:
            case BindWorker():
                self._assignment.bind(effect)
            case AssignTurn():
                self._assignment.assign(effect)
            case SteerTurn():
                self._assignment.steer(effect)
            case KillWorker():
                self._processes.kill(effect.incarnation)
            case StartWorker():
                self._processes.start(effect.seat, effect.incarnation, effect.agent)
            case Transcribe():
                self._transcribe(effect)
            case ForgetClip():
                self._forget(effect)
            case _:
                assert_never(effect)

    def _not_transcribed(self, fault: Fault, effect: Transcribe) -> None:
        self.post(NotTranscribed(effect.session, effect.message, fault.error, fault.hint))

    def _set_timer(self) -> None:
        """Wake at the next deadline. A timer that is early does no harm, so an earlier one is left alone."""
        deadline = next_deadline(self.state)
        if deadline is None or deadline >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_later(max(0.0, deadline - self._clock.now()), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        self.nudge()


def _not_done(fault: Fault, effect: ForgetClip) -> None:
    """A clip that is not forgotten is transcribed and its answer is ignored."""


def _in_order(effects: list[Effect]) -> tuple[list[Effect], list[Effect], list[Effect]]:
    """Kills that end a turn come first, for somebody waits for their end.

    Starts, and the ends of idle workers, come last: each takes milliseconds.
    """
    ends, others, starts = list[Effect](), list[Effect](), list[Effect]()
    for effect in effects:
        if isinstance(effect, StartWorker):
            starts.append(effect)
        elif isinstance(effect, KillWorker):
            (ends if effect.turn else starts).append(effect)
        else:
            others.append(effect)
    return ends, others, starts
