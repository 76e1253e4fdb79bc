"""Assignment: from the decision that a worker gets a turn to the frame; the workspace is bound in between.

A worker is bound to its session before its first turn: the session's workspace is made and mounted in the
worker's cell, which takes a moment. Frames for a worker that is being bound wait here, in their order. A
worker that cannot be bound is reported as unreachable, so that another one gets its turn.

Frames are sent from here, at once or later, so the containment boundary of `turn` is here (containment.py):
an exception while a turn is assigned fails that turn, and the worker stays ready.

The Assign names the agent and the model, and has the messages and the past. It always fits its frame: its
three parts of unbounded length have a budget of bytes each, which leave a megabyte of the frame for the rest
(the agent's options, names). Within a budget the newest comes first, and a longer text is cut with a mark
(journal/budget.py).
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from ipc import messages as wire
from ipc.errors import PlaceError
from supervisor.config.derived import secrets
from supervisor.config.live import Live
from supervisor.config.model_settings import models_of
from supervisor.containment import Containment, Fault
from supervisor.core.effects import AnswerTurn, AssignTurn, BindWorker, SteerTurn
from supervisor.core.events import Event, Failed, WorkerReady, WorkerUnreachable
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Who
from supervisor.journal.asking import Asking
from supervisor.journal.budget import Budget, told_within
from supervisor.journal.history import AnswerPast, AttemptPast, ToolPast, TurnPast
from supervisor.workers import isolation_sessions
from supervisor.workers.budget_limits import BudgetLimits, Sums

_MIB = 1024 * 1024
# The messages: three of the largest size are whole, of more the older ones are cut.
SAY_BYTES_MAX = 4 * _MIB
# Text and tool calls of earlier attempts at this turn.
TRIED_BYTES_MAX = 2 * _MIB
# Earlier turns: some hundred thousand tokens, more than most models read.
HISTORY_BYTES_MAX = _MIB
HISTORY_TURNS_MAX = 200
# Answered questions of this turn. One that is left out is asked again.
ANSWERS_BYTES_MAX = _MIB // 4
# Told to the agent of a session that goes on without its files.
_MOVED = (
    "This session has moved from the host {}, which is not there any more, to another one. The files of its "
    "workspace are not here: look what is there before you rely on a file that was mentioned before."
)
# A journal that does not answer is asked again after this.
_ASK_AGAIN_SECONDS = 0.5

_TOOL_CLASSES: dict[str, wire.ToolClass] = {"pure": "pure", "idempotent": "idempotent", "unsafe": "unsafe"}

# The endpoints of models by their names in the settings; those that can be asked now.
Endpoints = Callable[[Sequence[str]], tuple[wire.ModelEndpoint, ...]]
# Mounts a workspace in the cell of an incarnation, then reports the fault, "" if there is none.
Bind = Callable[[int, Path, Callable[[str], None]], None]


class Workspaces(Protocol):
    def make(self, session: str) -> Path: ...


class TurnSender(Protocol):
    def assign(self, effect: AssignTurn) -> None: ...
    def steer(self, effect: SteerTurn) -> None: ...
    def answer(self, effect: AnswerTurn) -> None: ...


class Assignment:
    """`post` gets the faults of a worker or a turn."""

    def __init__(
        self,
        workspaces: Workspaces,
        bind: Bind,
        router: TurnSender,
        post: Callable[[Event], None],
        contain: Containment,
        prepare: Callable[[AssignTurn, Callable[[], None]], None] = lambda effect, then: then(),
    ) -> None:
        """`prepare` reads what the Assign of a turn needs, and calls back."""
        self._workspaces = workspaces
        self._prepare = prepare
        self._put = bind
        self._post = post
        self._bind = contain.around("worker", self._make_and_put, self._not_bound)
        self._send_assign = contain.around("turn", router.assign, self._not_assigned)
        self._send_steer = contain.around("turn", router.steer, _not_steered)
        self._send_answer = contain.around("turn", router.answer, self._not_answered)
        self._loop = asyncio.get_running_loop()
        # Frames of workers that are being bound, or whose Assign is being prepared.
        self._waiting: dict[Who, list[Callable[[], None]]] = {}

    def bind(self, effect: BindWorker) -> None:
        self._waiting[effect.who] = []
        self._bind(effect)

    def _make_and_put(self, effect: BindWorker) -> None:
        who = effect.who
        try:
            workspace = self._workspaces.make(effect.session)
        except PlaceError as error:
            self._bound(who, error.fault)
        else:
            self._put(who.incarnation, workspace, lambda fault: self._bound(who, fault))

    def _not_bound(self, fault: Fault, effect: BindWorker) -> None:
        self._bound(effect.who, fault.error)

    def _bound(self, who: Who, fault: str) -> None:
        if fault:
            self._post(WorkerUnreachable(who, Reason(EndReason.NO_WORKSPACE, fault)))
            # Not at once: the frames that were decided together with the binding are to be dropped, too.
            self._loop.call_soon(self._waiting.pop, who, None)
            return
        self._send_waiting(who)

    def _send_waiting(self, who: Who) -> None:
        """Send what waits, in order; behind an Assign that is being prepared the rest waits again."""
        waiting = self._waiting.pop(who, [])
        for sent, send in enumerate(waiting, 1):
            send()
            if who in self._waiting:
                self._waiting[who] += waiting[sent:]
                return

    def assign(self, effect: AssignTurn) -> None:
        self._when_bound(effect.who, lambda: self._assign(effect))

    def _assign(self, effect: AssignTurn) -> None:
        is_prepared = False

        def then() -> None:
            nonlocal is_prepared
            is_prepared = True
            self._send_assign(effect)
            if effect.who in self._waiting:
                self._send_waiting(effect.who)

        self._prepare(effect, then)
        if not is_prepared:
            self._waiting[effect.who] = []

    def steer(self, effect: SteerTurn) -> None:
        self._when_bound(effect.who, lambda: self._send_steer(effect))

    def answer(self, effect: AnswerTurn) -> None:
        """An attempt that has asked is bound."""
        self._send_answer(effect)

    def _when_bound(self, who: Who, send: Callable[[], None]) -> None:
        waiting = self._waiting.get(who)
        if waiting is None:
            send()
        else:
            waiting.append(send)

    def _not_assigned(self, fault: Fault, effect: AssignTurn) -> None:
        """The frame was not sent: the worker is as ready as before, and the turn fails with a reason."""
        error = f"it could not be given to a worker: {fault.error}"
        self._post(Failed(effect.who, effect.turn, effect.attempt, error, fault.hint, again=False))
        self._post(WorkerReady(effect.who))

    def _not_answered(self, fault: Fault, effect: AnswerTurn) -> None:
        """The attempt would wait for ever: another one gets the answer with its Assign."""
        self._post(WorkerUnreachable(effect.who, Reason(EndReason.NOT_READING)))


def _not_steered(fault: Fault, effect: SteerTurn) -> None:
    """A message that is not offered to the running turn waits for the next one."""


class Past(Sums, Protocol):
    """The journal's reads of earlier turns, and of earlier attempts at one."""

    def history(
        self, session: str, before_turn: int, turns_max: int, bytes_max: int
    ) -> Sequence[TurnPast]: ...
    def tried(self, turn: str, before_attempt: int, bytes_max: int) -> Sequence[AttemptPast]: ...
    def answers(self, turn: str, bytes_max: int) -> Sequence[AnswerPast]: ...


