"""The mount namespaces of cells, held by the zygote for two reasons.

The last process to leave a mount namespace waits until the whole kernel has seen it go; no dying worker shall
be that one, so the zygote lets go last, when it is idle. And a session's workspace is put into the cell of
its worker when the worker gets its first turn: the zygote, which has the powers that a cell lacks, enters the
cell's namespace for that, attaches the folder and returns.

A process that was forked just now is still in the zygote's own namespace or in a pattern of a view. What is
attached there would be seen in every cell to come, so such a namespace is never taken for a cell's.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from worker import kernel, mounts
from worker.view import WORKSPACE


class CellMounts:
    """`patterns` are the namespaces that views are kept in; `workspaces` is the folder of all workspaces."""

    def __init__(self, workspaces: str, patterns: Callable[[], Iterable[int]]) -> None:
        self._workspaces = workspaces
        self._patterns = patterns
        self._own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._held: dict[int, int] = {}  # by the pid of a cell's first process
        self._left: list[int] = []

    def hold(self, pid: int) -> int | None:
        """The namespace of a cell; None when it has none yet, or has just died."""
        if pid not in self._held:
            with suppress(OSError):
                found = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
                others = {os.fstat(other).st_ino for other in (self._own, *self._patterns())}
                if os.fstat(found).st_ino in others:
                    os.close(found)
                else:
                    self._held[pid] = found
        return self._held.get(pid)

    def leave(self, pid: int) -> None:
        """The cell has ended; its namespace is let go of by `release`."""
        if pid in self._held:
            self._left.append(self._held.pop(pid))

    def release(self) -> None:
        for namespace in self._left:
            os.close(namespace)
        self._left.clear()

    def bind(self, pid: int, name: str) -> None:
        """Attaches a session's workspace in a cell; OSError says why it cannot."""
        namespace = self.hold(pid)
        if namespace is None:
            raise OSError(0, "its cell is not complete")
        tree = self._clone(name)
        kernel.setns(namespace, kernel.CLONE_NEWNS)
        try:
            mounts.attach(tree, WORKSPACE)
        finally:
            kernel.setns(self._own, kernel.CLONE_NEWNS)

    def close(self) -> None:
        """In a worker: of all that the zygote holds."""
        for namespace in (self._own, *self._held.values(), *self._left):
            os.close(namespace)

    def _clone(self, name: str) -> int:
        """One folder in the folder of all workspaces, which itself no agent can write to."""
        if name in ("", ".", "..") or "/" in name:
            raise OSError(0, f"{name!r} is no name of a workspace")
        above = mounts.find(self._workspaces)
        try:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(name, flags, dir_fd=above)
        finally:
            os.close(above)
        try:
            tree = mounts.clone(folder)
        finally:
            os.close(folder)
        mounts.restrict(tree, mounts.NO_SUID | mounts.NO_DEVICES)
        return tree
