"""Makes the parts of new cells: builds and keeps views, and knows the user of cells."""

import os
import pwd

from ipc.service_messages import Boundary, CellSpec, Sandbox
from worker.cell import CellSetup
from worker.cell_view import Agent, View, build


class CellFactory:
    """Builds a view when the first cell that needs it is requested, and keeps it."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._agent = _agent(boundary)
        self._views: dict[tuple[Sandbox, tuple[str, ...]], View] = {}

    def setup_for(self, spec: CellSpec) -> CellSetup:
        """Raises OSError that names the path that cannot be shown, or the call that the kernel refuses."""
        if spec.kind != "pidns":
            return CellSetup(spec, self._boundary, self._agent)
        key = (spec.sandbox, spec.hide)
        if key not in self._views:
            self._views[key] = build(spec, self._boundary, self._agent)
        return CellSetup(spec, self._boundary, self._agent, self._views[key])

    def refresh(self) -> None:
        """Applies changes of the host's files to the copies in views."""
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
