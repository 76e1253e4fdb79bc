"""The common parts of all cells of this supervisor: their boundary, and the paths hidden from them."""

import os
from functools import lru_cache
from pathlib import Path

from ipc.places import Places, credentials
from ipc.service_messages import Boundary
from supervisor.processes.agent_user import AgentUser
from supervisor.processes.cells import BEST, CellUnavailable
from supervisor.processes.seccomp import cell_filter


def boundary(places: Places, user: AgentUser, kind: str) -> Boundary:
    """Return the boundary of cells of one kind; CellUnavailable where a needed filter cannot be compiled."""
    return Boundary(
        user=user.other,
        home=os.path.expanduser("~"),
        workspaces=str(places.workspaces.resolve()),
        cell_filter=_filter(kind),
    )


def _filter(kind: str) -> bytes:
    try:
        return cell_filter()
    except CellUnavailable:
        # A weaker cell makes no promise that needs it.
        if kind == BEST:
            raise
        return b""


@lru_cache(maxsize=1)
def hidden(places: Places, key_files: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the supervisor's folders, systemd's credentials, and every other key file."""
    named = (places.config, places.state, places.runtime, *credentials(), *key_files)
    real = {path.resolve() for path in named}
    return tuple(sorted(str(path) for path in real if not real & set(path.parents)))
