"""Binding of workspaces into cells: one order to the zygote for each, and a callback for its answer."""

from collections.abc import Callable
from pathlib import Path

from ipc.service_messages import Bind, Bound
from supervisor.processes.orphans import Record
from supervisor.processes.worker_process import Phase, Worker

# Receives the fault, "" when there is none.
Done = Callable[[str], None]


class Bindings:
    """Never blocks. Each callback is called once, also when the worker or its zygote ends before."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._waiting: dict[int, Done] = {}

    def ask(self, worker: Worker | None, workspace: Path, done: Done) -> None:
        if worker is None or worker.phase is not Phase.HELD or worker.held is None:
            done("it has ended")
            return
        worker.workspace = workspace.name
        self._record.add(worker.held.keeper, worker.workspace)
        if not worker.spawner.cell.has_view:
            done("")
        elif worker.spawner.bind(Bind(worker.incarnation, workspace.name)):
            self._waiting[worker.incarnation] = done
        else:
            done("its zygote accepts no order")

    def told(self, message: Bound) -> None:
        self._tell(message.incarnation, message.error)

    def forget(self, incarnation: int) -> None:
        """Answer the callbacks of a worker that has ended."""
        self._tell(incarnation, "it has ended")

    def _tell(self, incarnation: int, fault: str) -> None:
        done = self._waiting.pop(incarnation, None)
        if done is not None:
            done(fault)
