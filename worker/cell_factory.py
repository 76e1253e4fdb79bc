"""What the zygote makes cells with: the views it has built so far, and whom cells belong to."""

import os
import pwd

from ipc.service_messages import Boundary, CellSpec, Sandbox
from worker.cell import Enclosure
from worker.cell_view import Agent, View, build


class Enclosures:
    """A view is built when a cell that needs it is first asked for, and kept."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._agent = _agent(boundary)
        self._views: dict[tuple[Sandbox, tuple[str, ...]], View] = {}

    def of(self, spec: CellSpec) -> Enclosure:
        """OSError says what cannot be shown, or what the kernel refuses."""
        if spec.kind != "pidns":
            return Enclosure(spec, self._boundary, self._agent)
        key = (spec.sandbox, spec.hide)
        if key not in self._views:
            self._views[key] = build(spec, self._boundary, self._agent)
        return Enclosure(spec, self._boundary, self._agent, self._views[key])

    def refresh(self) -> None:
        """Follows changes of the host's files of which views have copies."""
        for view in self._views.values():
            if view.copies is not None:
                view.copies.refresh()

    def close(self) -> None:
        for view in self._views.values():
            view.close()


def _agent(boundary: Boundary) -> Agent:
    """The user that workers run as."""
    if boundary.user is not None:
        return Agent("agent", boundary.user.uid, boundary.user.gid)
    uid, gid = os.geteuid(), os.getegid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = "agent"
    return Agent(name, uid, gid)
