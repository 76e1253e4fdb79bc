"""Worker processes of a simulated world, as the machine knows them, and which of their words still count."""

from dataclasses import dataclass, field

from supervisor.core.effects import AnswerTurn, AssignTurn, BindWorker, Effect, KillWorker, SteerTurn
from supervisor.core.events import (
    Asked,
    Event,
    Frame,
    WorkerAlive,
    WorkerDied,
    WorkerKept,
    WorkerReady,
    WorkerStarted,
    WorkerUnreachable,
)
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.state import Who


@dataclass
class Process:
    """A pretend worker process, as the machine knows it: whatever the supervisor believes."""

    who: Who
    agent: str = DEFAULT_AGENT
    session: str | None = None  # the one whose workspace its cell has
    promised: str | None = None  # the one whose workspace it is to have once the decision is committed
    is_ready: bool = False
    is_doomed: bool = False  # its end is decided, and is ordered once the decision is committed
    is_killed: bool = False
    is_dead: bool = False
    is_unproved: bool = False  # it was reported dead, but not all that it has started
    is_mute: bool = False
    job: AssignTurn | None = None
    jobs: list[AssignTurn] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)  # begun in its job, and not ended
    offers: list[SteerTurn] = field(default_factory=list)
    holds: set[int] = field(default_factory=set)  # questions of its job that it holds for
    answered: set[int] = field(default_factory=set)  # of those, the ones whose answer it is to get

    @property
    def pid(self) -> int:
        return 100 * self.who.epoch + self.who.incarnation

    @property
    def is_heard(self) -> bool:
        """What it says counts: it lives and its end is not ordered."""
        return not (self.is_dead or self.is_unproved or self.is_killed)


def promise(effect: Effect, epoch: int, processes: dict[Who, Process]) -> None:
    """The effect is decided: later events of its batch count with it."""
    if isinstance(effect, KillWorker):
        # One whose start was decided in the same batch is not there yet.
        if process := processes.get(Who(epoch, effect.seat, effect.incarnation)):
            process.is_doomed = True
    elif isinstance(effect, BindWorker):
        processes[effect.who].promised = effect.session
    elif isinstance(effect, AnswerTurn):
        processes[effect.who].answered.add(effect.hold)


def is_stale(event: Event, epoch: int, processes: dict[Who, Process]) -> bool:
    """Whether the event comes from, or speaks of, something that counts no more."""
    if isinstance(event, WorkerDied | WorkerStarted):
        who = Who(epoch, event.seat, event.incarnation)
        return who not in processes or processes[who].is_dead
    if isinstance(event, WorkerReady | WorkerAlive | WorkerKept | WorkerUnreachable):
        process = processes.get(event.who)
        return process is None or process.is_doomed or not process.is_heard
    if isinstance(event, Frame | Asked):
        process = processes.get(event.who)
        if process is None or process.job is None or process.is_doomed or not process.is_heard:
            return True
        if isinstance(event, Asked) and process.holds - process.answered:
            return True
        if isinstance(event, Asked) and event.call and event.call not in process.calls:
            return True
        return (process.job.turn, process.job.attempt) != (event.turn, event.attempt)
    return False
