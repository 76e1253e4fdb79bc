"""The mount namespaces of cells, held by the zygote for two reasons.

The last process to leave a mount namespace waits until the whole kernel has seen it go; no dying worker must
be that one, so the zygote releases the namespace last, when it is idle. And a session's workspace is mounted
into the cell of its worker when the worker gets its first turn: the zygote, which has the capabilities that a
cell lacks, enters the cell's namespace for that, attaches the folder and returns.

The worker itself passes its namespace on, once it is complete and before it runs anything but our own code:
the zygote could not open it, since a worker refuses inspection.
"""

import os
import socket
from contextlib import suppress

from worker import mounts, syscalls
from worker.cell_view import WORKSPACE

_MOUNTS = b"mounts"


def hand_over_mounts(line: socket.socket) -> None:
    """In a worker, when its cell is complete: sends its namespace to the zygote at the other end."""
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        socket.send_fds(line, [_MOUNTS], [own])
    finally:
        os.close(own)


class CellMounts:
    """`workspaces` is the folder of all workspaces."""

    def __init__(self, workspaces: str) -> None:
        # Opened at the start: a folder that takes its place later is not used.
        self._workspaces = mounts.find(workspaces) if os.path.isdir(workspaces) else -1
        self._own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self._held: dict[int, int] = {}  # by the pid of a cell's first process
        self._left: list[int] = []

    def hold(self, pid: int, line: socket.socket) -> int | None:
        """Receives the namespace of a cell from its worker.

        None when the worker has sent none, or has died.
        """
        if pid not in self._held:
            with suppress(OSError):
                _, found, _, _ = socket.recv_fds(line, len(_MOUNTS), 1, socket.MSG_DONTWAIT)
                self._held.update({pid: found[0]} if found else {})
        return self._held.get(pid)

    def leave(self, pid: int) -> None:
        """The cell has ended; `release` closes its namespace."""
        if pid in self._held:
            self._left.append(self._held.pop(pid))

    def release(self) -> None:
        for namespace in self._left:
            os.close(namespace)
        self._left.clear()

    def bind(self, pid: int, line: socket.socket, name: str) -> None:
        """Attaches a session's workspace in a cell; raises OSError with the reason."""
        namespace = self.hold(pid, line)
        if namespace is None:
            raise OSError(0, "its cell is not complete")
        tree = self._clone(name)
        syscalls.setns(namespace, syscalls.CLONE_NEWNS)
        try:
            mounts.attach(tree, WORKSPACE)
        finally:
            syscalls.setns(self._own, syscalls.CLONE_NEWNS)

    def close(self) -> None:
        """In a worker: closes everything that the zygote holds."""
        for descriptor in (self._own, *self._held.values(), *self._left):
            os.close(descriptor)
        if self._workspaces >= 0:
            os.close(self._workspaces)

    def _clone(self, name: str) -> int:
        """Clones one folder in the folder of all workspaces, which no agent can write to."""
        if name in ("", ".", "..") or "/" in name:
            raise OSError(0, f"{name!r} is no name of a workspace")
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(name, flags, dir_fd=self._workspaces)
        try:
            tree = mounts.clone(folder)
        finally:
            os.close(folder)
        mounts.restrict(tree, mounts.NO_SUID | mounts.NO_DEVICES)
        return tree
