"""What the wiring asks of the room where workers live."""

from collections.abc import Collection, Mapping
from typing import Protocol

from supervisor.engine import Processes as Workers
from supervisor.processes.cells import Limits
from supervisor.processes.handed import HandedProcesses
from supervisor.switchboard import Identities
from supervisor.views import Reading


class ProcessRoom(Workers, Identities, Protocol):
    """Where workers live. The real one is Processes; a benchmark may play the workers itself."""

    @property
    def cell_name(self) -> str: ...
    @property
    def cell_description(self) -> str: ...
    def readings(self) -> Mapping[int, Reading]: ...
    def change_limits(self, limits: Limits) -> None: ...
    async def open(self, handed: HandedProcesses | None = None) -> None: ...
    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses: ...
    async def close(self, deadline_seconds: float) -> None: ...
