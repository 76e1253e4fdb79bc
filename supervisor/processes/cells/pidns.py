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
        self._spec = CellSpec(
            kind="pidns",
            hide=hide,
            show=show,
            memory_bytes_max=limits.memory_bytes_max,
            processes_max=limits.processes_max,
            files_max=limits.files_max,
        )
        self.description = "namespaces of its own: sees no process and no file of the supervisor"
        if os.geteuid() == 0:
            self.description += "; as root it could still read the disks' devices: run as an ordinary user"

    def spec(self, incarnation: int) -> CellSpec:
        return self._spec

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
