"""The one loop: drain what happened, decide, commit once for the batch, and only then answer and act.

While a commit is under way new events gather, so a busy host commits less often and more at a time. If a
commit fails for good the process must end: memory would be ahead of disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from supervisor.clock import Clock
from supervisor.core.decide import decide, next_deadline
from supervisor.core.effects import Answer, AssignTurn, Decision, KillWorker, StartWorker, SteerTurn
from supervisor.core.events import (
    DropAsked,
    Event,
    InterruptAsked,
    ResumeAsked,
    Spoke,
    TextArrived,
    Ticked,
)
from supervisor.core.inbox import put_to_rest
from supervisor.core.model import Session, State
from supervisor.core.records import MessageAccepted, Record

# Events decided before their records are committed: bounds both a transaction and how long a first sender
# waits.
_BATCH_MAX = 512

GiveAnswer = Callable[[Answer], None]


class Journal(Protocol):
    """What the engine asks of the journal."""

    def wake(self, session: str) -> Session | None: ...
    def message_seq(self, message: str) -> int | None: ...
    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]": ...


class Processes(Protocol):
    """What the engine asks of the process room. Outcomes come back as events."""

    def start(self, seat: int, incarnation: int) -> None: ...
    def kill(self, incarnation: int) -> None: ...


class Switchboard(Protocol):
    """What the engine asks of the wire to the workers."""

    def take_speech(self) -> Iterable[Spoke]: ...
    def assign(self, effect: AssignTurn) -> None: ...
    def steer(self, effect: SteerTurn) -> None: ...
    def acknowledge(self) -> None: ...


class Feed(Protocol):
    """What the engine asks of the feed."""

    def publish(self, records: Sequence[Record]) -> None: ...


class DecisionLog(Protocol):
    """Where decisions are written for people to read."""

    def decided(self, decision: Decision) -> None: ...


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
        feed: Feed,
        log: DecisionLog,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.state = state
        self._clock = clock
        self._journal = journal
        self._processes = processes
        self._switchboard = switchboard
        self._feed = feed
        self._log = log
        self._fatal = fatal
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[tuple[Event, GiveAnswer | None]] = deque()
        self._is_stepping = False
        # Of the batch being decided: messages the journal does not have yet, and sessions that
        # doors asked about.
        self._fresh: dict[str, int] = {}
        self._touched: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    def post(self, event: Event, answer: GiveAnswer | None = None) -> None:
        """Something happened. `answer` is called after the commit, if the rules have one for it."""
        self._inbox.append((event, answer))
        self.nudge()

    def nudge(self) -> None:
        """There is something to take: an event, or speech on the switchboard."""
        if not self._is_stepping:
            self._is_stepping = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        decisions: list[tuple[Decision, GiveAnswer | None]] = []
        for spoke in self._switchboard.take_speech():
            decisions.append((self._decide(spoke), None))
        for _ in range(min(len(self._inbox), _BATCH_MAX)):
            event, answer = self._inbox.popleft()
            decisions.append((self._decide(event), answer))
        if not decisions:
            decisions.append((self._decide(Ticked()), None))
        records = [record for decision, _ in decisions for record in decision.records]
        if not records:
            self._perform(decisions, records)
            return
        commit = self._journal.commit(records)
        commit.add_done_callback(lambda done: self._committed(done, decisions, records))

    def _decide(self, event: Event) -> Decision:
        if isinstance(event, TextArrived | InterruptAsked | DropAsked | ResumeAsked):
            self._wake(event.session)
        # Nothing can be known by its key in a session that nobody has spoken to.
        if isinstance(event, TextArrived) and event.session in self.state.sessions:
            known = self._fresh.get(event.message) or self._journal.message_seq(event.message)
            event = replace(event, known_seq=known)
        decision = decide(self.state, event, self._clock.now())
        for record in decision.records:
            if isinstance(record, MessageAccepted):
                self._fresh[record.message] = record.seq
        return decision

    def _wake(self, name: str) -> None:
        self._touched.add(name)
        if name not in self.state.sessions:
            session = self._journal.wake(name)
            if session is not None:
                self.state.sessions[name] = session

    def _committed(
        self,
        commit: "asyncio.Future[None]",
        decisions: list[tuple[Decision, GiveAnswer | None]],
        records: list[Record],
    ) -> None:
        error = commit.exception()
        if error is not None:
            self._fatal(error)
            return
        self._perform(decisions, records)

    def _perform(self, decisions: list[tuple[Decision, GiveAnswer | None]], records: list[Record]) -> None:
        for decision, give_answer in decisions:
            if give_answer is not None and decision.answer is not None:
                give_answer(decision.answer)
            self._act(decision)
            self._log.decided(decision)
        self._feed.publish(records)
        self._switchboard.acknowledge()
        put_to_rest(self.state, self._touched.union(record.session for record in records))
        self._fresh.clear()
        self._touched.clear()
        self._is_stepping = False
        if self._inbox:
            self.nudge()
        else:
            self._set_timer()

    def _act(self, decision: Decision) -> None:
        for effect in decision.effects:
            match effect:
                case AssignTurn():
                    self._switchboard.assign(effect)
                case SteerTurn():
                    self._switchboard.steer(effect)
                case KillWorker():
                    self._processes.kill(effect.incarnation)
                case StartWorker():
                    self._processes.start(effect.seat, effect.incarnation)

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
