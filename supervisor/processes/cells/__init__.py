"""Ways to hold a worker and all it starts so that one act ends all of it; the best that works is used."""

from supervisor.processes.cells.cell import Cell, CellUnavailable, Held, Limits
from supervisor.processes.cells.cgroup import CgroupCell
from supervisor.processes.cells.pidns import PidNamespaceCell
from supervisor.processes.cells.sweep import SweepCell

__all__ = ["BEST_FIRST", "Cell", "CellUnavailable", "Held", "Limits"]

BEST_FIRST: dict[str, type[PidNamespaceCell] | type[CgroupCell] | type[SweepCell]] = {
    "pidns": PidNamespaceCell,
    "cgroup": CgroupCell,
    "sweep": SweepCell,
}
