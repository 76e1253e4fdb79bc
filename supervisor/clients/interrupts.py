"""Interrupts of clients, also while the journal cannot be written.

An interrupt is an event like any other: decided, committed, then the worker is killed and the client
answered. That needs a disk. With a full one, or one that does not answer, a turn that spends money could not
be stopped. So an interrupt that is not committed in time is carried out first and recorded when there is
space: the one effect that may come before its commit is a kill that a person asked for.

    asked ──┬── committed in time ──► answered: done; the proof follows as an event
            └── not in time, or the journal is known to be unwritable
                   ├── a process runs the turn: it is killed ──► answered: done, with the proof,
                   │                                             and not yet recorded
                   └── none does ──────────────────────────────► answered: not yet recorded

The event stays in the engine's inbox, behind what came before it. When the disk accepts records again it is
decided as if it had come then, and so exactly once. Two fences keep a late record from affecting anything
else: the process that is killed is the one that ran the session's turn when the interrupt came, and the
event then names that turn, so that a turn that has begun since is not affected.

The kill is promised, not the record. If the supervisor dies before the record, the next epoch finds an
attempt that was cut off, and treats its turn by `[turns] resume`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ipc import messages as wire
from ipc import paging
from supervisor.core import effects
from supervisor.core.events import InterruptAsked, WorkerDied
from supervisor.core.inbox import too_late
from supervisor.core.state import Proof
from supervisor.event_sink import InterruptSink

# A commit takes milliseconds, a slow one a tenth of a second. A slower disk is not waited for.
_PATIENCE_SECONDS = 0.3
_LOOK_AGAIN_SECONDS = 0.05
_NOT_COMMITTED = "a commit of the journal has not come back"

Reply = Callable[[wire.Answer], None]


class Log(Protocol):
    def write(self, verb: str, **fields: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one interrupt; `unwritten` says why it is not recorded yet."""

    answer: effects.Answer
    killed: tuple[wire.Killed, ...] = ()
    unwritten: str = ""


@dataclass(slots=True, eq=False)
class _Asked:
    """A pending interrupt. `incarnation` is the process that runs the turn, 0 when none does."""

    request: InterruptAsked
    turn: str
    incarnation: int
    told: list[Callable[[Outcome], None]] = field(default_factory=list)
    is_killed: bool = False
    is_told: bool = False
    timer: asyncio.TimerHandle | None = None

    @property
    def means(self) -> tuple[str, int, bool]:
        """Requests with the same meaning are treated as one."""
        return self.turn, self.incarnation, self.request.drop

    def tell(self, outcome: Outcome) -> None:
        if not self.is_told:
            self.is_told = True
            if self.timer is not None:
                self.timer.cancel()
            for tell in self.told:
                tell(outcome)


class _Late:
    """Gives the event of an interrupt when it is decided."""

    def __init__(self, asked: _Asked, settle: Callable[[_Asked], None]) -> None:
        self.session = asked.request.session
        self._asked = asked
        self._settle = settle

    def __call__(self) -> InterruptAsked:
        """One that was carried out already names its turn, so that no later turn is affected."""
        self._settle(self._asked)
        request = self._asked.request
        return request if not self._asked.is_killed else _of(request, self._asked.turn)


