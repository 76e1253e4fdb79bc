"""The proof of a kill."""

from dataclasses import dataclass
from typing import Literal

# How the grace of an interrupted agent ended; empty where it had none.
Cancelled = Literal["", "answered", "unanswered"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of a kill: how many processes ended, whether all, how long it took and by which means."""

    processes: int
    all_dead: bool
    ms: float
    how: str
    cancel: Cancelled = ""


# For a turn without a process: there was nothing to kill.
NOTHING_TO_KILL = Proof(processes=0, all_dead=True, ms=0.0, how="not started")
