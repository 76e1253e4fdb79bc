"""The connection to the zygote: starts it, sends its orders, and detects the end of all its descendants."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipc.codec import Decoder, encode
from ipc.errors import WireError
from ipc.interpreter import WORKING_DIRECTORY, command
from ipc.service_messages import Bind, Bound, Fork, FromZygote, Prepare
from supervisor.handoff.carried_workers import HandedZygote
from supervisor.host.lease import Lease
from supervisor.processes import procfs

_DATAGRAM_BYTES_MAX = 64 * 1024
_decoder: Decoder[FromZygote] = Decoder(FromZygote)

Receive = Callable[[FromZygote, int | None], None]
# Receives the fault of a binding, "" when there is none.
Done = Callable[[str], None]
_ENDED = "it has ended"


@dataclass(frozen=True, slots=True)
class Program:
    """The zygote's interpreter; modules with `run(fork)` and `stretch()`, and `rehearse(kind, entry, code)`.

    `path` are folders with modules that the interpreter does not find by itself; `kind`, `entry` and `code`
    are those of its agents. `code` are folders with modules of theirs, which must not hide ours.
    """

    python: str = sys.executable
    run: str = "worker.worker_main"
    rehearse: str = "worker.warm_up"
    path: tuple[str, ...] = ()
    kind: str = "builtin"
    entry: str = ""
    code: tuple[str, ...] = ()

    def line(self, pair: str) -> list[str]:
        modules = ("worker.zygote", pair, self.run, self.rehearse, self.kind, self.entry, *self.code)
        return command(*modules, python=self.python, path=self.path)


class Zygote:
    """A running zygote. `receive` gets its frames, each with the descriptor that came along; the answer to a
    binding goes to the caller who asked for it.

    `ended` is called once, with the exit status, when the guard above the zygote has ended: then the zygote,
    every worker and all their descendants are gone.
    """

    def __init__(
        self,
        pair: socket.socket,
        guard: int,
        reap: Callable[[], int],
        receive: Receive,
        ended: Callable[[int], None],
    ) -> None:
        """`reap` waits for the ended guard and returns its exit status."""
        self._pair = pair
        self._pair.setblocking(False)
        self._guard = guard
        self._reap = reap
        self._receive = receive
        self._ended = ended
        self._bindings: dict[int, Done] = {}  # that are not answered yet, by incarnation
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(guard)
        found = procfs.status(guard)
        self.process = found.process if found else procfs.NO_PROCESS
        self._loop.add_reader(self._pair, self._drain)
        self._loop.add_reader(self._pidfd, self._guard_ended)

    @classmethod
    def start(
        cls,
        program: Program,
        prepare: Prepare,
        log: Path,
        environment: Mapping[str, str],
        receive: Receive,
        ended: Callable[[int], None],
        lease: Lease | None = None,
    ) -> "Zygote":
        """`lease` is that of this host, where several share a journal: the guard ends everything with it."""
        # The kernel ends the guard with the thread that started it (PDEATHSIG).
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start the zygote from the main thread")
        pair, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("wb") as output:
            guard = subprocess.Popen(
                program.line(str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                cwd=WORKING_DIRECTORY,
                env=dict(environment),
                start_new_session=True,
            )
        zygote = cls(pair, guard.pid, guard.wait, receive, ended)
        # A guard that has died already is reported by `ended`.
        if lease is None:
            zygote.send(prepare)
        else:
            with lease.to_read() as descriptor:
                zygote.send(prepare, [descriptor])
        return zygote

    @classmethod
    def take_over(cls, handed: HandedZygote, receive: Receive, ended: Callable[[int], None]) -> "Zygote":
        """Take over a zygote that an earlier image of this process started: it is still its child."""
        pair = socket.socket(fileno=handed.pair)
        pair.set_inheritable(False)

        def reap() -> int:
            return os.waitstatus_to_exitcode(os.waitpid(handed.guard, 0)[1])

        return cls(pair, handed.guard, reap, receive, ended)

    def hand_over(self, kind: str) -> HandedZygote:
        """Hand over to the next image of this process, and detach."""
        self._loop.remove_reader(self._pidfd)
        self._loop.remove_reader(self._pair)
        self._pair.set_inheritable(True)
        return HandedZygote(kind, self._guard, self._pair.detach())

    def send(
        self, order: Prepare | Fork | Bind, descriptors: Sequence[int] = (), done: Done | None = None
    ) -> bool:
        """Return False when it cannot be sent now; nothing was sent then.

        `done` is called once with the outcome of a binding, also when the worker or the zygote ends before.
        """
        try:
            socket.send_fds(self._pair, [encode(order)], descriptors)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            return False
        if isinstance(order, Bind) and done is not None:
            self._bindings[order.incarnation] = done
        return True

    def forget(self, incarnation: int) -> None:
        """A worker has ended: nothing is bound for it any more."""
        if (done := self._bindings.pop(incarnation, None)) is not None:
            done(_ENDED)

    def end(self) -> None:
        """Ask the guard to end everything; `ended` follows."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, OSError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _drain(self) -> None:
        while True:
            try:
                frame, descriptors, _, _ = socket.recv_fds(self._pair, _DATAGRAM_BYTES_MAX, 1)
            except (BlockingIOError, ConnectionResetError):
                return
            if not frame:
                self._loop.remove_reader(self._pair)
                self.end()
                return
            try:
                message = _decoder.decode(frame)
            except WireError:
                # Only another version of our own code sends this; its workers would be unusable.
                self.end()
                return
            if not isinstance(message, Bound):
                self._receive(message, descriptors[0] if descriptors else None)
            elif (done := self._bindings.pop(message.incarnation, None)) is not None:
                done(message.error)

    def _guard_ended(self) -> None:
        self._drain()
        self._loop.remove_reader(self._pidfd)
        self._loop.remove_reader(self._pair)
        os.close(self._pidfd)
        self._pidfd = -1
        self._pair.close()
        for incarnation in list(self._bindings):
            self.forget(incarnation)
        self._ended(self._reap())
