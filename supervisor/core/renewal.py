"""Other settings while the service runs: a new policy at once, new workers one by one; no turn is touched."""

from supervisor.core import pool
from supervisor.core.decision import Ledger
from supervisor.core.events import PolicyChanged, RenewalAsked
from supervisor.core.state import WorkerState

_OF_USE = (WorkerState.IDLE, WorkerState.BUSY)


def policy_changed(ledger: Ledger, event: PolicyChanged) -> None:
    """From here on. A reminder that was made before keeps its time, and is judged by the new policy."""
    ledger.state.policy = event.policy
    pool.fit(ledger)


def renewal_asked(ledger: Ledger, event: RenewalAsked) -> None:
    """Every process of this moment, of these agents, was made under settings that hold no more."""
    for seat, worker in ledger.state.workers.items():
        if not worker.is_empty and (event.agents is None or worker.agent in event.agents):
            ledger.state.outdated[seat] = None


def renew(ledger: Ledger) -> None:
    """The next idle one gives way. While any seat is not of use none does: its successor may not live.

    So settings under which no worker can start cost one seat, not the service. A busy one gives way when its
    turn is over.
    """
    state = ledger.state
    seat = next((seat for seat in state.outdated if seat in state.idle), None)
    if seat is not None and all(worker.state in _OF_USE for worker in state.workers.values()):
        pool.kill(ledger, state.workers[seat], pool.RENEWED)
