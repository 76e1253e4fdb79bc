"""The row of `hermesctl hosts` where a journal in a file has one host, which needs no lease."""

from ipc.paging import Row
from supervisor.config.host_settings import Hosts
from supervisor.core.placing import free_seats
from supervisor.core.state import State
from supervisor.host.banner import own_version


def alone(state: State, settings: Hosts) -> Row:
    return {
        "name": settings.own_name,
        "version": own_version(),
        "state": state.intake.value,
        "lease_seconds": None,
        "seats": state.policy.busy_seats,
        "free": max(0, free_seats(state) - len(state.queued)),
        "sessions": len(state.sessions),
        "running": len(state.busy),
        "labels": list(settings.labels),
        "life": state.epoch,
        "age_seconds": None,
        "is_here": True,
    }
