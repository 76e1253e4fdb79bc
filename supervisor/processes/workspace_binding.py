"""Binding of workspaces into cells: one order to the zygote for each, and a callback for its answer."""

from collections.abc import Mapping
from pathlib import Path

from ipc.service_messages import Bind
from supervisor.processes.orphans import Record
from supervisor.processes.worker_process import Phase, Worker
from supervisor.processes.zygote_client import Done


class Bindings:
    """Never blocks. Each callback is called once, also when the worker or its zygote ends before."""

    def __init__(self, workers: Mapping[int, Worker], record: Record) -> None:
        self._workers = workers
        self._record = record

    def bind(self, incarnation: int, workspace: Path, done: Done) -> None:
        """Show a worker its session's workspace; `done` gets the fault, "" when there is none."""
        worker = self._workers.get(incarnation)
        if worker is None or worker.phase is not Phase.HELD or worker.held is None:
            done("it has ended")
            return
        worker.workspace = workspace.name
        self._record.add(worker.held.keeper, worker.workspace)
        zygote = worker.spawner.zygote
        if not worker.spawner.cell.has_view:
            done("")
        elif zygote is None or not zygote.send(Bind(incarnation, workspace.name), done=done):
            done("its zygote accepts no order")
