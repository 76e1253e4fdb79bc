"""Processes of an earlier supervisor that the sweep at the start could not end: watched until they are gone.

They wait in the kernel (stuck_processes.py). Each session whose workspace they have is held until then, as
it is for a worker of this supervisor. They are reported as such workers: one for each workspace, under the
first seats and incarnations of this life.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.clock import monotonic
from supervisor.core.events import WorkerDied
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Orphan, Proof
from supervisor.processes import procfs
from supervisor.processes.orphans import Record, sweep_orphans
from supervisor.processes.stuck_processes import named


@dataclass(frozen=True, slots=True)
class Survivor:
    """What is left of one worker; `workspace` is the name of its folder, "" when it had none."""

    seat: int
    incarnation: int
    workspace: str
    processes: int
    words: str

    def orphan(self, session: str | None) -> Orphan:
        """As the rules know it: by the session that has the workspace."""
        return Orphan(self.seat, self.incarnation, session, self.processes, self.words)


class Survivors:
    """`report` is told when the last process of one is gone."""

    def __init__(self, record: Record, report: Callable[[WorkerDied], None]) -> None:
        self._record = record
        self._report = report
        self._pidfds: set[int] = set()

    def sweep(self) -> tuple[Survivor, ...]:
        """Ends what an earlier supervisor left, and waits for it; gives what cannot be ended yet."""
        began = monotonic()
        left = sweep_orphans(self._record.file).left
        self._record.take_over(left)
        return tuple(
            self._survivor(seat, workspace, list(left[workspace]), began)
            for seat, workspace in enumerate(sorted(left))
        )

    def close(self) -> None:
        for pidfd in list(self._pidfds):
            self._forget(pidfd)

    def _survivor(self, seat: int, workspace: str, processes: list[procfs.Process], began: float) -> Survivor:
        incarnation, waiting = seat + 1, set(processes)

        def gone(process: procfs.Process) -> None:
            waiting.remove(process)
            self._record.remove(process)
            if not waiting:
                proof = Proof(len(processes), all_dead=True, ms=(monotonic() - began) * 1000, how="restart")
                self._report(WorkerDied(seat, incarnation, proof, Reason(EndReason.ORPHANED)))

        for process in processes:
            self._watch(process, gone)
        found = [status for process in processes if (status := procfs.living(process)) is not None]
        # The first process of a namespace waits for the others, and is not what is stuck.
        stuck = [status for status in found if status.state == "D"] or found
        return Survivor(seat, incarnation, workspace, len(stuck), named(stuck))

    def _watch(self, process: procfs.Process, gone: Callable[[procfs.Process], None]) -> None:
        loop = asyncio.get_running_loop()
        try:
            pidfd = os.pidfd_open(process.pid)
        except ProcessLookupError:
            loop.call_soon(gone, process)
            return
        self._pidfds.add(pidfd)

        def ended() -> None:
            if pidfd in self._pidfds:
                self._forget(pidfd)
                gone(process)

        # The descriptor is bound to whatever has the pid now, which need not be this process any more.
        if procfs.living(process) is None:
            loop.call_soon(ended)
        else:
            loop.add_reader(pidfd, ended)

    def _forget(self, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        self._pidfds.discard(pidfd)
        os.close(pidfd)
