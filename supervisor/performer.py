"""Carries a committed batch out, in order: each effect goes to the part of the supervisor that performs it.

The order of a batch: kills that end a turn, because a person waits for them; answers; events; both are given
to the kernel, so that clients read them while the rest is done; all other effects in the order of their
decisions; starts and the kills of workers without a turn last, because each takes milliseconds. No worker is
killed before its start: one that has a turn was ready in an earlier batch. One that got its turn in the same
batch is killed before it is told of the turn, which does no harm. Workers learn that their frames are safe
after all that.

This module declares what is asked of each part, and knows nothing else of them. Outcomes come back as events.

An exception while a worker is started or killed is not contained, because a process would be out of sight: it
ends the supervisor (engine.py). One in the handling of a clip costs the clip (containment.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, assert_never

from supervisor.core.effects import (
    AnswerTurn,
    AssignTurn,
    BindWorker,
    Decision,
    Effect,
    EndGrace,
    ForgetClip,
    KillWorker,
    StartWorker,
    SteerTurn,
    Transcribe,
    WarmRuntime,
)
from supervisor.core.events import Event, NotTranscribed
from supervisor.core.records import Record
from supervisor.decider import Containment, Decided, Fault


class Processes(Protocol):
    """Starts and kills worker processes; has runtimes of agents ready to start some."""

    def start(self, seat: int, incarnation: int, agent: str) -> None: ...
    def kill(self, incarnation: int) -> None: ...
    def want(self, agent: str) -> None: ...


class Cancellation(Protocol):
    """Kills workers whose agents have a grace, which `graces` holds by incarnation."""

    graces: Mapping[int, float]

    def end(self, effect: KillWorker) -> None: ...
    def end_grace(self, incarnation: int) -> None: ...


class Router(Protocol):
    """The sockets of the workers: tells them which of their frames are safe."""

    def all_taken(self) -> None: ...
    def acknowledge(self) -> None: ...


class Assignment(Protocol):
    """Brings turns to their workers."""

    def bind(self, effect: BindWorker) -> None: ...
    def assign(self, effect: AssignTurn) -> None: ...
    def steer(self, effect: SteerTurn) -> None: ...
    def answer(self, effect: AnswerTurn) -> None: ...


class Transcription(Protocol):
    """Has clips transcribed."""

    def transcribe(self, effect: Transcribe) -> None: ...
    def forget(self, effect: ForgetClip) -> None: ...


class Subscriptions(Protocol):
    """Shows committed records to the clients that follow a session."""

    def publish(self, records: Sequence[Record]) -> None: ...


class Clients(Protocol):
    """The sockets of the clients: sends what they collected."""

    def flush(self) -> None: ...


class DecisionLog(Protocol):
    """Writes decisions for people to read."""

    def decided(self, decisions: Iterable[Decision]) -> None: ...


class Meter(Protocol):
    """Counts decisions and commits."""

    def decided(self, event: Event, decision: Decision) -> None: ...
    def committed(self, seconds: float, count: int) -> None: ...


class Actions(Protocol):
    """Everything that a batch does, called in the order in which it is to be done."""

    def act(self, effect: Effect) -> None: ...
    def publish(self, records: Sequence[Record]) -> None: ...
    def flush(self) -> None: ...
    def acknowledge(self) -> None: ...
    def decided(self, batch: Decided) -> None: ...


def perform(batch: Decided, actions: Actions) -> None:
    """Do all that was decided in a batch; it is on disk."""
    ends, others, starts = _in_order([effect for _, each, _ in batch for effect in each.effects])
    for effect in ends:
        actions.act(effect)
    for _, decision, give_answer in batch:
        if give_answer is not None and decision.answer is not None:
            give_answer(decision.answer)
    actions.publish([record for _, decision, _ in batch for record in decision.records])
    actions.flush()
    for effect in (*others, *starts):
        actions.act(effect)
    actions.acknowledge()
    actions.decided(batch)


def _in_order(effects: list[Effect]) -> tuple[list[Effect], list[Effect], list[Effect]]:
    """Kills that end a turn; all else; and starts together with the kills of workers without a turn."""
    ends, others, starts = list[Effect](), list[Effect](), list[Effect]()
    for effect in effects:
        if isinstance(effect, StartWorker):
            starts.append(effect)
        elif isinstance(effect, KillWorker):
            (ends if effect.turn else starts).append(effect)
        elif isinstance(effect, EndGrace):
            ends.append(effect)
        else:
            others.append(effect)
    return ends, others, starts


class Performer:
    """The outputs of the decider and the actions of a batch. `post` takes what could not be done."""

    def __init__(
        self,
        *,
        processes: Processes,
        cancellation: Cancellation,
        router: Router,
        assignment: Assignment,
        transcription: Transcription,
        subscriptions: Subscriptions,
        clients: Clients,
        log: DecisionLog,
        meter: Meter,
        contain: Containment,
        post: Callable[[Event], None],
    ) -> None:
        # Once a batch, and nothing is added to them here: called without a step in between.
        self.all_taken = router.all_taken
        self.acknowledge = router.acknowledge
        self.publish = subscriptions.publish
        self.flush = contain.around("loop", clients.flush, _not_flushed)
        self.committed = meter.committed
        self._processes = processes
        self._cancellation, self._graces = cancellation, cancellation.graces
        self._assignment = assignment
        self._log = log
        self._meter = meter
        self._post = post
        self._transcribe = contain.around("clip", transcription.transcribe, self._not_transcribed)
        self._forget = contain.around("clip", transcription.forget, _not_forgotten)

    def act(self, effect: Effect) -> None:
        match effect:
            case BindWorker():
                self._assignment.bind(effect)
            case AssignTurn():
                self._assignment.assign(effect)
            case SteerTurn():
                self._assignment.steer(effect)
            case AnswerTurn():
                self._assignment.answer(effect)
            case KillWorker() if effect.incarnation in self._graces:
                self._cancellation.end(effect)
            case KillWorker():
                self._processes.kill(effect.incarnation)
            case EndGrace():
                self._cancellation.end_grace(effect.who.incarnation)
            case StartWorker():
                self._processes.start(effect.seat, effect.incarnation, effect.agent)
            case WarmRuntime():
                self._processes.want(effect.agent)
            case Transcribe():
                self._transcribe(effect)
            case ForgetClip():
                self._forget(effect)
            case _:
                assert_never(effect)

    def decided(self, batch: Decided) -> None:
        for event, decision, _ in batch:
            self._meter.decided(event, decision)
        self._log.decided(decision for _, decision, _ in batch)

    def _not_transcribed(self, fault: Fault, effect: Transcribe) -> None:
        self._post(NotTranscribed(effect.session, effect.message, fault.error, fault.hint))


def _not_flushed(fault: Fault) -> None:
    """Every channel sends at the end of this iteration of the loop, too."""


def _not_forgotten(fault: Fault, effect: ForgetClip) -> None:
    """A clip that is not forgotten is transcribed and its answer is ignored."""
