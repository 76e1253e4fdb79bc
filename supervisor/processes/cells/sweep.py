"""A cell of processes only: the keeper adopts orphans, and scans kill its descendants until none is left."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence

from ipc.service_messages import CellSpec, Sandbox
from supervisor.processes import procfs
from supervisor.processes.cells.contract import Held, Limits
from supervisor.processes.procfs import Status

# Processes killed before the loop runs other work.
_SLICE = 64
# Limit of one scan; the next one finds the rest.
_PASS_MAX = 4096
_LOOK_AGAIN_SECONDS = 0.001


class SweepCell:
    """The keeper is stopped, so that it can neither fork nor end; it is killed last."""

    name = "sweep"
    has_view = False
    description = (
        "processes only, chosen in hermes.toml: a kill ends what is found, but agents read and write what "
        "this user can, the supervisor's files too"
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def set_up(self) -> None:
        """Nothing is needed."""

    def spec(self, incarnation: int, sandbox: Sandbox, hide: tuple[str, ...]) -> CellSpec:
        return CellSpec(
            kind="sweep",
            sandbox=sandbox,
            hide=hide,
            memory_bytes_max=self.limits.memory_bytes_max,
            files_max=self.limits.files_max,
        )

    def members(self, held: Held, at_most: int) -> Iterator[Status]:
        return procfs.descendants(held.keeper, at_most)

    def strike(self, held: Held, seen: Sequence[Status]) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(held.pidfd, signal.SIGSTOP)

    async def finish(self, held: Held) -> None:
        """One empty scan is no proof: a process can fork and exit between two reads.

        An ended process leaves its children to the keeper, which reaps none while stopped. So when all in its
        list were seen dead and the list is the same after that, no process can be missing from it.
        """
        dead: set[int] | None = None
        while not held.gone.is_set():
            keeper = procfs.living(held.keeper)
            is_stopped = keeper is not None and keeper.is_stopped
            met = await self._pass(held)
            listed = set(procfs.children(held.keeper))
            if met == 0 and is_stopped and listed == dead:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(held.pidfd, signal.SIGKILL)
                await held.gone.wait()
                return
            dead = listed if met == 0 and is_stopped else None
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        # A keeper that ended by itself has swept; a killed one has left its orphans to the zygote.
        await held.reaped.wait()

    async def _pass(self, held: Held) -> int:
        """Kill all that one scan finds below the keeper; return their number."""
        seen = 0
        for found in procfs.descendants(held.keeper, _PASS_MAX):
            procfs.kill(found.process)
            seen += 1
            if seen % _SLICE == 0:
                await asyncio.sleep(0)
        return seen

    def clear(self, incarnation: int) -> None:
        pass
