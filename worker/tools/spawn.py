"""Starts the processes of tools, without network where the sandbox says so.

A seccomp filter is a thread's own and passes to whatever that thread starts. So the filter is installed in
one thread of the worker, and every tool is started by that thread: a filter installed between fork and exec
would need a slow fork instead of vfork, and a program in between costs an interpreter's start. The other
threads reach the network as before, because the model is there.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from worker import syscalls

_filtered: ThreadPoolExecutor | None = None
_program = b""


def restrict(program: bytes) -> None:
    """Starts tools under this seccomp filter from now on. Call it once."""
    global _filtered, _program
    _program = program
    _filtered = ThreadPoolExecutor(1, "tools", syscalls.filter_calls, (program,))


def restrict_this_thread() -> None:
    """Puts the calling thread, and all that it starts, under the filter: it runs an agent's own code."""
    if _program:
        syscalls.filter_calls(_program)


def start(
    line: Sequence[str], *, given: bytes, output: int, folder: str, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Returns the process, in a session of its own; `output` gets its stdout and stderr."""

    def begin(given: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            line,
            stdin=given,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    with _input(given) as file:
        return _by_tools_thread(lambda: begin(file))


def start_piped(
    line: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: str = "/",
    errors: int = subprocess.DEVNULL,
) -> "subprocess.Popen[bytes]":
    """The same with unbuffered pipes for stdin and stdout, for a process that outlives the turn.

    It begins in the root folder unless told otherwise: a process stays in a folder that a mount covers, and
    the workspace is mounted later.
    """

    def begin() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            line,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    return _by_tools_thread(begin)


def _by_tools_thread(begin: "Callable[[], subprocess.Popen[bytes]]") -> "subprocess.Popen[bytes]":
    return begin() if _filtered is None else _filtered.submit(begin).result()


@contextmanager
def _input(given: bytes) -> Iterator[int]:
    """A file and not a pipe: writing to a full pipe waits for its reader."""
    if not given:
        yield subprocess.DEVNULL
        return
    with os.fdopen(os.memfd_create("input", os.MFD_CLOEXEC), "wb", buffering=0) as file:
        file.write(given)
        file.seek(0)
        yield file.fileno()
