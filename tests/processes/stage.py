"""A host of workers on its own folder, with scripts in place of agents, seen from outside through /proc."""

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from ipc.places import Places, find_places
from ipc.service_messages import Sandbox
from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.processes import procfs
from supervisor.processes.cells import Limits
from supervisor.processes.runtimes import Runtime
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program
from tests.processes.missing_cells import skip_where_missing
from tests.processes.stand_in import give
from worker.syscalls import adopt_orphans
from worker.zygote import PREPARED

KINDS = ("pidns", "cgroup", "sweep")
STAND_IN = Program(run="tests.processes.stand_in", rehearse="tests.processes.stand_in")
# Far above what anything here takes on a loaded machine.
PATIENCE_SECONDS = 60.0
MARK = "HERMES_TEST_MARK"
# What the processes of a cell are called before it has its worker; "" is one that ended just now.
_AHEAD = frozenset({"hermes-zygote", "hermes-keeper", PREPARED, ""})
_Event = TypeVar("_Event", WorkerStarted, WorkerDied, WorkerStuck)


def play(act: Coroutine[None, None, None]) -> None:
    """Runs a test's play to its end, or fails it."""

    async def bounded() -> None:
        async with asyncio.timeout(3 * PATIENCE_SECONDS):
            await act

    asyncio.run(bounded())


async def until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Waits for a condition that only /proc or a file can tell."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for: {what}"
        await asyncio.sleep(0.005)


def marked(mark: str) -> set[int]:
    """Every live process that was executed with this mark, and what such a process has forked."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if f"{MARK}={mark}".encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.add(int(name))
            except OSError:
                continue
    return found


def children_here() -> set[int]:
    """The children of this process, dead or alive."""
    this = procfs.status(os.getpid())
    assert this is not None
    return set(procfs.children(this.process))


def reap(pids: Iterable[int]) -> None:
    for pid in pids:
        os.waitpid(pid, 0)


def name_of(pid: int) -> str:
    """What `ps` shows; nothing of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _parents(pid: int) -> tuple[int, ...]:
    """Its parent and its parent's: the guard is a child of this process, the zygote a child of the guard."""
    parent = procfs.status(pid)
    above = procfs.status(parent.parent) if parent else None
    return tuple(found.parent for found in (parent, above) if found)


class Stage:
    """Opens as a context; leaves nothing behind."""

    def __init__(
        self,
        home: Path,
        kind: str,
        limits: Limits | None = None,
        *,
        sandbox: Sandbox | None = None,
        key_files: tuple[Path, ...] = (),
        program: Program | None = None,
        adopts: bool = False,
        agents: Mapping[str, Runtime] | None = None,
    ) -> None:
        """With `adopts` every child of this process that is not there already is a process of the stage."""
        self.places: Places = find_places(str(home))
        self.mark = secrets.token_hex(8)
        self._kind = kind
        # Of workers that are started from now on.
        self.sandbox = sandbox or Sandbox()
        # The runtimes of agents, and what was reported of them.
        self.agents: Mapping[str, Runtime] = agents or {}
        self.runtimes: list[tuple[str, ...]] = []
        self.events: asyncio.Queue[WorkerStarted | WorkerDied | WorkerStuck] = asyncio.Queue()
        self.processes = Processes(
            epoch=7,
            places=self.places,
            cell=kind,
            limits=limits or Limits(processes_max=256, files_max=1024),
            report=self.events.put_nowait,
            sandbox=lambda _: self.sandbox,
            key_files=lambda: key_files,
            program=program or STAND_IN,
            agents=lambda: self.agents,
            runtime_changed=lambda changed: self.runtimes.append((*sorted(changed.agents), changed.state)),
            environment={**os.environ, MARK: self.mark},
            connected=lambda seat, _, *ends: give(self.scripts[seat], *ends),
            others=(lambda: self._others) if adopts else None,
        )
        self._adopts = adopts
        self._others = children_here()
        # What the next worker of each seat does.
        self.scripts: dict[int, str] = {}
        self.idle: set[int] = set()
        self._keepers: set[int] = set()
        self._incarnation = 0

    async def __aenter__(self) -> "Stage":
        await self.processes.open()
        if self.processes.state == "unavailable":
            await self.processes.close(4.0)
            skip_where_missing(self._kind, self.processes.state_detail)
        await until(lambda: self.processes.state == "ready", "a warm zygote")
        self.idle = {pid for pid in marked(self.mark) if os.getpid() in _parents(pid)}
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.processes.close(4.0)
        if self._adopts:
            adopt_orphans(False)
            reap(children_here() - self._others)
        assert marked(self.mark) == set()

    async def start(self, script: str, seat: int = 0, agent: str = "default") -> WorkerStarted:
        """Starts a worker that runs the script, and waits until the script has said `up`."""
        self._incarnation += 1
        self.log(seat).unlink(missing_ok=True)
        self.scripts[seat] = script
        self.processes.start(seat, self._incarnation, agent)
        started = await self.next(WorkerStarted)
        # One that ends by itself may have ended already, and its keeper with it.
        if (found := procfs.status(started.pid)) is not None:
            self._keepers.add(self._keeper(started.pid, found.parent))
        await until(lambda: "up\n" in self.said(seat), f"a worker that is up, not {self.said(seat)!r}")
        return started

    async def fails_to_start(self) -> WorkerDied:
        """Asks for a worker that cannot be had."""
        self._incarnation += 1
        self.scripts[0] = ""
        self.processes.start(0, self._incarnation)
        return await self.next(WorkerDied)

    async def kill(self, incarnation: int) -> WorkerDied:
        self.processes.kill(incarnation)
        return await self.next(WorkerDied)

    async def next(self, kind: type[_Event]) -> _Event:
        event = await self.events.get()
        assert isinstance(event, kind), event
        return event

    def keeper(self, worker: int) -> int:
        """The first process of the worker's cell: in a namespace that is the worker itself."""
        found = procfs.status(worker)
        assert found is not None
        return self._keeper(worker, found.parent)

    def _keeper(self, worker: int, parent: int) -> int:
        return worker if self.processes.cell_name == "pidns" else parent

    def log(self, seat: int = 0) -> Path:
        return self.places.logs / f"worker-{seat}.log"

    def said(self, seat: int = 0) -> str:
        return self.log(seat).read_text() if self.log(seat).exists() else ""

    def strangers(self) -> set[int]:
        """Marked processes beyond the guard, the zygote and the cell that it prepares for the next worker.

        A worker has another name before it runs any script, and so has all that it forks.
        """
        found = marked(self.mark) - self.idle
        return {pid for pid in found if pid in self._keepers or name_of(pid) not in _AHEAD}

    def prepared(self) -> set[int]:
        """The worker that waits for its order."""
        return {pid for pid in marked(self.mark) if name_of(pid) == PREPARED}


def script(*lines: str, names: Iterable[str] = ("os", "signal", "subprocess", "sys")) -> str:
    """The lines of a worker that then says `up` and waits."""
    return "\n".join([f"import {', '.join(names)}", *lines, "print('up', flush=True)"])
