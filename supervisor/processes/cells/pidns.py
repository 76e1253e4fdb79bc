"""A cell as user, pid and mount namespace: the kernel ends all with the first process, and says so last."""

import contextlib
import os
import signal

from ipc.children import CellSpec
from supervisor.processes.cells.cell import Held, Limits


class PidNamespaceCell:
    """The proof is the keeper's pidfd: the first process of a namespace ends after all others are gone."""

    name = "pidns"

    def __init__(self, hide: tuple[str, ...], show: tuple[str, ...], limits: Limits) -> None:
        self.limits = limits
        self._hide = hide
        self._show = show
        self.description = "namespaces of its own: sees no process and no file of the supervisor"
        if os.geteuid() == 0:
            self.description += "; as root it could still read the disks' devices: run as an ordinary user"

    def spec(self, incarnation: int) -> CellSpec:
        return CellSpec(
            kind="pidns",
            hide=self._hide,
            show=self._show,
            memory_bytes_max=self.limits.memory_bytes_max,
            processes_max=self.limits.processes_max,
            files_max=self.limits.files_max,
        )

    def strike(self, held: Held) -> None:
        # The kernel turns to the others only when the first process is nearly gone; the worker need not wait.
        for pidfd in (held.worker_pidfd, held.pidfd):
            if pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    async def finish(self, held: Held) -> None:
        await held.gone.wait()

    def clear(self, incarnation: int) -> None:
        pass
