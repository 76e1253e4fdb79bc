"""Runs one command as a process group: one pipe for its output, one signal to end it.

The command has ended when its own process has, even if other processes still hold the pipe.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence

from worker import descendants
from worker.tools import spawn

# Commands get these variables only: the host's keys and tokens are not for them.
_VARIABLES = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "GIT_CONFIG_SYSTEM")
)
# There is no terminal: no colours, no pager.
_FIXED = {"TERM": "dumb", "PAGER": "cat"}
_READ_BYTES = 65_536
# The command's output is in the pipe when it ends; its children have this long to write more.
_DRAIN_SECONDS = 0.2
# Time for a command to clean up before it is killed.
_GRACE_SECONDS = 2.0
# Killed processes are gone in milliseconds; one that the kernel cannot end is not waited for.
_DEATH_SECONDS_MAX = 2.0

OnOutput = Callable[[bytes], None]


def environment(host: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a command."""
    shown = {name: value for name, value in host.items() if name in _VARIABLES or name.startswith("LC_")}
    return shown | _FIXED


class Command:
    """Runs from its construction on; `on_output` gets stdout and stderr in the order they were written."""

    def __init__(self, line: Sequence[str], folder: str, on_output: OnOutput, given: bytes = b"") -> None:
        """`given` is its standard input."""
        self._loop = asyncio.get_running_loop()
        self._on_output = on_output
        self._began = self._loop.time()
        self._ended = asyncio.Event()
        self._silent = asyncio.Event()
        self._pipe, writing = os.pipe()
        try:
            self._process = spawn.start(
                line, given=given, output=writing, folder=folder, environment=environment(os.environ)
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(writing)
        descendants.claim(self._process.pid)
        self._pidfd = os.pidfd_open(self._process.pid)
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._read)
        self._loop.add_reader(self._pidfd, self._exited)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def is_silent(self) -> bool:
        """True when no process holds the other end of the pipe any more."""
        return self._silent.is_set()

    @property
    def seconds(self) -> float:
        return self._loop.time() - self._began

    @property
    def outcome(self) -> str:
        """How it ended, or for how long it has been running."""
        status = self._process.returncode
        if status is None:
            return f"still running after {self.seconds:.1f} s"
        if status >= 0:
            return f"exit status {status}"
        known = -status in signal.valid_signals() and signal.strsignal(-status)
        return f"ended by signal {-status}" + (f" ({known})" if known else "")

    @property
    def exit(self) -> int | None:
        """Its status, if it has exited."""
        status = self._process.returncode
        return status if status is not None and status >= 0 else None

    @property
    def ended_by(self) -> str:
        """The name of the signal that ended it, if one has."""
        status = self._process.returncode
        if status is None or status >= 0:
            return ""
        try:
            return signal.Signals(-status).name
        except ValueError:  # a real-time signal has a number only
            return f"signal {-status}"

    async def wait(self, seconds: float) -> bool:
        """Returns true if it ends within this time; all its output has been read then."""
        if not await _happens(self._ended, seconds):
            return False
        await _happens(self._silent, _DRAIN_SECONDS)
        return True

    async def stop(self) -> None:
        """Sends SIGTERM to the whole group, then SIGKILL."""
        self._signal(signal.SIGTERM)
        if not await self.wait(_GRACE_SECONDS):
            self._signal(signal.SIGKILL)
            await self.wait(_DEATH_SECONDS_MAX)

    def ignore(self) -> None:
        """Reads and drops later output of its children: a closed pipe would end them."""
        self._on_output = _forget

    def close(self) -> None:
        """Kills the group if the command runs, and releases it; the adopter of orphans reaps it.

        Called again, it does nothing: its descriptors may be those of others by then.
        """
        self._hang_up()
        if not self.has_ended:
            self._signal(signal.SIGKILL)
            self._let_go()
            self._process.returncode = -signal.SIGKILL
            self._ended.set()

    def _signal(self, number: signal.Signals) -> None:
        # Until it is reaped, its pid names this group and no other.
        if not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _read(self) -> None:
        try:
            content = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if content:
            self._on_output(content)
        else:
            self._hang_up()

    def _hang_up(self) -> None:
        if not self._silent.is_set():
            self._silent.set()
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)

    def _exited(self) -> None:
        self._process.poll()
        self._let_go()
        self._ended.set()

    def _let_go(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        descendants.let_go(self._process.pid)


def _forget(_: bytes) -> None:
    pass


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
