"""The limits of an attempt: [budgets] with what the turn, its session and the day have used before it.

A consent to exceed a budget of the session or of the day holds for its other turns, too: it is found by the
text of its question, which names the budget and how often it was reached.
"""

from typing import Protocol

from msgspec.structs import replace

from ipc.messages import BudgetLimit
from supervisor.config.live import Live
from supervisor.journal.sums import Used


class Sums(Protocol):
    """The journal's reads of what was used, and of consents."""

    def used(self, session: str, turn: str) -> Used: ...
    def is_approved(self, question: str, session: str | None) -> bool: ...


class BudgetLimits:
    def __init__(self, sums: Sums, live: Live) -> None:
        self._sums = sums
        self._live = live

    def of(self, session: str, turn: str) -> tuple[BudgetLimit, ...]:
        """Return the limits of the turn's next attempt. Without budgets nothing is read."""
        budgets = self._live.settings.budgets
        if not any(budget.limits for budget in budgets.values()):
            return ()
        used = self._sums.used(session, turn)
        found = [
            BudgetLimit(scope, what, most, used.of(scope)[what], day=used.day if scope == "day" else "")
            for scope, budget in budgets.items()
            for what, most in budget.limits.items()
        ]
        return tuple(self._with_consent(limit, session) for limit in found)

    def _with_consent(self, limit: BudgetLimit, session: str) -> BudgetLimit:
        times = limit.times_reached()
        if not times or limit.scope == "turn":  # The answers of a turn are in its Assign.
            return limit
        asked_in = session if limit.scope == "session" else None
        is_approved = self._sums.is_approved(limit.question(times), asked_in)
        return replace(limit, allowed=times) if is_approved else limit
