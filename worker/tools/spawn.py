"""Starts the processes of tools, without network where the sandbox says so.

A seccomp filter is a thread's own and passes to whatever that thread starts. So the filter is installed in
one thread of the worker, and every tool is started by that thread: a filter installed between fork and exec
would need a slow fork instead of vfork, and a program in between costs an interpreter's start. The other
threads reach the network as before, because the model is there.
"""

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from worker import syscalls

_filtered: ThreadPoolExecutor | None = None


def restrict(program: bytes) -> None:
    """Starts tools under this seccomp filter from now on. Call it once."""
    global _filtered
    _filtered = ThreadPoolExecutor(1, "tools", syscalls.filter_calls, (program,))


def start(
    line: Sequence[str], *, output: int, folder: str, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Returns the process, in a session of its own, with empty input; `output` gets its stdout and stderr."""

    def begin() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    return begin() if _filtered is None else _filtered.submit(begin).result()
