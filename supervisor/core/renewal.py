"""Renewal after a reload: a new policy at once, new workers one by one; no turn is affected."""

from supervisor.core import pool
from supervisor.core.decision import Ledger
from supervisor.core.events import PolicyChanged, RenewalAsked
from supervisor.core.state import WorkerState

_OF_USE = (WorkerState.IDLE, WorkerState.BUSY)


def policy_changed(ledger: Ledger, event: PolicyChanged) -> None:
    """Apply the new policy. A timer that was set before keeps its time, and is judged by the new policy."""
    ledger.state.policy = event.policy
    pool.fit(ledger)


def renewal_asked(ledger: Ledger, event: RenewalAsked) -> None:
    """Mark every present process of these agents: it was started with outdated settings."""
    for seat, worker in ledger.state.workers.items():
        if not worker.is_empty and (event.agents is None or worker.agent in event.agents):
            ledger.state.outdated[seat] = None


def renew(ledger: Ledger) -> None:
    """Replace the next idle outdated worker, unless any seat has no ready worker: its successor may fail.

    So settings with which no worker can start cost one seat, not the service. A busy one is replaced after
    its turn.
    """
    state = ledger.state
    seat = next((seat for seat in state.outdated if seat in state.idle), None)
    if seat is not None and all(worker.state in _OF_USE for worker in state.workers.values()):
        pool.kill(ledger, state.workers[seat], pool.RENEWED)