@dataclass(frozen=True, slots=True)
class _TurnPast:
    """What an Assign has of the journal."""

    history: tuple[wire.PastTurn, ...]
    tried: tuple[wire.PastAttempt, ...]
    answers: tuple[wire.PastAnswer, ...]
    limits: tuple[wire.BudgetLimit, ...]
    came_from: str = ""  # the host that had the session's files before, if that was another


class AssignBuilder:
    """Makes the Assign of a turn. `endpoints` are read at that moment: the embedded model may have moved."""

    def __init__(
        self,
        past: Past,
        live: Live,
        endpoints: Endpoints,
        asking: Asking | None = None,
        came_from: Callable[[str, str], str] | None = None,
    ) -> None:
        """`asking` is how the journal is asked; in place, when the Assign is made, if it is not given.

        `came_from` returns the host that had the files of a session until a turn, where hosts have their own.
        """
        self._came_from = came_from
        self._past = past
        self._live = live
        self._limits = BudgetLimits(past, live)
        self._endpoints = endpoints
        self._asking = asking
        self._prepared: dict[tuple[str, int], _TurnPast] = {}

    def prepare(self, effect: AssignTurn, then: Callable[[], None]) -> None:
        """Read what the Assign needs, then call back. A journal that does not answer is asked again."""
        if self._asking is None:
            then()
            return

        def found(past: _TurnPast) -> None:
            self._prepared = {(effect.turn, effect.attempt): past}
            then()

        def failed(error: Exception) -> None:
            asyncio.get_running_loop().call_later(_ASK_AGAIN_SECONDS, self.prepare, effect, then)

        self._asking.ask(lambda: self._read(effect), found, failed)

    def _read(self, effect: AssignTurn) -> _TurnPast:
        number = int(effect.turn.rpartition("/")[2])
        return _TurnPast(
            self._history(effect.session, number),
            self._tried(effect),
            self._answers(effect),
            self._limits.of(effect.session, effect.turn),
            self._came_from(effect.session, effect.turn) if self._came_from is not None else "",
        )

    def __call__(self, effect: AssignTurn) -> wire.Assign:
        settings = self._live.settings
        past = self._prepared.pop((effect.turn, effect.attempt), None) or self._read(effect)
        models = _models(self._endpoints(models_of(settings.agents.get(effect.agent))), effect)
        return wire.Assign(
            session=effect.session,
            turn=effect.turn,
            attempt=effect.attempt,
            messages=_messages(effect),
            agent=isolation_sessions.spec(settings, effect.session)
            or settings.agent(effect.agent, effect.session, _instructions(effect, past.came_from))
            or wire.AgentSpec(effect.agent, "builtin"),
            model=models[0],
            fallback=models[1:],
            history=past.history,
            tried=past.tried,
            offset=effect.offset,
            answers=past.answers,
            limits=past.limits,
            secrets=secrets(settings, effect.agent, os.environ),
        )

    def _history(self, session: str, number: int) -> tuple[wire.PastTurn, ...]:
        past = self._past.history(session, number, HISTORY_TURNS_MAX, HISTORY_BYTES_MAX)
        return tuple(wire.PastTurn(turn.messages, tuple(map(_attempt, turn.attempts))) for turn in past)

    def _tried(self, effect: AssignTurn) -> tuple[wire.PastAttempt, ...]:
        if effect.attempt == 1:
            return ()
        return tuple(map(_attempt, self._past.tried(effect.turn, effect.attempt, TRIED_BYTES_MAX)))

    def _answers(self, effect: AssignTurn) -> tuple[wire.PastAnswer, ...]:
        if effect.attempt == 1:
            return ()
        return tuple(map(_answer, self._past.answers(effect.turn, ANSWERS_BYTES_MAX)))


