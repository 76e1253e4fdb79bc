"""A clock that stands still."""

from supervisor.clock import Clock

NOW = 1000.0


class FixedClock(Clock):
    def now(self) -> float:
        return NOW
