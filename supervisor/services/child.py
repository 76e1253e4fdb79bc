"""One process of a service: orders on standard input, killed with its whole group, always reaped."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ipc import interpreter
from ipc.service_messages import ServiceStart
from supervisor.handoff.carried_services import HandedService

# A larger log is rotated, by a copy while the service runs; the older one is dropped.
_LOG_BYTES_MAX = 4 * 1024 * 1024
# Orders must fit the pipe's buffer, or writing them could block the loop on a child that does not read.
_ORDERS_BYTES_MAX = 60 * 1024
_LAST_WORDS_BYTES = 2048
_LAST_WORDS_CHARACTERS = 200


class Child:
    """A running process. `ended` gets its exit status (negative: the signal) once, after it was reaped.

    Make it in the main thread: the child asks the kernel to die with the thread that made it (PDEATHSIG).
    """

    def __init__(
        self, pid: int, reap: Callable[[], int], log: Path, log_offset: int, ended: Callable[[int], None]
    ) -> None:
        """`reap` waits for the ended process and returns its exit status."""
        self.pid = pid
        self._reap = reap
        self._is_reaped = False
        self._log = log
        self._log_offset = log_offset
        self._ended = ended
        self._descriptor = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._exited)

    @classmethod
    def start(
        cls,
        module: str,
        orders: ServiceStart,
        log: Path,
        environment: Iterable[str],
        ended: Callable[[int], None],
    ) -> "Child":
        line = msgspec.json.encode(orders) + b"\n"
        if len(line) > _ORDERS_BYTES_MAX:
            raise ValueError(
                f"the orders of {orders.name} are {len(line)} bytes, the limit is {_ORDERS_BYTES_MAX}"
            )
        output = _open_log(log)
        try:
            log_offset = os.fstat(output).st_size
            process = subprocess.Popen(
                interpreter.command(module),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=interpreter.environment(*environment),
                cwd=interpreter.WORKING_DIRECTORY,
                start_new_session=True,
            )
        finally:
            os.close(output)
        child = cls(process.pid, process.wait, log, log_offset, ended)
        assert process.stdin is not None
        # A child that has already ended is reported by `ended`.
        with contextlib.suppress(BrokenPipeError), process.stdin as orders_pipe:
            orders_pipe.write(line)
        return child

    @classmethod
    def take_over(cls, handed: HandedService, log: Path, ended: Callable[[int], None]) -> "Child":
        """Take over a child that an earlier image of this process started."""

        def reap() -> int:
            return os.waitstatus_to_exitcode(os.waitpid(handed.pid, 0)[1])

        return cls(handed.pid, reap, log, handed.log_offset, ended)

    def hand_over(self) -> int:
        """Detach from the child without ending it; return the offset where its log began."""
        self._loop.remove_reader(self._descriptor)
        return self._log_offset

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL; `ended` follows."""
        self._signal(signal.SIGKILL)

    def last_words(self) -> str:
        """Return the last line this process wrote to its log, shortened."""
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_offset, size - _LAST_WORDS_BYTES))
            lines = log.read(_LAST_WORDS_BYTES).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_LAST_WORDS_CHARACTERS]

    def bound_log(self) -> None:
        """A line written during the copy may be lost; a file that is open cannot be exchanged."""
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > _LOG_BYTES_MAX:
                shutil.copyfile(self._log, _older(self._log))
                os.truncate(self._log, 0)
                self._log_offset = 0

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process by descriptor, its group by number: until it is reaped the number is its own."""
        if not self._is_reaped:
            signal.pidfd_send_signal(self._descriptor, number)
            _signal_group(self.pid, number)

    def _exited(self) -> None:
        self._loop.remove_reader(self._descriptor)
        # Its descendants must end before its number is free again.
        _signal_group(self.pid, signal.SIGKILL)
        status = self._reap()
        self._is_reaped = True
        os.close(self._descriptor)
        self._ended(status)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _open_log(path: Path) -> int:
    if path.exists() and path.stat().st_size > _LOG_BYTES_MAX:
        path.replace(_older(path))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _older(path: Path) -> Path:
    return path.with_suffix(".log.1")
