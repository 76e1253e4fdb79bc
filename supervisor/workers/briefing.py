"""Builds the Assign of a turn: the agent, the model, the messages, and the past.

An Assign always fits its frame. Its three parts of unbounded length have a budget of bytes each, which leave
a megabyte of the frame for the rest (the agent's options, names). Within a budget the newest comes first, and
a longer text is cut with a mark (journal/budget.py).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from ipc import messages as wire
from supervisor.config.live import Live
from supervisor.core.effects import AssignTurn
from supervisor.journal.budget import Budget, told_within
from supervisor.journal.history import AttemptPast, ToolPast, TurnPast
from supervisor.workers import isolation_sessions

_MIB = 1024 * 1024
# The messages: three of the largest size are whole, of more the older ones are cut.
SAY_BYTES_MAX = 4 * _MIB
# Text and tool calls of earlier attempts at this turn.
TRIED_BYTES_MAX = 2 * _MIB
# Earlier turns: some hundred thousand tokens, more than most models read.
HISTORY_BYTES_MAX = _MIB
HISTORY_TURNS_MAX = 200

_TOOL_CLASSES: dict[str, wire.ToolClass] = {"pure": "pure", "idempotent": "idempotent", "unsafe": "unsafe"}


class Past(Protocol):
    """The journal's reads of earlier turns, and of earlier attempts at one."""

    def history(
        self, session: str, before_turn: int, turns_max: int, bytes_max: int
    ) -> Sequence[TurnPast]: ...
    def tried(self, turn: str, before_attempt: int, bytes_max: int) -> Sequence[AttemptPast]: ...


class Briefing:
    """Makes the Assign of a turn. `endpoint` is read at that moment: the embedded model may have moved."""

    def __init__(self, past: Past, live: Live, endpoint: Callable[[], wire.ModelEndpoint | None]) -> None:
        self._past = past
        self._live = live
        self._endpoint = endpoint

    def __call__(self, effect: AssignTurn) -> wire.Assign:
        settings = self._live.settings
        number = int(effect.turn.rpartition("/")[2])
        return wire.Assign(
            session=effect.session,
            turn=effect.turn,
            attempt=effect.attempt,
            say=_say(effect),
            agent=isolation_sessions.spec(settings, effect.session)
            or settings.agent(effect.agent)
            or wire.AgentSpec(effect.agent, "builtin"),
            model=_endpoint(self._endpoint(), effect),
            history=self._history(effect.session, number),
            tried=self._tried(effect),
            offset=effect.said_before,
        )

    def _history(self, session: str, number: int) -> tuple[wire.PastTurn, ...]:
        if number == 1:
            return ()
        past = self._past.history(session, number, HISTORY_TURNS_MAX, HISTORY_BYTES_MAX)
        return tuple(wire.PastTurn(turn.said, tuple(map(_attempt, turn.attempts))) for turn in past)

    def _tried(self, effect: AssignTurn) -> tuple[wire.PastAttempt, ...]:
        if effect.attempt == 1:
            return ()
        return tuple(map(_attempt, self._past.tried(effect.turn, effect.attempt, TRIED_BYTES_MAX)))


def _endpoint(found: wire.ModelEndpoint | None, effect: AssignTurn) -> wire.ModelEndpoint:
    endpoint = found or wire.ModelEndpoint("", "")
    return replace(endpoint, away=True) if effect.away_since is not None else endpoint


def _say(effect: AssignTurn) -> tuple[wire.Said, ...]:
    """Return the messages in order; when there is too much, the newest are whole."""

    def newest_first(budget: Budget) -> list[wire.Said]:
        told: list[wire.Said] = []
        for each in reversed(effect.messages):
            if budget.is_spent:
                more = len(effect.messages) - len(told)
                return [*told, wire.Said(each.id, f"[… {more} earlier messages left out …]")]
            told.append(wire.Said(each.id, budget.take(each.text).text))
        return told

    return tuple(reversed(told_within(SAY_BYTES_MAX, newest_first)))


def _attempt(past: AttemptPast) -> wire.PastAttempt:
    return wire.PastAttempt(past.text, tuple(map(_tool, past.tools)), past.cut)


def _tool(past: ToolPast) -> wire.ToolTrace:
    # An unknown class counts as the most careful one.
    repeat = _TOOL_CLASSES.get(past.repeat, "unsafe")
    return wire.ToolTrace(past.call, past.name, past.arguments, repeat, past.result, past.ok, past.offset)
