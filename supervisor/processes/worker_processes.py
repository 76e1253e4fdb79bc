"""The worker processes: started in cells through zygotes; each death is reported once, with its proof.

Nothing here blocks the loop or is retried: after each death the core decides (phases: worker_process.py).
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from ipc import foreign_python
from ipc.errors import PlaceError
from ipc.launch import VERSION
from ipc.places import Places, make_private
from ipc.service_messages import Exited, Forked, ForkFailed, FromZygote, Running, Sandbox
from supervisor.clock import monotonic
from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.proof import Cancelled, Proof
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.host.lease import Lease
from supervisor.processes import agent_user, procfs
from supervisor.processes.adoption import Adoption
from supervisor.processes.cells import CellUnavailable, Held, Limits, own_cgroup
from supervisor.processes.exit_reason import exited, not_started, too_large
from supervisor.processes.link_sockets import NextLink
from supervisor.processes.orphans import Record
from supervisor.processes.runtimes import Runtime, Runtimes
from supervisor.processes.spawner import Spawner, SpawnerState, Wishes
from supervisor.processes.stuck_processes import left
from supervisor.processes.survivors import Survivor, Survivors
from supervisor.processes.usage import TreeUsage
from supervisor.processes.visibility import boundary, hidden
from supervisor.processes.watch import Watch
from supervisor.processes.worker_process import Phase, Worker
from supervisor.processes.workspace_binding import Bindings
from supervisor.processes.zygote_client import Program

# After this time the cell holds a process that the kernel cannot end yet, which is reported.
_PROOF_SECONDS_MAX = 5.0
# Sixteen orders take half as long on a fully loaded machine; a slower zygote is stuck.
_ANSWER_SECONDS_MAX = 10.0
# Orders the zygote has not answered yet; all of them fit its socket's buffer.
_ASKED_MAX = 16
# Limit of the count of a tree: the kill must not wait for it.
_COUNT_MAX = 1000

# Seat and incarnation of a worker, and the supervisor's ends of its channels for frames and pulses.
Connected = Callable[[int, int, socket.socket, socket.socket], None]
Report = Callable[[WorkerStarted | WorkerDied | WorkerStuck], None]


class Processes:
    """All worker processes of one supervisor. Make and use it in the loop of the main thread."""

    def __init__(
        self,
        *,
        epoch: int,
        places: Places,
        cell: str,
        limits: Limits,
        report: Report,
        connected: Connected,
        sandbox: Callable[[str], Sandbox] = lambda _: Sandbox(),
        has_setup: Callable[[str], bool] = lambda _: False,
        key_files: Callable[[], tuple[Path, ...]] = tuple,
        program: Program | None = None,
        agents: Callable[[], Mapping[str, Runtime]] = dict,
        runtime_changed: Callable[[RuntimeChanged], None] = lambda _: None,
        environment: Mapping[str, str] | None = None,
        check: Callable[..., None] = lambda *paths: None,
        others: Callable[[], Collection[int]] | None = None,
        lease: Lease | None = None,
    ) -> None:
        """`check` raises PlaceError for a replaced folder; `others`: other children (adoption.py).
        `agents` returns the runtimes of agents (runtimes.py), `runtime_changed` gets their states.
        """
        self._epoch, self._places = epoch, places
        self._user = agent_user.choose(places.state, cell)
        self._limits = limits
        self._sandbox = sandbox
        self._has_setup = has_setup
        self._report = report
        self._check = partial(check, places.runtime, places.logs)
        self._connected = connected
        self._workers: dict[int, Worker] = {}
        self._next_link = NextLink(str(places.runtime))
        self._endings = set[asyncio.Task[None]]()
        self._watch = Watch(self._workers, self.kill)
        self._record = Record(places.processes)
        self.bind = Bindings(self._workers, self._record).bind
        self._survivors = Survivors(self._record, lambda died: self._report(died))
        wishes = Wishes(
            cell=cell,
            limits=limits,
            sandbox=lambda: sandbox(DEFAULT_AGENT),
            hide=lambda: hidden(places, key_files()),
            boundary=partial(boundary, places, self._user),
            program=program or Program(),
            environment=os.environ if environment is None else environment,
            check=self._check,
            lease=lease,
        )
        packages = foreign_python.folder(places, VERSION)
        self._runtimes = Runtimes(wishes, self._make_spawner, agents, sandbox, packages, runtime_changed)
        self.want, self.runtime_rows = self._runtimes.want, self._runtimes.rows
        self._spawner = self._runtimes.default
        self._adoption = Adoption(others, lambda: [each.guard for each in self._runtimes.all])

    def _make_spawner(self, wishes: Wishes, log: str) -> Spawner:
        callbacks = self._heard, self._lost, self._spawner_changed
        return Spawner(wishes, self._places.logs / log, self._record, *callbacks)

    def _spawner_changed(self, spawner: Spawner) -> None:
        self._runtimes.changed(spawner)
        self._ask(spawner)

    async def open(self, handed: HandedProcesses | None = None) -> tuple[Survivor, ...]:
        """Ends what an earlier life left, as far as it can, and starts the zygote where cells can be had."""
        for folder in (self._places.runtime, self._places.logs, self._places.workspaces):
            make_private(folder)
        self._adoption.open(self._spawner.cell.name)
        survivors = self._survivors.sweep() if handed is None else ()
        self._take_over(handed or HandedProcesses())
        await self._spawner.open()
        self._watch.start()
        return survivors

    def start(self, seat: int, incarnation: int, agent: str = DEFAULT_AGENT) -> None:
        """Never blocks. WorkerStarted is reported, or WorkerDied when it cannot start."""
        log, memory = self._places.logs / f"worker-{seat}.log", self._limits.memory_bytes_max
        wanted = (self._sandbox(agent), self._has_setup(agent))
        spawner = self._runtimes.of(agent)
        self._workers[incarnation] = Worker(seat, incarnation, log, monotonic(), spawner, memory, *wanted)
        self._ask(spawner)

    def change_limits(self, limits: Limits) -> None:
        """Change the limits of workers that are started from now on."""
        self._limits = limits
        for spawner in self._runtimes.all:
            spawner.cell.limits = limits

    def change_agents(self) -> None:
        """The settings of agents have changed."""
        self._runtimes.reread()
        self._end_unused()

    def kill(self, incarnation: int, cancel: Cancelled = "", since: float | None = None) -> None:
        """Never blocks; WorkerDied follows with the proof, from `since` on. Without effect if repeated."""
        worker = self._workers.get(incarnation)
        if worker is None or worker.kill_asked_at is not None or worker.phase is Phase.ENDING:
            return
        worker.kill_asked_at, worker.cancel = since or monotonic(), cancel
        match worker.phase:
            case Phase.WAITING:
                self._never_was(worker, Reason(EndReason.KILLED_UNSTARTED))
            case Phase.ASKED:
                asyncio.get_running_loop().call_later(_PROOF_SECONDS_MAX, self._still_asked, worker)
            case Phase.HELD:
                self._end(worker)

    def is_known(self, incarnation: int) -> bool:
        """Return True from the order to start it until its death is reported."""
        return incarnation in self._workers

    def usages(self) -> dict[int, TreeUsage]:
        """Return the latest usage of live workers by incarnation: half a second old of one that works."""
        return self._watch.usages()

    @property
    def cell_name(self) -> str:
        return self._spawner.cell.name

    @property
    def cell_description(self) -> str:
        """Return the kind of cell and the limits it cannot enforce; or why no agent can be started."""
        return self._spawner.description(f"agents {self._user.sentence}")

    @property
    def state(self) -> SpawnerState:
        return self._spawner.state

    @property
    def state_detail(self) -> str:
        return self._spawner.detail

    async def close(self, deadline_seconds: float) -> None:
        """Kill every cell, then the zygote; nothing is reported from here on."""
        self._report = lambda event: None
        self._watch.stop()
        for incarnation in list(self._workers):
            self.kill(incarnation)
        if self._endings:
            await asyncio.wait(self._endings, timeout=deadline_seconds / 2)
        await asyncio.gather(*(each.close(deadline_seconds / 2) for each in self._runtimes.all))
        for ending in list(self._endings):
            ending.cancel()
        for worker in list(self._workers.values()):
            self._forget(worker)
        self._survivors.close()
        self._adoption.close()
        self._next_link.close()
        self._record.close()

    # --- from one image of the supervisor to the next

    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses:
        """End every worker but these incarnations; nothing is reported from here on."""
        self._report = lambda event: None
        self._watch.stop()
        for incarnation in self._workers.keys() - set(staying):
            self.kill(incarnation)
        if self._endings:
            await asyncio.wait(self._endings, timeout=deadline_seconds)
        handed = [each for worker in self._workers.values() if (each := worker.hand_over()) is not None]
        for each in handed:
            asyncio.get_running_loop().remove_reader(each.keeper_pidfd)
            del self._workers[each.incarnation]
        zygotes = [spawner.hand_over() for spawner in self._runtimes.all]
        return HandedProcesses(tuple(filter(None, zygotes)), tuple(handed))

    def _take_over(self, handed: HandedProcesses) -> None:
        by_guard = self._runtimes.take_over(handed.zygotes)
        for each in handed.workers:
            worker = Worker.take_over(each, by_guard[each.guard])
            assert worker.held is not None
            self._workers[worker.incarnation] = worker
            self._record.add(worker.held.keeper, worker.workspace)
            asyncio.get_running_loop().add_reader(worker.held.pidfd, self._keeper_gone, worker, worker.held)
        self._end_unused()

    def _end_unused(self) -> None:
        self._runtimes.end_unused([worker.spawner for worker in self._workers.values()])

    # --- the way in

    def _ask(self, spawner: Spawner) -> None:
        """Send the orders that wait for this spawner, in order, as far as it takes them now."""
        own = [worker for worker in self._workers.values() if worker.spawner is spawner]
        waiting = [worker for worker in own if worker.phase is Phase.WAITING]
        if spawner.is_retired or spawner.state is SpawnerState.UNAVAILABLE:
            for worker in waiting:
                self._never_was(worker, not_started(spawner.detail or "its runtime is not used any more"))
        if spawner.state is not SpawnerState.READY:
            return
        asked = sum(1 for worker in own if worker.phase is Phase.ASKED)
        for worker in waiting[: max(0, _ASKED_MAX - asked)]:
            try:
                if not self._send(worker):
                    return
            except OSError as error:
                self._never_was(worker, not_started(str(error)))
            except (CellUnavailable, PlaceError) as fault:
                self._never_was(worker, not_started(fault.fault))
            else:
                worker.phase = Phase.ASKED
                asyncio.get_running_loop().call_later(_ANSWER_SECONDS_MAX, self._still_asked, worker)

    def _send(self, worker: Worker) -> bool:
        """Connect its channels before it exists, so that it alone gets the other ends."""
        self._check()
        with contextlib.ExitStack() as held:
            log = worker.open_log()
            held.callback(os.close, log)
            held.callback((link := self._next_link.take()).close)
            given = (log, link.its_frames.fileno(), link.its_pulse.fileno())
            zygote = worker.spawner.zygote
            is_sent = zygote is not None and zygote.send(worker.order(self._epoch), given)
            if is_sent:
                self._connected(worker.seat, worker.incarnation, link.frames.dup(), link.pulse.dup())
            return is_sent

    def _heard(self, spawner: Spawner, message: FromZygote, descriptor: int | None) -> None:
        match message:
            case Forked(incarnation, path) if descriptor is not None:
                self._forked(self._workers[incarnation], descriptor, path)
            case Running(incarnation) if descriptor is not None:
                self._running(self._workers.get(incarnation), descriptor)
            case ForkFailed(incarnation, error):
                self._never_was(self._workers[incarnation], not_started(str(error)))
            case Exited(incarnation, status):
                self._exited(incarnation, status)
        self._ask(spawner)

    def _forked(self, worker: Worker, pidfd: int, path: str) -> None:
        pid = procfs.pid_of(pidfd)
        found = procfs.status(pid)
        keeper = found.process if found else procfs.NO_PROCESS
        worker.held = Held(worker.incarnation, keeper, pidfd, path)
        worker.phase = Phase.HELD
        self._record.add(keeper)
        asyncio.get_running_loop().add_reader(pidfd, self._keeper_gone, worker, worker.held)
        if worker.kill_asked_at is not None:
            self._end(worker)
        else:
            self._tell_started(worker)

    def _running(self, worker: Worker | None, pidfd: int) -> None:
        if worker is not None:
            worker.pid = procfs.pid_of(pidfd)
            self._tell_started(worker)
        os.close(pidfd)

    def _tell_started(self, worker: Worker) -> None:
        """The frames of the keeper and of the worker may come in either order; both are needed."""
        if worker.phase is Phase.HELD and worker.pid:
            self._report(WorkerStarted(worker.seat, worker.incarnation, worker.pid, worker.level))

    # --- the way out

    def _never_was(self, worker: Worker, reason: Reason) -> None:
        self._forget(worker)
        proof = Proof(processes=0, all_dead=True, ms=0.0, how=worker.spawner.cell.name)
        died = WorkerDied(worker.seat, worker.incarnation, proof, reason)
        asyncio.get_running_loop().call_soon(lambda: self._report(died))

    def _still_asked(self, worker: Worker) -> None:
        if worker.phase is Phase.ASKED and worker.incarnation in self._workers:
            worker.spawner.give_up_zygote()

    def _exited(self, incarnation: int, status: int) -> None:
        worker = self._workers.get(incarnation)
        if worker is not None and worker.held is not None:
            worker.status = status
            worker.held.reaped.set()

    def _keeper_gone(self, worker: Worker, held: Held) -> None:
        asyncio.get_running_loop().remove_reader(held.pidfd)
        held.gone.set()
        if worker.phase is Phase.HELD:
            self._end(worker)

    def _lost(self, spawner: Spawner, reason: Reason, is_certain: bool) -> None:
        """The zygote and its guard are gone, and with them, if that is certain, all their descendants."""
        for worker in [each for each in self._workers.values() if each.spawner is spawner]:
            if worker.phase is Phase.ASKED:
                self._never_was(worker, reason)
            elif worker.held is not None:
                worker.held.is_certain, worker.lost = is_certain, reason
                worker.held.reaped.set()

    def _end(self, worker: Worker) -> None:
        held = worker.held
        if held is None:
            return
        worker.phase = Phase.ENDING
        began = monotonic() if worker.kill_asked_at is None else worker.kill_asked_at
        seen = list(worker.spawner.cell.members(held, _COUNT_MAX))
        worker.spawner.cell.strike(held, seen)
        ending = asyncio.get_running_loop().create_task(self._finish(worker, held, len(seen), began))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _finish(self, worker: Worker, held: Held, processes: int, began: float) -> None:
        cell = worker.spawner.cell
        try:
            async with asyncio.timeout(_PROOF_SECONDS_MAX):
                await self._emptied(worker, held)
        except TimeoutError:
            # Without the proof its seat and session are not reused: its end is waited for without a limit.
            self._report(WorkerStuck(worker.seat, worker.incarnation, *left(cell, held)))
            await self._emptied(worker, held)
        ms = (monotonic() - began) * 1000
        reason = worker.kill_reason
        if worker.kill_asked_at is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(worker.spawner.status_seconds_max):
                    await held.reaped.wait()
            reason = worker.ended_by(exited(worker.status, worker.log))
        if held.leaf:
            if own_cgroup.was_out_of_memory(held.leaf):
                reason = too_large(worker.memory_bytes_max)
            own_cgroup.remove(held.leaf)
        self._forget(worker)
        cell.clear(worker.incarnation)
        self._record.remove(held.keeper)
        proof = Proof(processes, all_dead=True, ms=ms, how=cell.name, cancel=worker.cancel)
        self._report(WorkerDied(worker.seat, worker.incarnation, proof, reason))

    async def _emptied(self, worker: Worker, held: Held) -> None:
        """Return when it is certain that no process of the cell is left."""
        await worker.spawner.cell.finish(held)
        if not held.is_certain:
            await self._adoption.end_all(self._record, worker.workspace)

    def _forget(self, worker: Worker) -> None:
        self._workers.pop(worker.incarnation, None)
        worker.spawner.forget(worker.incarnation)
        if worker.held is not None:
            asyncio.get_running_loop().remove_reader(worker.held.pidfd)
            os.close(worker.held.pidfd)
        self._end_unused()
