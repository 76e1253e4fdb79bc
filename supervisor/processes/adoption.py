"""Adopted processes: what is left of weaker cells when all that would have ended it were killed.

Problem: without a pid namespace a worker's descendants are ended by its keeper, the zygote or the guard, each
of which adopts the orphans below it. Something may kill all three at once. Then the rest has no parent that
ends it, and nothing that is known of it proves its end.

Method: the supervisor adopts orphans, too (PR_SET_CHILD_SUBREAPER). A child of it that it has not started was
adopted. `end_all` kills these with all below them. An ended process leaves its children to the supervisor,
which reaps none meanwhile. So when all adopted ones were seen dead and the list of them is the same after
that, nothing is left (the argument of cells/sweep.py). Until then the session is held as stuck.

In a pid namespace the kernel does all this: there the supervisor adopts nothing.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable, Collection

from supervisor.processes import procfs
from supervisor.processes.cells import BEST
from supervisor.processes.orphans import Record

_PR_SET_CHILD_SUBREAPER = 36
# Killed processes that the kernel cannot end yet are looked at this often.
_LOOK_AGAIN_SECONDS = 0.05
_REAP_SECONDS = 5.0
_PASS_MAX = 4096


class Adoption:
    """`guards` and `others` return the pids of the children that this process has started itself.

    Without `others` these are not all, as in a process of tests, and nothing is adopted.
    """

    def __init__(
        self, others: Callable[[], Collection[int]] | None, guards: Callable[[], Collection[int]]
    ) -> None:
        self._others = others
        self._guards = guards
        self._ending = 0
        self._zombies: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None

    def open(self, cell: str) -> None:
        """From now on orphans below this process become its children, if cells of this kind need it."""
        if self._others is None or cell == BEST:
            return
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._timer = asyncio.get_running_loop().call_later(_REAP_SECONDS, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def end_all(self, record: Record, workspace: str) -> None:
        """Return when nothing adopted is left: never where nothing is adopted.

        Until then it is in the record: the next supervisor may have to end it.
        """
        if self._timer is None:
            await asyncio.get_running_loop().create_future()
        recorded: set[procfs.Process] = set()
        self._ending += 1
        try:
            dead: set[int] | None = None
            while (alive := self._strike()) or (pids := self._pids()) != dead:
                for process in set(alive) - recorded:
                    record.add(process, workspace)
                recorded |= set(alive)
                dead = None if alive else pids
                await asyncio.sleep(_LOOK_AGAIN_SECONDS if alive else 0)
        finally:
            self._ending -= 1
        for process in recorded:
            record.remove(process)

    def _strike(self) -> list[procfs.Process]:
        """Kill what is alive of the adopted processes, and all below; return the adopted ones."""
        alive = [status.process for status in self._adopted() if status.is_alive]
        for process in alive:
            for below in procfs.descendants(process, _PASS_MAX):
                procfs.kill(below.process)
            procfs.kill(process)
        return alive

    def _pids(self) -> set[int]:
        return {status.process.pid for status in self._adopted()}

    def _adopted(self) -> list[procfs.Status]:
        this = procfs.status(os.getpid())
        assert this is not None
        own = {*self._guards(), *(self._others() if self._others else ())}
        found = (procfs.status(pid) for pid in procfs.children(this.process) if pid not in own)
        return [status for status in found if status is not None]

    def _look(self) -> None:
        """Reap adopted processes. One that was started here is reaped by its owner before the second look."""
        self._timer = asyncio.get_running_loop().call_later(_REAP_SECONDS, self._look)
        if self._ending:
            return
        zombies = {status.process.pid for status in self._adopted() if not status.is_alive}
        for pid in zombies & self._zombies:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._zombies = zombies
