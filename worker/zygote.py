"""The warm process that forks workers: everything is imported, nothing runs in it, and it has one thread.

    supervisor -> guard -> zygote -> keeper (first of a cell) -> worker
    supervisor -> guard -> zygote -> worker (first of a cell that is a namespace)

The guard only outlasts the zygote and ends what it leaves behind. Started as `python -m worker.zygote FD RUN
REHEARSE KIND ENTRY [FOLDER …]`: the descriptor of a SOCK_SEQPACKET pair, the modules that have `run(fork)`
and `stretch()`, and `rehearse(kind, entry, code)`, and the kind, the entry and the folders of its agents.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipc.bounds import sentence
from ipc.codec import encode
from ipc.service_messages import (
    Bind,
    Bound,
    CellFails,
    CellSpec,
    CellWorks,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    NoAgent,
    Prepare,
    Running,
    Warm,
)
from worker import cell, cell_cgroup, syscalls, zygote_orders
from worker.cell_factory import CellFactory
from worker.cell_mounts import CellMounts, hand_over_mounts
from worker.errors import AgentError
from worker.zygote_isolation import separate

# Report of a trial cell about itself.
_WORDS_BYTES_MAX = 4096
# Interval of checks for processes that a killed keeper has left; a kill may wait for their end.
_STRAYS_MILLISECONDS = 1
# Deferred work starts once no order has come for this long: the last worker is running by then.
_IDLE_SECONDS = 0.05
# A prepared cell that died is replaced at most this often.
_REMAKE_SECONDS = 1.0
# Kinds of cell that have a prepared one: agents may have different sandboxes.
_PREPARED_MAX = 2
# The name of a worker that waits for its order, in `ps` and elsewhere.
PREPARED = "hermes-prepared"
# Incarnations count from 1.
_NO_INCARNATION = 0


def main(arguments: list[str]) -> None:
    descriptor, module, rehearse, kind, entry, *code = arguments
    pair = socket.socket(fileno=int(descriptor))
    pair.set_inheritable(False)
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != _peer(pair):
        return
    frame, descriptors, _, _ = socket.recv_fds(pair, zygote_orders.DATAGRAM_BYTES_MAX, 1)
    order = zygote_orders.decoder.decode(frame)
    if not isinstance(order, Prepare):
        return
    try:
        separate(order, pair, descriptors[0] if descriptors else None)
        zygote = Zygote(pair, order)
        shortcomings = zygote.try_cell()
    except OSError as error:
        pair.send(encode(CellFails(error.strerror or str(error))))
        return
    pair.send(encode(CellWorks(shortcomings)))
    try:
        run = zygote.warm_up(module, rehearse, kind, entry, code)
    except AgentError as fault:
        pair.send(encode(NoAgent(sentence(fault.error), sentence(fault.hint))))
        return
    fork = zygote.serve()
    if fork is not None:
        run(fork)


@dataclass(slots=True)
class _Cell:
    """A keeper with a worker that waits at the other end of `line` for its order."""

    pid: int
    pidfd: int
    line: socket.socket
    has_mounts: bool
    # Its cgroup, where it has one in addition to its namespaces.
    leaf: str = ""
    incarnation: int = _NO_INCARNATION

    def close(self) -> None:
        os.close(self.pidfd)
        self.line.close()


class Zygote:
    """Makes a worker for every Fork, and reports the end of cells.

    A cell is prepared ahead: its worker waits for its order and has everything else.
    """

    def __init__(self, pair: socket.socket, order: Prepare) -> None:
        self._pair = pair
        self._factory = CellFactory(order.boundary)
        self._mounts = CellMounts(order.boundary.workspaces)
        # The kinds of cell that were requested last, the latest first: one of each is prepared.
        self._wanted = [order.cell]
        self._pid = os.getpid()
        self._cells: dict[int, _Cell] = {}  # by the keeper's pidfd
        self._ended: list[Exited] = []
        self._prepared: dict[CellSpec, _Cell] = {}
        self._rest_at: float | None = None
        self._stretch: Callable[[], None] | None = None
        self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def try_cell(self) -> tuple[str, ...]:
        """Makes an empty cell and returns its shortcomings; raises OSError for what the kernel refuses."""
        (spec,) = self._wanted
        made = self._factory.setup_for(spec)
        reading, writing = os.pipe()
        leaf = self._leaf(spec)
        keeper = cell.fork_keeper(spec, self._namespace, leaf)
        if keeper == 0:
            try:
                cell.become_keeper(made, self._pid)
                cell.become_worker(made)
                cell.check_programs(made)
                cell.children()
                os.write(writing, "\n".join(cell.shortcomings(made, leaf)).encode())
            except OSError as error:
                os.write(writing, str(error.strerror or error).encode())
                os._exit(1)
            os._exit(0)
        os.close(writing)
        told = os.read(reading, _WORDS_BYTES_MAX).decode()
        os.close(reading)
        _, status = os.waitpid(keeper, 0)
        if leaf:
            cell_cgroup.remove(leaf)
        if status != 0:
            raise OSError(0, told or f"the trial cell ended with status {os.waitstatus_to_exitcode(status)}")
        return tuple(told.splitlines())

    def warm_up(
        self, run: str, rehearse: str, kind: str, entry: str, code: Sequence[str]
    ) -> Callable[[Fork], None]:
        """Imports all a worker needs and runs it once, so that a fork has nothing left to initialise.

        AgentError when there can be no agent of this kind with this entry.
        """
        began = time.monotonic()
        # What is imported stays, and collections while it grows would take an eighth of this time.
        gc.disable()
        program = importlib.import_module(run)
        main: Callable[[Fork], None] = program.run
        self._stretch = program.stretch
        importlib.import_module(rehearse).rehearse(kind, entry, code)
        gc.collect()
        gc.freeze()
        gc.enable()
        self._pair.send(encode(Warm(ms=round((time.monotonic() - began) * 1000))))
        self._rest_in(_IDLE_SECONDS)
        return main

    def serve(self) -> Fork | None:
        """Returns in every worker it forks, with its order; in the zygote when the supervisor is gone."""
        while True:
            readable = self._wait()
            for pidfd in readable & self._cells.keys():
                self._reap(pidfd)
            if self._ended:
                self._end_strays()
            order = None
            if self._pair.fileno() in readable:
                frame, descriptors = zygote_orders.receive(self._pair)
                if not frame:
                    return None
                match zygote_orders.decoder.decode(frame):
                    case Fork() as asked:
                        order = self._start(asked, descriptors)
                    case Bind() as asked:
                        self._bind(asked)
            elif self._rest_at is not None and time.monotonic() >= self._rest_at:
                order = self._rest()
            if order is not None:
                return order

    def _wait(self) -> set[int]:
        """Returns the readable descriptors; none when deferred work is due."""
        poller = select.poll()
        for descriptor in (self._pair.fileno(), *self._cells):
            poller.register(descriptor, select.POLLIN)
        milliseconds: float | None = None
        if self._rest_at is not None:
            milliseconds = max(0.0, (self._rest_at - time.monotonic()) * 1000)
        if self._ended:
            milliseconds = _STRAYS_MILLISECONDS
        return {descriptor for descriptor, _ in poller.poll(milliseconds)}

    def _start(self, fork: Fork, descriptors: list[int]) -> Fork | None:
        """Returns None in the zygote; in a worker forked here, its order."""
        self._want(fork.cell)
        try:
            chosen = self._prepared.pop(fork.cell, None) or self._make(fork.cell)
        except OSError as error:
            self._pair.send(encode(ForkFailed(fork.incarnation, str(error.strerror or error))))
            zygote_orders.close(descriptors)
            return None
        if isinstance(chosen, Fork):
            zygote_orders.close(descriptors)  # in the worker, which has its own
            return chosen
        chosen.incarnation = fork.incarnation
        # A cell that has just died cannot receive its order; its end is reported like any other.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(chosen.line, [encode(fork)], descriptors)
        socket.send_fds(self._pair, [encode(Forked(fork.incarnation, chosen.leaf))], [chosen.pidfd])
        zygote_orders.close(descriptors)
        self._rest_in(_IDLE_SECONDS)
        return None

    def _want(self, spec: CellSpec) -> None:
        """Remembers which kinds to prepare, and ends prepared cells of kinds that are no longer requested."""
        if spec.kind == "cgroup":
            return  # a cgroup is named after its incarnation: there is none to prepare before the order
        self._wanted = [spec, *(other for other in self._wanted if other != spec)][:_PREPARED_MAX]
        for other in self._prepared.keys() - set(self._wanted):
            # The worker sees the end of its channel and exits.
            self._prepared.pop(other).line.close()

    def _rest_in(self, seconds: float) -> None:
        self._rest_at = time.monotonic() + seconds

    def _rest(self) -> Fork | None:
        """Deferred work, run when no order has come for a while.

        None in the zygote; in a prepared worker, its order.
        """
        self._rest_at = None
        self._mounts.release()
        for held in self._cells.values():
            if held.has_mounts:
                self._mounts.hold(held.pid, held.line)
        self._factory.refresh()
        missing = [spec for spec in self._wanted if spec not in self._prepared and spec.kind != "cgroup"]
        if not missing:
            return None
        try:
            made = self._make(missing[0])
        except OSError:
            return None  # the order of the next worker reports the fault, if it persists
        if isinstance(made, Fork):
            return made
        self._prepared[missing[0]] = made
        if len(missing) > 1:
            self._rest_in(_IDLE_SECONDS)
        return None

    def _bind(self, order: Bind) -> None:
        """Reports that the workspace is mounted, or why it is not."""
        held = next((each for each in self._cells.values() if each.incarnation == order.incarnation), None)
        error = "" if held is not None else "it has ended"
        if held is not None and held.has_mounts:
            try:
                self._mounts.bind(held.pid, held.line, order.folder)
            except OSError as fault:
                error = fault.strerror or str(fault)
        self._pair.send(encode(Bound(order.incarnation, error)))

    def _make(self, spec: CellSpec) -> _Cell | Fork:
        """Returns the new cell in the zygote; in the cell's worker, its order, once that has come."""
        setup = self._factory.setup_for(spec)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            leaf, keeper = "", -1
            try:
                leaf = self._leaf(spec)
                keeper = cell.fork_keeper(spec, self._namespace, leaf)
            finally:
                if keeper <= 0:
                    ours.close()
                if keeper < 0 and leaf:
                    cell_cgroup.remove(leaf)
            if keeper == 0:
                try:
                    return self._become_cell(setup, theirs)
                except OSError:
                    # The end of this process tells the zygote. It must not continue as a second zygote.
                    traceback.print_exc()
                    os._exit(1)
        made = _Cell(keeper, os.pidfd_open(keeper), ours, has_mounts=spec.kind == "pidns", leaf=leaf)
        self._cells[made.pidfd] = made
        return made

    def _leaf(self, spec: CellSpec) -> str:
        return cell_cgroup.make(spec) if spec.kind == "pidns" and spec.cgroup else ""

    def _become_cell(self, setup: cell.CellSetup, line: socket.socket) -> Fork:
        """Returns in the worker only; the keeper stays here."""
        gc.disable()
        try:
            cell.become_keeper(setup, self._pid)
            worker = cell.fork_worker(setup.spec)
        except OSError:
            zygote_orders.take(line)  # the fault belongs into the log of the order
            raise
        if worker != 0:
            syscalls.name_process("hermes-keeper")
            syscalls.refuse_inspection()
            os.closerange(3, _descriptors_max())
            cell.keep(worker)
        cell.become_worker(setup)
        self._let_go()
        if setup.spec.kind == "pidns":
            hand_over_mounts(line)
        if self._stretch is not None and not select.select([line], [], [], 0)[0]:
            self._stretch()
        syscalls.name_process(PREPARED)
        fork = zygote_orders.take(line)
        own = os.pidfd_open(os.getpid())
        socket.send_fds(self._pair, [encode(Running(fork.incarnation))], [own])
        os.close(own)
        self._pair.close()
        syscalls.name_process("hermes-worker")
        gc.enable()
        return fork

    def _let_go(self) -> None:
        """In a worker: closes the zygote's resources of other cells."""
        for other in self._cells.values():
            other.close()
        os.close(self._namespace)
        self._mounts.close()
        self._factory.close()

    def _reap(self, pidfd: int) -> None:
        ended = self._cells.pop(pidfd)
        ended.close()
        self._mounts.leave(ended.pid)
        _, status = os.waitpid(ended.pid, 0)
        if ended.leaf and ended.incarnation == _NO_INCARNATION:
            cell_cgroup.remove(ended.leaf)
        self._ended.append(Exited(ended.incarnation, os.waitstatus_to_exitcode(status)))
        kept = {spec: made for spec, made in self._prepared.items() if made is not ended}
        self._rest_in(_IDLE_SECONDS if len(kept) == len(self._prepared) else _REMAKE_SECONDS)
        self._prepared = kept

    def _end_strays(self) -> None:
        """Ends the processes that a killed keeper left to the zygote: every child that is no keeper.

        Their ends are reported after a scan that found none: a process that was killed just now may have
        forked before.
        """
        keepers = {held.pid for held in self._cells.values()}
        strays = [pid for pid in cell.children() if pid not in keepers]
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, os.WNOHANG)
        if strays:
            return
        for exited in self._ended:
            if exited.incarnation != _NO_INCARNATION:
                self._pair.send(encode(exited))
        self._ended.clear()


def _peer(pair: socket.socket) -> int:
    """Returns the pid of the process that made the pair."""
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", pair.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0])


def _descriptors_max() -> int:
    return os.sysconf("SC_OPEN_MAX")


if __name__ == "__main__":
    main(sys.argv[1:])