class Interrupts:
    """`kill` ends a worker's cell; the proof returns by `worker_died`."""

    def __init__(self, engine: InterruptSink, kill: Callable[[int], None], log: Log) -> None:
        self._engine = engine
        self._kill = kill
        self._log = log
        self._loop = asyncio.get_running_loop()
        # Undecided interrupts by session.
        self._unrecorded: dict[str, list[_Asked]] = {}
        # By process that was killed for them: interrupts that wait for its end, and the proofs of ended ones.
        # An interrupt may be decided by then and wait here for its own commit.
        self._awaiting: dict[int, list[_Asked]] = {}
        self._proofs: dict[int, Proof] = {}

    def ask(self, request: InterruptAsked, tell: Callable[[Outcome], None]) -> None:
        """Interrupt one session; `tell` is called once."""
        turn, incarnation = self._running(request.session)
        asked = _Asked(request, turn, incarnation, [tell])
        if self._engine.trouble is not None:
            self._without_disk(asked)
            return
        self._post(asked)
        asked.timer = self._loop.call_later(_PATIENCE_SECONDS, self._overdue, asked)

    def worker_died(self, event: WorkerDied) -> None:
        """Give the proof of an ended process to the interrupts that wait for it."""
        awaiting = [each for each in self._awaiting.pop(event.incarnation, ()) if not each.is_told]
        if awaiting:
            self._proofs[event.incarnation] = event.proof
        for asked in awaiting:
            self._tell_killed(asked, event.proof)

    def _running(self, session: str) -> tuple[str, int]:
        """Return the session's open turn, and the process that runs it."""
        found = self._engine.state.sessions.get(session)
        turn = found.turn if found else None
        if turn is None:
            return "", 0
        who = turn.attempt.who if turn.attempt else None
        # Numbers of an earlier life are others' in this one.
        incarnation = who.incarnation if who and who.epoch == self._engine.state.epoch else 0
        return turn.id, incarnation if self._engine.has_its_turn(incarnation) else 0

    def _post(self, asked: _Asked) -> None:
        self._unrecorded.setdefault(asked.request.session, []).append(asked)

        def recorded(answer: effects.Answer) -> None:
            self._proofs.pop(asked.incarnation, None)
            asked.tell(Outcome(answer))

        self._engine.post(_Late(asked, self._settle), recorded)

    def _settle(self, asked: _Asked) -> None:
        """The core decides it now. If its commit does not come back either, it is still carried out."""
        session = asked.request.session
        self._unrecorded[session].remove(asked)
        if not self._unrecorded[session]:
            del self._unrecorded[session]

    def _overdue(self, asked: _Asked) -> None:
        """Not committed in time: the disk does not answer, or the loop was busy."""
        if asked.is_told:
            return
        if self._engine.trouble is not None or self._engine.commit_seconds >= _PATIENCE_SECONDS:
            self._carry_out(asked)
        else:
            asked.timer = self._loop.call_later(_LOOK_AGAIN_SECONDS, self._overdue, asked)

    def _without_disk(self, asked: _Asked) -> None:
        """Act at once. An interrupt without effect is not kept: a disk may stay full for long."""
        unrecorded = self._unrecorded.get(asked.request.session, ())
        before = next((each for each in unrecorded if each.means == asked.means), None)
        if before is not None and not before.is_told:
            before.told += asked.told
            return
        session = self._engine.state.sessions.get(asked.request.session)
        if before is None and session is not None and (session.turn or session.waiting):
            self._post(asked)
        self._carry_out(asked)

    def _carry_out(self, asked: _Asked) -> None:
        """Kill the process of the turn, if it still runs it, and answer without a record."""
        request = asked.request
        session = self._engine.state.sessions.get(request.session)
        refused = too_late(session, request.expect_turn) if session is not None else None
        if refused is not None:
            asked.tell(Outcome(refused))
        elif not asked.incarnation or self._running(request.session) != (asked.turn, asked.incarnation):
            turns = (asked.turn,) if asked.turn else ()
            note = "" if turns else f"nothing runs in session {request.session}"
            asked.tell(Outcome(effects.Done(turns, note), unwritten=self._reason if turns else ""))
        elif (proof := self._proofs.get(asked.incarnation)) is not None:
            self._tell_killed(asked, proof)
        else:
            asked.is_killed = True
            self._awaiting.setdefault(asked.incarnation, []).append(asked)
            self._log.write("interrupt.unrecorded", turn=asked.turn, incarnation=asked.incarnation)
            self._kill(asked.incarnation)

    def _tell_killed(self, asked: _Asked, proof: Proof) -> None:
        killed = wire.Killed(asked.turn, proof.processes, proof.all_dead, round(proof.ms, 1), proof.how)
        asked.tell(Outcome(effects.Done((asked.turn,)), (killed,), self._reason))

    @property
    def _reason(self) -> str:
        trouble = self._engine.trouble
        return trouble.error if trouble is not None else _NOT_COMMITTED


def answer_to(outcomes: list[Outcome]) -> wire.Answer:
    """One answer for an interrupt of one session, or of all."""
    if len(outcomes) == 1 and isinstance(refused := outcomes[0].answer, effects.Refused):
        return wire.Refused(refused.error, refused.hint, refused.retry_after_seconds, refused.code)
    done = [each.answer for each in outcomes if isinstance(each.answer, effects.Done)]
    note = done[0].note if len(done) == 1 else ""
    page = paging.done((turn for each in done for turn in each.turns), note)
    shown = frozenset(page.turns)
    return wire.Done(
        page.turns,
        page.note,
        page.more,
        tuple(killed for each in outcomes for killed in each.killed if killed.turn in shown),
        next((each.unwritten for each in outcomes if each.unwritten), ""),
    )


def _of(request: InterruptAsked, turn: str) -> InterruptAsked:
    return InterruptAsked(request.session, request.by, turn, request.drop)
