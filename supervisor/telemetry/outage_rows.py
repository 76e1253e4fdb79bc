"""Unavailable model endpoints, for queries: since when, why, what waits and when the next try is."""

from collections.abc import Iterator
from typing import Any

from supervisor.clock import time_of_day
from supervisor.core import outages
from supervisor.core.state import Outage, State, Turn


def rows(state: State, now: float) -> list[dict[str, Any]]:
    """Return a row for each unavailable endpoint; `next_try_seconds` is 0 during a try."""
    return [
        {
            "endpoint": endpoint,
            "since": outage.since,
            "error": outage.error,
            "hint": outage.hint,
            "turns": _waiting(state, endpoint),
            "next_try_seconds": round(max(0.0, outage.probe_at - now), 1),
        }
        for endpoint, outage in state.outages.items()
    ]


def sentences(state: State, now: float) -> Iterator[str]:
    for endpoint, outage in state.outages.items():
        count = _waiting(state, endpoint)
        turns = "1 turn waits" if count == 1 else f"{count} turns wait"
        yield f"{_since(outage)}; {turns}; {outages.next_try(state, outage, now)}; {outage.hint}"


def of_turn(state: State, turn: Turn, now: float) -> str:
    """Return why the turn waits, if it waits for its endpoint; else nothing."""
    outage = outages.of_turn(state, turn)
    return f"{_since(outage)}; {outages.next_try(state, outage, now)}" if outage else ""


def waiting(state: State) -> int:
    """Return the number of turns that wait for any endpoint."""
    return sum(_waiting(state, endpoint) for endpoint in state.outages)


def _since(outage: Outage) -> str:
    return f"model unreachable since {time_of_day(outage.since)}: {outage.error}"


def _waiting(state: State, endpoint: str) -> int:
    return sum(1 for _ in outages.waiting(state, endpoint))