def _instructions(effect: AssignTurn, came_from: str) -> str:
    """Return those of the newest message that has some: they replace earlier ones. Then what has moved."""
    own = next((each.instructions for each in reversed(effect.messages) if each.instructions), "")
    moved = _MOVED.format(came_from) if came_from else ""
    return "\n\n".join(filter(None, (own, moved)))


def _models(found: tuple[wire.ModelEndpoint, ...], effect: AssignTurn) -> tuple[wire.ModelEndpoint, ...]:
    """Return the endpoints that the attempt may ask: of those that are away only the one it probes."""
    asked = [each for each in found if each.id not in effect.away or each.id == effect.probe]
    models = [replace(each, away=True) if each.id == effect.probe else each for each in asked]
    return tuple(models) or (wire.ModelEndpoint("", ""),)


def _messages(effect: AssignTurn) -> tuple[wire.TurnMessage, ...]:
    """Return the messages in order; when there is too much, the newest are whole."""

    def newest_first(budget: Budget) -> list[wire.TurnMessage]:
        shown: list[wire.TurnMessage] = []
        for each in reversed(effect.messages):
            if budget.is_spent:
                more = len(effect.messages) - len(shown)
                return [*shown, wire.TurnMessage(each.id, f"[… {more} earlier messages left out …]")]
            shown.append(wire.TurnMessage(each.id, budget.take(each.text).text))
        return shown

    return tuple(reversed(told_within(SAY_BYTES_MAX, newest_first)))


def _attempt(past: AttemptPast) -> wire.PastAttempt:
    return wire.PastAttempt(past.text, tuple(map(_tool, past.tools)), past.cut)


def _answer(past: AnswerPast) -> wire.PastAnswer:
    return wire.PastAnswer(past.kind, past.text, past.answer, past.call, past.attempt)


def _tool(past: ToolPast) -> wire.ToolTrace:
    # An unknown class counts as the most careful one.
    repeat = _TOOL_CLASSES.get(past.repeat, "unsafe")
    return wire.ToolTrace(past.call, past.name, past.arguments, repeat, past.result, past.ok, past.offset)
