"""What was measured beside its raw limit, and whether the goal was met: told, never asserted."""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.report import percentile, table


@dataclass(frozen=True, slots=True)
class Outcome:
    """Two series of one run, interleaved; the ratio of their medians is what counts.

    Without a goal it explains another outcome.
    """

    what: str
    ours: Sequence[float]
    limit: Sequence[float]
    unit: str
    bound: Literal["at most", "at least"]
    goal: float | None

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.limit)

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        is_met = self.ratio <= self.goal if self.bound == "at most" else self.ratio >= self.goal
        return "met" if is_met else "not met"

    def row(self) -> list[str]:
        # Of a rate the bad end is the low one.
        worst = 0.99 if self.bound == "at most" else 0.01
        numbers = [
            f"{value:,.{2 if value < 100 else 0}f}"
            for series in (self.ours, self.limit)
            for value in (statistics.median(series), percentile(series, worst))
        ]
        goal = "" if self.goal is None else f"{self.bound} {self.goal:g}"
        return [self.what, self.unit, *numbers, f"{self.ratio:.2f}", goal, self.verdict]


def tell(title: str, outcomes: Sequence[Outcome]) -> None:
    heads = ["", "unit", "ours p50", "ours p99", "limit p50", "limit p99", "ratio", "goal", ""]
    table(title, [heads, *(outcome.row() for outcome in outcomes)])


def rounds_asked(usual: int) -> int:
    """The one argument of every measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=usual, help=f"how often ({usual})")
    return int(parser.parse_args().rounds)
