"""The faults with which agents could not be started, as their workers have told them, for people to see.

A program of its own may be missing, end at once, speak something else or need a sign-in: that is known after
a worker has tried to start it, in its set-up or in a turn. The last such fault is kept until a turn of the
agent is answered, or its settings change. Nothing is decided by it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class AgentFaults:
    """`settings` returns what decides whether an agent can start: a fault under other settings is over."""

    def __init__(self, settings: Callable[[str], object]) -> None:
        self._settings = settings
        # By agent: fault, hint, and the settings then.
        self._of: dict[str, tuple[str, str, object]] = {}

    def told(self, agent: str, error: str, hint: str) -> None:
        self._of[agent] = error, hint, self._settings(agent)

    def answered(self, agent: str) -> None:
        """It could be started after all."""
        self._of.pop(agent, None)

    def over(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows of agents with these faults, where the runtime has none of its own."""
        return [dict(row) | self._words(row) for row in rows]

    def _words(self, row: Mapping[str, Any]) -> dict[str, Any]:
        found = self._of.get(row["agent"])
        if row["fault"] or found is None or found[2] != self._settings(row["agent"]):
            return {}
        return {"state": "failed", "fault": found[0], "hint": found[1]}
