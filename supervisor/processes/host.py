"""The workers' host: starts them in cells through the zygote and reports each death once, with its proof.

Nothing here blocks the loop or is tried again: a worker that died is reported and the engine decides anew.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ipc.children import Exited, Fork, Forked, ForkFailed, FromZygote, Running, Warm
from ipc.endpoints import Places, make_private
from supervisor.clock import monotonic
from supervisor.core.events import WorkerDied, WorkerStarted
from supervisor.core.model import Proof
from supervisor.processes import tree
from supervisor.processes.cells import CellUnavailable, Held, Limits
from supervisor.processes.leftovers import Record, sweep_leftovers
from supervisor.processes.nursery import Nursery, NurseryState, Wishes
from supervisor.processes.readings import Meter, Reading, Watched
from supervisor.processes.words import how_it_ended, sentence, size
from supervisor.processes.zygote import Program

# A cell that the kernel has not emptied by then holds a process it cannot end; the proof says so.
_PROOF_SECONDS_MAX = 5.0
# The zygote's word on how a worker ended comes right behind its death, unless the zygote has died too.
_STATUS_SECONDS_MAX = 0.25
# Sixteen orders on a machine with no time to spare take half as long; a zygote that needs more is stuck.
_ANSWER_SECONDS_MAX = 10.0
# Orders the zygote has not answered yet; all of them fit its socket's buffer.
_ASKED_MAX = 16
# Beyond this a tree is counted no further: the kill should not wait for the census.
_COUNT_MAX = 1000
_READING_SECONDS = 0.5
# A worker that writes more than this has its log begun anew.
_LOG_BYTES_MAX = 8 * 1024 * 1024

_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW

Report = Callable[[WorkerStarted | WorkerDied], None]


class _Phase(StrEnum):
    WAITING = "waiting"  # for a warm zygote
    ASKED = "asked"
    HELD = "held"
    ENDING = "ending"


@dataclass(slots=True)
class _Worker:
    """One incarnation, from the order to start it until its death is reported."""

    seat: int
    incarnation: int
    identity: str
    log: Path
    begun_at: float
    memory_bytes_max: int
    phase: _Phase = _Phase.WAITING
    held: Held | None = None
    pid: int = 0
    pidfd: int | None = None
    status: int | None = None
    kill_asked_at: float | None = None
    kill_words: str = "killed by the supervisor"


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
        program: Program | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._epoch = epoch
        self._places = places
        self._limits = limits
        self._report = report
        self._workers: dict[int, _Worker] = {}
        self._by_identity: dict[bytes, _Worker] = {}
        self._waiting: deque[_Worker] = deque()
        self._endings: set[asyncio.Task[None]] = set()
        self._reader: asyncio.Task[None] | None = None
        self._readings: dict[int, Reading] = {}
        self._record_file = places.runtime / "processes"
        self._record = Record(self._record_file)
        hide = _outermost((places.config, places.state, places.runtime))
        wishes = Wishes(
            cell=cell,
            hide=hide,
            show=_shown(places, hide),
            limits=limits,
            program=program or Program(),
            environment=os.environ if environment is None else environment,
        )
        self._nursery = Nursery(wishes, places.logs / "zygote.log", self._record, self._heard, self._lost)

    async def open(self) -> None:
        """Ends what an earlier life left, chooses the cell, starts the zygote; or raises CellUnavailable."""
        for folder in (self._places.runtime, self._places.workers, self._places.logs):
            make_private(folder)
        sweep_leftovers(self._record_file)
        await self._nursery.open()
        self._reader = asyncio.create_task(self._take_readings())

    def start(self, seat: int, incarnation: int) -> None:
        """Never blocks. WorkerStarted is reported, or WorkerDied when it cannot be."""
        log, memory_bytes_max = self._places.logs / f"worker-{seat}.log", self._limits.memory_bytes_max
        worker = _Worker(seat, incarnation, secrets.token_hex(16), log, monotonic(), memory_bytes_max)
        self._workers[incarnation] = worker
        self._by_identity[worker.identity.encode()] = worker
        self._waiting.append(worker)
        self._ask()

    def change_limits(self, limits: Limits) -> None:
        """For workers that are started from now on."""
        self._limits = limits
        self._nursery.cell.limits = limits

    def kill(self, incarnation: int) -> None:
        """Never blocks; WorkerDied follows with the proof. Again, or for an unknown incarnation: nothing."""
        worker = self._workers.get(incarnation)
        if worker is None or worker.kill_asked_at is not None or worker.phase is _Phase.ENDING:
            return
        worker.kill_asked_at = monotonic()
        match worker.phase:
            case _Phase.WAITING:
                self._waiting.remove(worker)
                self._never_was(worker, "killed before it was started")
            case _Phase.ASKED:
                asyncio.get_running_loop().call_later(_PROOF_SECONDS_MAX, self._still_asked, worker)
            case _Phase.HELD:
                self._end(worker)

    def identity(self, incarnation: int) -> bytes | None:
        """The unguessable name under which this worker speaks."""
        worker = self._workers.get(incarnation)
        return None if worker is None else worker.identity.encode()

    def find(self, identity: bytes) -> tuple[int, int] | None:
        """Seat and incarnation of the worker with this name, until its death is reported."""
        worker = self._by_identity.get(identity)
        return None if worker is None else (worker.seat, worker.incarnation)

    def readings(self) -> dict[int, Reading]:
        """The latest of every live worker, by incarnation; half a second old at most on an idle host."""
        return {key: self._readings[key] for key in self._workers.keys() & self._readings}

    @property
    def cell_name(self) -> str:
        return self._nursery.cell.name

    @property
    def cell_description(self) -> str:
        """What the cell does, and why no better one could be had."""
        reasons = [f"{kind} is not possible: {why}" for kind, why in self._nursery.why_not_better.items()]
        return "; ".join([self._nursery.cell.description, *reasons])

    @property
    def state(self) -> NurseryState:
        return self._nursery.state

    @property
    def state_detail(self) -> str:
        return self._nursery.detail

    async def close(self, deadline_seconds: float) -> None:
        """Kills every cell, then the zygote; nothing is reported from here on."""
        self._report = lambda event: None
        if self._reader is not None:
            self._reader.cancel()
        for incarnation in list(self._workers):
            self.kill(incarnation)
        if self._endings:
            await asyncio.wait(self._endings, timeout=deadline_seconds / 2)
        await self._nursery.close(deadline_seconds / 2)
        for ending in list(self._endings):
            ending.cancel()
        for worker in list(self._workers.values()):
            self._forget(worker)
        self._record.close()

    # --- the way in

    def _ask(self) -> None:
        asked = sum(1 for worker in self._workers.values() if worker.phase is _Phase.ASKED)
        while self._waiting and asked < _ASKED_MAX and self._nursery.state is NurseryState.READY:
            worker = self._waiting[0]
            try:
                if not self._send(worker):
                    return
            except OSError as error:
                self._waiting.popleft()
                self._never_was(worker, f"could not be started: {error}")
            except CellUnavailable as fault:
                self._waiting.popleft()
                self._never_was(worker, f"could not be started: {fault.fault}")
            else:
                self._waiting.popleft()
                worker.phase = _Phase.ASKED
                asyncio.get_running_loop().call_later(_ANSWER_SECONDS_MAX, self._still_asked, worker)
                asked += 1

    def _send(self, worker: _Worker) -> bool:
        log = os.open(worker.log, _LOG_FLAGS, 0o600)
        try:
            return self._nursery.fork(self._order(worker), log)
        finally:
            os.close(log)

    def _order(self, worker: _Worker) -> Fork:
        return Fork(
            epoch=self._epoch,
            seat=worker.seat,
            incarnation=worker.incarnation,
            identity=worker.identity,
            endpoint=self._places.frames,
            pulse_endpoint=self._places.pulse,
            log_path=str(worker.log),
            cell=self._nursery.cell.spec(worker.incarnation),
        )

    def _heard(self, message: FromZygote, descriptor: int | None) -> None:
        match message:
            case Warm():
                pass
            case Forked(incarnation) if descriptor is not None:
                self._forked(self._workers[incarnation], descriptor)
            case Running(incarnation) if descriptor is not None:
                self._running(self._workers.get(incarnation), descriptor)
            case ForkFailed(incarnation, error):
                self._never_was(self._workers[incarnation], f"could not be started: {error}")
            case Exited(incarnation, status):
                self._exited(incarnation, status)
        self._ask()

    def _forked(self, worker: _Worker, pidfd: int) -> None:
        pid = tree.pid_of(pidfd)
        found = tree.status(pid)
        keeper = found.process if found else tree.NOBODY
        worker.held = Held(worker.incarnation, keeper, pidfd, worker.pidfd)
        worker.phase = _Phase.HELD
        self._record.add(keeper)
        asyncio.get_running_loop().add_reader(pidfd, self._keeper_gone, worker, worker.held)
        if worker.kill_asked_at is not None:
            self._end(worker)
        else:
            self._tell_started(worker)

    def _running(self, worker: _Worker | None, pidfd: int) -> None:
        if worker is None:
            os.close(pidfd)
            return
        worker.pid = tree.pid_of(pidfd)
        worker.pidfd = pidfd
        if worker.held is not None:
            worker.held.worker_pidfd = pidfd
        self._tell_started(worker)

    def _tell_started(self, worker: _Worker) -> None:
        """The word of the keeper and that of the zygote may come in either order; both are needed."""
        if worker.phase is _Phase.HELD and worker.pid:
            self._report(WorkerStarted(worker.seat, worker.incarnation, worker.pid))

    # --- the way out

    def _never_was(self, worker: _Worker, words: str) -> None:
        self._forget(worker)
        proof = Proof(processes=0, all_dead=True, ms=0.0, how=self._nursery.cell.name)
        died = WorkerDied(worker.seat, worker.incarnation, proof, words)
        asyncio.get_running_loop().call_soon(lambda: self._report(died))

    def _still_asked(self, worker: _Worker) -> None:
        if worker.phase is _Phase.ASKED and worker.incarnation in self._workers:
            self._nursery.give_up_zygote()

    def _exited(self, incarnation: int, status: int) -> None:
        worker = self._workers.get(incarnation)
        if worker is not None and worker.held is not None:
            worker.status = status
            worker.held.reaped.set()

    def _keeper_gone(self, worker: _Worker, held: Held) -> None:
        asyncio.get_running_loop().remove_reader(held.pidfd)
        held.gone.set()
        if worker.phase is _Phase.HELD:
            self._end(worker)

    def _lost(self, words: str) -> None:
        """The zygote and its guard are gone, and with them every process below."""
        for worker in list(self._workers.values()):
            if worker.phase is _Phase.ASKED:
                self._never_was(worker, words)
            elif worker.held is not None:
                worker.held.reaped.set()

    def _end(self, worker: _Worker) -> None:
        held = worker.held
        if held is None:
            return
        worker.phase = _Phase.ENDING
        began = monotonic() if worker.kill_asked_at is None else worker.kill_asked_at
        processes = sum(1 for _ in tree.descendants(held.keeper, _COUNT_MAX))
        self._nursery.cell.strike(held)
        ending = asyncio.get_running_loop().create_task(self._finish(worker, held, processes, began))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _finish(self, worker: _Worker, held: Held, processes: int, began: float) -> None:
        all_dead = True
        try:
            async with asyncio.timeout(_PROOF_SECONDS_MAX):
                await self._nursery.cell.finish(held)
        except TimeoutError:
            all_dead = False
        ms = (monotonic() - began) * 1000
        words = worker.kill_words
        if worker.kill_asked_at is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STATUS_SECONDS_MAX):
                    await held.reaped.wait()
            words = sentence(how_it_ended(worker.status), worker.log)
        self._forget(worker)
        self._nursery.cell.clear(worker.incarnation)
        if all_dead:
            self._record.remove(held.keeper)
        proof = Proof(processes=processes, all_dead=all_dead, ms=ms, how=self._nursery.cell.name)
        self._report(WorkerDied(worker.seat, worker.incarnation, proof, words))

    def _forget(self, worker: _Worker) -> None:
        self._workers.pop(worker.incarnation, None)
        self._by_identity.pop(worker.identity.encode(), None)
        if worker.held is not None:
            asyncio.get_running_loop().remove_reader(worker.held.pidfd)
            os.close(worker.held.pidfd)
        if worker.pidfd is not None:
            os.close(worker.pidfd)

    # --- readings

    async def _take_readings(self) -> None:
        meter = Meter()
        while True:
            watched = {
                worker.incarnation: Watched(worker.held.keeper, worker.pid, worker.begun_at)
                for worker in self._workers.values()
                if worker.held is not None and worker.phase is _Phase.HELD
            }
            logs = [worker.log for worker in self._workers.values()]
            self._readings = await asyncio.to_thread(_read, meter, watched, logs)
            self._end_the_too_large()
            await asyncio.sleep(_READING_SECONDS)

    def _end_the_too_large(self) -> None:
        """Where the kernel does not hold a cell to its memory, the readings do."""
        for incarnation, reading in self.readings().items():
            worker = self._workers[incarnation]
            if 0 < worker.memory_bytes_max < reading.memory_bytes and worker.kill_asked_at is None:
                worker.kill_words = f"it used more than {size(worker.memory_bytes_max)} of memory"
                self.kill(incarnation)


def _read(meter: Meter, watched: Mapping[int, Watched], logs: list[Path]) -> dict[int, Reading]:
    """In a thread: the readings, and a look at the logs, which have no other bound."""
    for log in logs:
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > _LOG_BYTES_MAX:
                os.truncate(log, 0)
    return meter.read(watched)


def _outermost(folders: tuple[Path, ...]) -> tuple[str, ...]:
    """The folders without those that lie in another of them."""
    real = {folder.resolve() for folder in folders}
    return tuple(sorted(str(folder) for folder in real if not real & set(folder.parents)))


def _shown(places: Places, hidden: tuple[str, ...]) -> tuple[str, ...]:
    """The sockets of the workers, and what they run on where that lies in a hidden folder."""
    packages = Path(__file__).resolve().parents[2]
    programs = (Path(sys.prefix), Path(sys.base_prefix), packages / "ipc", packages / "worker")
    below = {str(path) for path in programs if any(Path(folder) in path.parents for folder in hidden)}
    return (str(places.workers.resolve()), *sorted(below))
