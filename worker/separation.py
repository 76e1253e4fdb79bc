"""How the zygote comes to stand apart from its supervisor: below a guard, in namespaces of its own.

The guard outlives the zygote and ends what it leaves behind. For cells of namespaces the zygote is the first
process of a pid namespace and has all powers in a user namespace, but none outside of it.
"""

import os
import signal
import socket

from ipc.children import CellSpec
from worker import cell, kernel


def separate(spec: CellSpec, pair: socket.socket) -> None:
    """Forks the zygote and returns in it; the process above stays as its guard and never returns."""
    uid, gid = os.geteuid(), os.getegid()
    cell.guard()
    if spec.kind == "pidns":
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
        own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        kernel.map_user(uid, gid, own)
        os.close(own)
    else:
        # Without a namespace nobody but the guard can end what the zygote leaves: it must live to do so, and
        # no process of the same user may make it say what is not so.
        kernel.die_with_parent(signal.SIGTERM)
        kernel.refuse_inspection()
    guard = os.getpid()
    zygote = os.fork()
    if zygote != 0:
        pair.close()
        kernel.name_process("hermes-guard")
        cell.keep(zygote)
    kernel.name_process("hermes-zygote")
    cell.unguard()
    kernel.die_with_parent(signal.SIGKILL)
    # The first process of a namespace cannot see its parent; there the closed pair tells it.
    if spec.kind != "pidns" and os.getppid() != guard:
        os._exit(1)
    if spec.kind == "pidns":
        cell.set_up_workshop()
