"""Timers of the core. One that no longer applies is ignored when it is due."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnDue:
    """The deadline of the whole turn, unless it was suspended since: by a question, or by an outage."""

    session: str
    turn: str
    pauses: int


@dataclass(frozen=True, slots=True)
class SilenceDue:
    """An attempt may have made no progress for too long."""

    session: str
    turn: str
    attempt: int


@dataclass(frozen=True, slots=True)
class HoldDue:
    """An attempt may have held for the answer to this question of its turn for too long."""

    session: str
    turn: str
    number: int


@dataclass(frozen=True, slots=True)
class ReadyDue:
    """A worker that is starting, or has just finished, should be ready by now."""

    seat: int
    incarnation: int
    turns: int


@dataclass(frozen=True, slots=True)
class LifeDue:
    """Time to check a worker's signs of life."""

    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class RestDue:
    """The pause of a seat after a failed start is over."""

    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The pause of a turn after this attempt is over."""

    session: str
    turn: str
    attempts: int


@dataclass(frozen=True, slots=True)
class OutageDue:
    """An unavailable endpoint may be due for a probe, and turns may have waited for it too long."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class SparesDue:
    """Time to check whether fewer spares are enough."""


Due = TurnDue | SilenceDue | HoldDue | ReadyDue | LifeDue | RestDue | RetryDue | OutageDue | SparesDue
