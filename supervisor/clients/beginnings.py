"""The history with which a new session begins: the turns of a request, or those of another session."""

from collections.abc import Sequence
from typing import Protocol

from ipc import messages as wire
from supervisor.core.events import BeginAsked
from supervisor.core.state import turn_id
from supervisor.journal.history import AttemptPast, TurnPast, encoded
from supervisor.journal.reader import AskedOf

# As much as one attempt is told of earlier turns (supervisor/workers/assignment.py): more would not be read.
_BYTES_MAX = 1024 * 1024
_TURNS_MAX = 200


class Past(Protocol):
    def session_seq(self, session: str) -> int: ...
    def asked_of(self, turn: str) -> AskedOf | None: ...
    def history(
        self, session: str, before_turn: int, turns_max: int, bytes_max: int
    ) -> Sequence[TurnPast]: ...


def beginning(request: wire.Begin, past: Past) -> BeginAsked | wire.Refused:
    """Return the event that the request means."""
    if request.from_session:
        found = _copied(request, past)
        if isinstance(found, wire.Refused):
            return found
    else:
        found = _imported(request.turns)
    turns = tuple(map(encoded, found))
    return BeginAsked(request.session, request.key, request.from_session, request.through_turn, turns)


def _copied(request: wire.Begin, past: Past) -> Sequence[TurnPast] | wire.Refused:
    origin, number = request.from_session, request.through_turn
    if not past.session_seq(origin):
        hint = "see `hermesctl sessions` for those there are"
        return wire.Refused(f"there is no session {origin}", hint, code="unknown")
    if number:
        turn = turn_id(origin, number)
        asked = past.asked_of(turn)
        if asked is None:
            hint = f"see `hermesctl turns --session {origin}` for those there are"
            return wire.Refused(f"there is no turn {turn}", hint, code="unknown")
        if asked.state not in ("done", "failed", "interrupted"):
            return wire.Refused(f"turn {turn} has not ended", "wait for its end", code="conflict")
    return past.history(origin, number + 1, _TURNS_MAX, _BYTES_MAX)


def _imported(turns: Sequence[wire.Exchange]) -> Sequence[TurnPast]:
    """Return the newest that fit, oldest first."""
    found: list[TurnPast] = []
    left = _BYTES_MAX
    for number in range(len(turns), max(0, len(turns) - _TURNS_MAX), -1):
        exchange = turns[number - 1]
        answer = AttemptPast(exchange.assistant, (), "")
        turn = TurnPast("", number, (exchange.user,), (answer,) if exchange.assistant else ())
        left -= len(encoded(turn).encode())
        if left < 0:
            break
        found.append(turn)
    return found[::-1]
