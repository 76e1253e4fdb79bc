"""Renewal after a reload: a new policy at once, new workers one by one; no turn is affected."""

from supervisor.core import pool, spares
from supervisor.core.decision import Draft
from supervisor.core.events import PolicyChanged, RenewalAsked
from supervisor.core.state import WorkerState

_OF_USE = (WorkerState.IDLE, WorkerState.BUSY)


def policy_changed(draft: Draft, event: PolicyChanged) -> None:
    """Apply the new policy. A timer that was set before keeps its time, and is judged by the new policy."""
    draft.state.policy = event.policy
    spares.bound(draft.state)
    pool.fit(draft)


def renewal_asked(draft: Draft, event: RenewalAsked) -> None:
    """Mark every present process of these agents: it was started with outdated settings.

    One of another runtime could not answer the agent's next turn: it ends at once, or after its turn.
    """
    for seat, worker in draft.state.workers.items():
        if not worker.is_empty and (event.agents is None or worker.agent in event.agents):
            draft.state.outdated[seat] = None
            if event.at_once and worker.state is not WorkerState.BUSY:
                pool.kill(draft, worker, pool.RENEWED)


def renew(draft: Draft) -> None:
    """Replace the next idle outdated worker, unless any seat has no ready worker: its successor may fail.

    So settings with which no worker can start cost one seat, not the service. A busy one is replaced after
    its turn.
    """
    state = draft.state
    seat = next((seat for seat in state.outdated if seat in state.idle), None)
    if seat is not None and all(worker.state in _OF_USE for worker in state.workers.values()):
        pool.kill(draft, state.workers[seat], pool.RENEWED)
