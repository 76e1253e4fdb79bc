"""What `decide` asks to be reminded of. A reminder that no longer applies is ignored when it comes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnDue:
    """The whole turn has had its time, unless that was stopped since: by a question, or by an outage."""

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
class ReadyDue:
    """A worker that is starting, or has just finished, should be ready by now."""

    seat: int
    incarnation: int
    turns: int


@dataclass(frozen=True, slots=True)
class LifeDue:
    """Time to look for a worker's signs of life."""

    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class RestDue:
    """A seat has rested long enough to try again."""

    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class RetryDue:
    """A turn has rested long enough since this attempt to be tried again."""

    session: str
    turn: str
    attempts: int


@dataclass(frozen=True, slots=True)
class OutageDue:
    """An endpoint that is away may be due for a probe, and turns may have waited for it too long."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class SparesDue:
    """Time to see whether fewer spares would do."""


Due = TurnDue | SilenceDue | ReadyDue | LifeDue | RestDue | RetryDue | OutageDue | SparesDue
