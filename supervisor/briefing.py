"""What a worker is told with a turn: who answers, with which model, and the session so far, within limits."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ipc import messages as wire
from supervisor.core.effects import AssignTurn
from supervisor.journal.past import AttemptPast, ToolPast, TurnPast
from supervisor.live import Live

# The newest turns that fit are told: some hundred thousand tokens, far below the limit of a frame.
HISTORY_CHARACTERS_MAX = 1_000_000
HISTORY_TURNS_MAX = 200

_TOOL_CLASSES: dict[str, wire.ToolClass] = {"pure": "pure", "idempotent": "idempotent", "unsafe": "unsafe"}


class Past(Protocol):
    """What the journal can tell of earlier turns, and of earlier attempts at one."""

    def history(
        self, session: str, before_turn: int, turns_max: int, characters_max: int
    ) -> Sequence[TurnPast]: ...
    def tried(self, turn: str, before_attempt: int) -> Sequence[AttemptPast]: ...


class Briefing:
    """Makes the Assign of a turn. `endpoint` is asked at that moment: the embedded model may have moved."""

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
            say=tuple(wire.Said(message.id, message.text) for message in effect.messages),
            agent=settings.agent(effect.agent) or wire.AgentSpec(effect.agent, "builtin"),
            model=self._endpoint() or wire.ModelEndpoint("", ""),
            history=self._history(effect.session, number),
            tried=self._tried(effect),
        )

    def _history(self, session: str, number: int) -> tuple[wire.PastTurn, ...]:
        if number == 1:
            return ()
        past = self._past.history(session, number, HISTORY_TURNS_MAX, HISTORY_CHARACTERS_MAX)
        return tuple(wire.PastTurn(turn.said, tuple(map(_attempt, turn.attempts))) for turn in past)

    def _tried(self, effect: AssignTurn) -> tuple[wire.PastAttempt, ...]:
        if effect.attempt == 1:
            return ()
        return tuple(map(_attempt, self._past.tried(effect.turn, effect.attempt)))


def _attempt(past: AttemptPast) -> wire.PastAttempt:
    return wire.PastAttempt(past.text, tuple(map(_tool, past.tools)), past.cut)


def _tool(past: ToolPast) -> wire.ToolTrace:
    # A class nobody knows any more is the most careful one.
    repeat = _TOOL_CLASSES.get(past.repeat, "unsafe")
    return wire.ToolTrace(past.call, past.name, past.arguments, repeat, past.result, past.ok, past.offset)
