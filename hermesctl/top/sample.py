"""One sample of the service, and rates from many of them; no clock, no screen, no socket."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]

# A sparkline is at most as wide as a terminal; more samples are never shown.
_STEPS_MAX = 600
_MINUTE_SECONDS = 60.0
_LEVELS = "▁▂▃▄▅▆▇█"
# The counters, and their places in the status row: in `totals`, or under an older name.
COUNTERS = {
    "turns": (("turns_done", "turns_failed", "turns_interrupted"), "turns_ended"),
    "interrupts": (("interrupts",), "interrupts"),
}


@dataclass(frozen=True)
class Sample:
    """The tables of one moment. `at` is monotonic seconds, `now` seconds since 1970."""

    at: float
    now: float
    status: Row
    workers: Sequence[Row] = ()
    sessions: Sequence[Row] = ()
    turns: Sequence[Row] = ()
    services: Sequence[Row] = ()

    def plain(self) -> Row:
        """As one JSON object."""
        return {
            "at": self.now,
            "status": self.status,
            "workers": list(self.workers),
            "sessions": list(self.sessions),
            "turns": list(self.turns),
            "services": list(self.services),
        }


@dataclass
class Counter:
    """The increments of a count from sample to sample, across restarts of the supervisor."""

    steps: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_STEPS_MAX))
    _last: tuple[object, int] | None = None

    def add(self, at: float, life: object, count: int) -> None:
        """A new epoch may count from any number, and pruning may reduce a count: neither is an increment."""
        if self._last is not None:
            gained = count - self._last[1] if self._last[0] == life else 0
            self.steps.append((at, max(0, gained)))
        self._last = (life, count)

    def per_minute(self) -> float | None:
        """The increments of the last minute, scaled up when less than a minute was observed."""
        if len(self.steps) < 2:
            return None
        end = self.steps[-1][0]
        recent = [(at, gained) for at, gained in self.steps if at > end - _MINUTE_SECONDS]
        # The first interval began before the observation.
        whole = recent if len(recent) < len(self.steps) else recent[1:]
        seconds = _MINUTE_SECONDS if whole is recent else end - recent[0][0]
        return sum(gained for _, gained in whole) * _MINUTE_SECONDS / seconds if seconds > 0 else None

    def spark(self, room: int) -> str:
        return sparkline([gained for _, gained in self.steps], room)


class Trail:
    """The counters of all samples so far."""

    def __init__(self) -> None:
        self.counters = {name: Counter() for name in COUNTERS}

    def add(self, sample: Sample) -> None:
        for name, counter in self.counters.items():
            count = _count(sample.status, *COUNTERS[name])
            if count is not None:
                counter.add(sample.at, sample.status.get("epoch"), count)

    def rates(self) -> dict[str, float | None]:
        return {f"{name}_per_minute": counter.per_minute() for name, counter in self.counters.items()}


def sparkline(values: Sequence[float], room: int) -> str:
    """The last values as bars, the newest at the right.

    Zero is the lowest bar, any other value is above it.
    """
    shown = list(values)[-room:] if room > 0 else []
    top = max(shown, default=0)
    steps = len(_LEVELS) - 1
    bars = [_LEVELS[max(1, round(value / top * steps)) if value > 0 else 0] for value in shown]
    return "".join(bars).rjust(room)


def _count(status: Mapping[str, Any], parts: Sequence[str], alone: str) -> int | None:
    totals = status.get("totals")
    if isinstance(totals, Mapping) and any(part in totals for part in parts):
        return sum(int(totals.get(part) or 0) for part in parts)
    found = status.get(alone)
    return int(found) if isinstance(found, int | float) else None
