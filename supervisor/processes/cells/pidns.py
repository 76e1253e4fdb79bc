"""A cell as user, pid and mount namespace: the kernel ends all processes with the first, and it ends last."""

import asyncio
import contextlib
import secrets
import signal
from collections.abc import Iterator, Sequence

from ipc.service_messages import CellSpec, Sandbox
from supervisor.processes import procfs
from supervisor.processes.cells import own_cgroup
from supervisor.processes.cells.contract import Held, Limits
from supervisor.processes.procfs import Status

# This many are killed one by one, so that their memory is freed in parallel; the kernel kills the others.
_STRUCK_MAX = 16
# Far longer than a kill takes. A first process that is traced from inside ends only when its tracer does.
_STRIKE_AGAIN_SECONDS = 0.5
_DESCRIPTION = "namespaces of its own: sees no process of the host, and of its files what [sandbox] says"


class PidNamespaceCell:
    """The worker is its own keeper. The proof is its pidfd: the first process of a namespace ends last."""

    name = "pidns"
    has_view = True

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.description = _DESCRIPTION
        self._cgroup = ""

    def set_up(self) -> None:
        """Use a cgroup for each cell in addition to its namespaces, where they are delegated."""
        folder = own_cgroup.own_folder()
        if folder is None or not own_cgroup.settle():
            return
        own_cgroup.hand_down(folder)
        own_cgroup.remove_empty(folder)
        # Cells of an earlier image of this process may exist beside those of this one.
        self._cgroup = f"{folder}/{own_cgroup.prefix()}{secrets.token_hex(4)}-"

    def spec(self, incarnation: int, sandbox: Sandbox, hide: tuple[str, ...]) -> CellSpec:
        return CellSpec(
            kind="pidns",
            sandbox=sandbox,
            hide=hide,
            cgroup=self._cgroup,
            memory_bytes_max=self.limits.memory_bytes_max,
            processes_max=self.limits.processes_max,
            files_max=self.limits.files_max,
        )

    def members(self, held: Held, at_most: int) -> Iterator[Status]:
        first = procfs.living(held.keeper)
        if first is not None:
            yield first
        yield from procfs.descendants(held.keeper, at_most)

    def strike(self, held: Held, seen: Sequence[Status]) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(held.pidfd, signal.SIGKILL)
        # The kernel kills the others only when the first process is nearly gone; killing them here is faster.
        for found in seen[:_STRUCK_MAX]:
            if found.process != held.keeper:
                procfs.kill(found.process)

    async def finish(self, held: Held) -> None:
        while not held.gone.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STRIKE_AGAIN_SECONDS):
                    await held.gone.wait()
                    return
            self.strike(held, list(self.members(held, _STRUCK_MAX)))

    def clear(self, incarnation: int) -> None:
        pass
