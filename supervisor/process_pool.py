"""The interface of the worker processes towards the wiring."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from supervisor.clients.queries import TreeUsage
from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.performer import Processes as Workers
from supervisor.processes.cells import Limits
from supervisor.processes.survivors import Survivor
from supervisor.workers.router import LiveProcesses


class ProcessPool(Workers, LiveProcesses, Protocol):
    """Where workers live. The real one is Processes; a benchmark may play the workers itself."""

    @property
    def cell_name(self) -> str: ...
    @property
    def cell_description(self) -> str: ...
    def bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None: ...
    def usages(self) -> Mapping[int, TreeUsage]: ...
    def change_limits(self, limits: Limits) -> None: ...
    async def open(self, handed: HandedProcesses | None = None) -> tuple[Survivor, ...]: ...
    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses: ...
    async def close(self, deadline_seconds: float) -> None: ...
