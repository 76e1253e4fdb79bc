"""What is the same for every cell of this supervisor, and what none of them may see."""

import os
from functools import lru_cache
from pathlib import Path

from ipc.places import Places, credentials
from ipc.service_messages import Boundary
from supervisor.processes.agent_user import AgentUser
from supervisor.processes.cells import BEST, CellUnavailable
from supervisor.processes.seccomp import cell_filter


def boundary(places: Places, user: AgentUser, kind: str) -> Boundary:
    """For cells of one kind; CellUnavailable where they need filters that cannot be compiled."""
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
        # A weaker cell promises nothing that would need it.
        if kind == BEST:
            raise
        return b""


@lru_cache(maxsize=1)
def hidden(places: Places, key_files: tuple[Path, ...]) -> tuple[str, ...]:
    """The supervisor's folders, the keys that systemd hands over, and every other key, wherever it lies."""
    named = (places.config, places.state, places.runtime, *credentials(), *key_files)
    real = {path.resolve() for path in named}
    return tuple(sorted(str(path) for path in real if not real & set(path.parents)))
