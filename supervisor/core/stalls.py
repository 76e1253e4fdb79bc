"""Stalls: time in which the host did not let the supervisor work counts against no worker and no turn."""

from supervisor.core.decision import Draft
from supervisor.core.events import StoodStill


def stood_still(draft: Draft, event: StoodStill) -> None:
    """Move all deadlines and all last signs of life by the length of the stall. None of it is durable."""
    state, lost = draft.state, event.seconds
    # All entries move by the same amount, so the heap stays a heap.
    state.deadlines[:] = [(at + lost, number, due) for at, number, due in state.deadlines]
    state.demand.at += lost
    for worker in state.workers.values():
        worker.pulse_at += lost
        worker.loop_at += lost
        worker.away_since = None if worker.away_since is None else worker.away_since + lost
    for outage in state.outages.values():
        outage.since += lost
        outage.probe_at += lost
        outage.limit_at += lost
    for session in state.sessions.values():
        turn = session.turn
        if turn is not None and turn.attempt is not None:
            turn.attempt.progress_at += lost
        if turn is not None and turn.away_since is not None:
            turn.away_since += lost
