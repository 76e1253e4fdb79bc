"""The warm process that forks workers: everything is imported, nothing runs in it, and it has one thread.

    supervisor -> guard -> zygote -> keeper (first of a cell) -> worker

The guard only outlasts the zygote and ends what it leaves behind. Started as `python -m worker.zygote FD RUN
REHEARSE`: the descriptor of a SOCK_SEQPACKET pair, and the modules that have `run(fork)` and `rehearse()`.
"""

import gc
import importlib
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable

from ipc.codec import Decoder, encode
from ipc.messages import (
    CellFails,
    CellSpec,
    CellWorks,
    Exited,
    Fork,
    Forked,
    ForkFailed,
    Prepare,
    Running,
    ToZygote,
    Warm,
)
from worker import cell, kernel

# A Fork names a few paths; anything near this size is no Fork.
_DATAGRAM_BYTES_MAX = 64 * 1024
# How often what a killed keeper has left is looked at until it is gone; a kill may be waiting for that.
_STRAYS_MILLISECONDS = 1
_decoder: Decoder[ToZygote] = Decoder(ToZygote)


def main(arguments: list[str]) -> None:
    pair = socket.socket(fileno=int(arguments[0]))
    pair.set_inheritable(False)
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != _peer(pair):
        return
    order = _decoder.decode(pair.recv(_DATAGRAM_BYTES_MAX))
    if not isinstance(order, Prepare):
        return
    try:
        _separate(order.cell, pair)
        zygote = Zygote(pair, order.cell)
        zygote.try_cell()
    except OSError as error:
        pair.send(encode(CellFails(error.strerror or str(error))))
        return
    pair.send(encode(CellWorks()))
    run = zygote.warm_up(*arguments[1:3])
    fork = zygote.serve()
    if fork is not None:
        run(fork)


class Zygote:
    """Forks a worker for every Fork, and tells when a cell has ended."""

    def __init__(self, pair: socket.socket, spec: CellSpec) -> None:
        self._pair = pair
        self._spec = spec
        self._pid = os.getpid()
        self._keepers: dict[int, tuple[int, int]] = {}  # pidfd -> pid, incarnation
        self._ended: list[Exited] = []
        self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def try_cell(self) -> None:
        """Makes a cell that holds nothing; OSError says what the kernel refuses."""
        reading, writing = os.pipe()
        keeper = cell.fork_keeper(self._spec, self._namespace)
        if keeper == 0:
            try:
                cell.become_keeper(self._spec, self._pid)
                cell.children()
            except OSError as error:
                os.write(writing, str(error.strerror or error).encode())
                os._exit(1)
            os._exit(0)
        os.close(writing)
        fault = os.read(reading, 1024).decode()
        os.close(reading)
        _, status = os.waitpid(keeper, 0)
        if status != 0:
            raise OSError(0, fault or f"the trial cell ended with status {os.waitstatus_to_exitcode(status)}")

    def warm_up(self, run: str, rehearse: str) -> Callable[[Fork], None]:
        """Imports all a worker needs and runs it once, so that nothing is left to be done first in a fork."""
        began = time.monotonic()
        entry: Callable[[Fork], None] = importlib.import_module(run).run
        importlib.import_module(rehearse).rehearse()
        gc.collect()
        gc.freeze()
        self._pair.send(encode(Warm(ms=round((time.monotonic() - began) * 1000))))
        return entry

    def serve(self) -> Fork | None:
        """Returns in every worker it forks, with its order; in the zygote when the supervisor is gone."""
        while True:
            poller = select.poll()
            for descriptor in (self._pair.fileno(), *self._keepers):
                poller.register(descriptor, select.POLLIN)
            readable = {
                descriptor for descriptor, _ in poller.poll(_STRAYS_MILLISECONDS if self._ended else None)
            }
            for pidfd in readable & self._keepers.keys():
                self._reap(pidfd)
            if self._ended:
                self._end_strays()
            if self._pair.fileno() in readable:
                frame, descriptors, _, _ = socket.recv_fds(self._pair, _DATAGRAM_BYTES_MAX, 1)
                if not frame:
                    return None
                fork = _decoder.decode(frame)
                if isinstance(fork, Fork) and self._fork(fork, descriptors[0]) == 0:
                    return fork

    def _fork(self, fork: Fork, log: int) -> int:
        """The keeper's pid in the zygote, 0 in the worker."""
        try:
            keeper = cell.fork_keeper(fork.cell, self._namespace)
        except OSError as error:
            self._pair.send(encode(ForkFailed(fork.incarnation, str(error.strerror or error))))
            keeper = -1
        if keeper == 0:
            self._become_cell(fork, log)
            return 0
        os.close(log)
        if keeper > 0:
            pidfd = os.pidfd_open(keeper)
            self._keepers[pidfd] = (keeper, fork.incarnation)
            socket.send_fds(self._pair, [encode(Forked(fork.incarnation))], [pidfd])
        return keeper

    def _become_cell(self, fork: Fork, log: int) -> None:
        """The keeper never leaves this; the worker does."""
        gc.disable()
        for standard in (1, 2):
            os.dup2(log, standard)
        cell.become_keeper(fork.cell, self._pid)
        worker = os.fork()
        if worker != 0:
            socket.send_fds(self._pair, [encode(Running(fork.incarnation))], [os.pidfd_open(worker)])
            kernel.refuse_inspection()
            os.closerange(3, _descriptors_max())
            cell.keep(worker)
        gc.enable()
        self._pair.close()
        for descriptor in (log, self._namespace, *self._keepers):
            os.close(descriptor)
        cell.become_worker()

    def _reap(self, pidfd: int) -> None:
        pid, incarnation = self._keepers.pop(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._ended.append(Exited(incarnation, os.waitstatus_to_exitcode(status)))

    def _end_strays(self) -> None:
        """A keeper that was killed leaves what it held to the zygote; any child that is no keeper is one."""
        keepers = {pid for pid, _ in self._keepers.values()}
        strays = [pid for pid in cell.children() if pid not in keepers]
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
        left = [pid for pid in strays if os.waitpid(pid, os.WNOHANG)[0] == 0]
        if left:
            return
        for exited in self._ended:
            self._pair.send(encode(exited))
        self._ended.clear()


def _separate(spec: CellSpec, pair: socket.socket) -> None:
    """Forks the zygote and returns in it; the process above stays as its guard and never returns."""
    uid, gid = os.geteuid(), os.getegid()
    cell.guard()
    if spec.kind == "pidns":
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
        kernel.map_user(uid, gid)
    else:
        # Without a namespace nobody but the guard can end what the zygote leaves: it must live to do so.
        kernel.die_with_parent(signal.SIGTERM)
    guard = os.getpid()
    zygote = os.fork()
    if zygote != 0:
        pair.close()
        cell.keep(zygote)
    cell.unguard()
    kernel.die_with_parent(signal.SIGKILL)
    # The first process of a namespace cannot see its parent; there the closed pair tells it.
    if spec.kind != "pidns" and os.getppid() != guard:
        os._exit(1)
    if spec.kind == "pidns":
        cell.shut_off(spec)


def _peer(pair: socket.socket) -> int:
    """The pid of the process that made the pair."""
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", pair.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0])


def _descriptors_max() -> int:
    return os.sysconf("SC_OPEN_MAX")


if __name__ == "__main__":
    main(sys.argv[1:])
