"""Cells: ways to hold a worker and its descendants so that one operation ends all of them.

Only the best one also restricts what the worker sees; the others are used when hermes.toml asks for them.
"""

from supervisor.processes.cells.cgroup import CgroupCell
from supervisor.processes.cells.contract import Cell, CellUnavailable, Held, Limits
from supervisor.processes.cells.pidns import PidNamespaceCell
from supervisor.processes.cells.sweep import SweepCell

__all__ = ["BEST", "CELLS", "Cell", "CellUnavailable", "Held", "Limits"]

CELLS: dict[str, type[PidNamespaceCell] | type[CgroupCell] | type[SweepCell]] = {
    "pidns": PidNamespaceCell,
    "cgroup": CgroupCell,
    "sweep": SweepCell,
}
BEST = "pidns"
