"""Separates the zygote from its supervisor: below a guard, in namespaces of its own.

The guard outlives the zygote and ends what it leaves behind; it ends everything when the lease of the host is
given up (lease_watch.py). For cells of namespaces the zygote is the first process of a pid namespace and has
all capabilities in a user namespace, but none outside of it.

That user namespace has the supervisor's user and, if agents run as another one, that user too: the zygote
builds views from folders of the first, and cells are of the second. In the user namespace of a cell only the
agent's user exists.
"""

import os
import signal
import socket
from collections.abc import Callable

from ipc.service_messages import Prepare, User
from worker import cell, syscalls
from worker.lease_watch import LeaseWatch


def separate(order: Prepare, pair: socket.socket, lease: int | None = None) -> None:
    """Forks the zygote and returns in it; the process above stays as its guard and never returns.

    `lease` is memory with the end of the host's lease, where several hosts share a journal.
    """
    spec, user = order.cell, order.boundary.user
    cell.guard()
    if spec.kind == "pidns":
        map_users = _own_mapping() if user is None else _outer_mapping(user)
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID)
        map_users()
    else:
        # Without a namespace only the guard can end what the zygote leaves: it must survive to do so, and no
        # process of the same user may tamper with it.
        syscalls.die_with_parent(signal.SIGTERM)
        syscalls.refuse_inspection()
    guard = os.getpid()
    zygote = os.fork()
    if zygote != 0:
        pair.close()
        syscalls.name_process("hermes-guard")
        cell.keep(zygote, LeaseWatch(lease) if lease is not None else None)
    if lease is not None:
        os.close(lease)
    syscalls.name_process("hermes-zygote")
    cell.unguard()
    syscalls.die_with_parent(signal.SIGKILL)
    # The first process of a namespace cannot see its parent; there the closed pair reports its end.
    if spec.kind != "pidns" and os.getppid() != guard:
        os._exit(1)
    if spec.kind == "pidns":
        cell.set_up_workshop()


def _own_mapping() -> Callable[[], None]:
    """Called in the new user namespace: maps the calling user only."""
    uid, gid = os.geteuid(), os.getegid()

    def map_user() -> None:
        own = _folder_of("self")
        syscalls.map_user(uid, gid, own)
        os.close(own)

    return map_user


def _outer_mapping(user: User) -> Callable[[], None]:
    """The same for two users, the calling one and this.

    Only a process that stays outside may map others than itself. It is forked now, and waits.
    """
    uids, gids = (os.geteuid(), user.uid), (os.getegid(), user.gid)
    waiting, ready = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        os.close(ready)
        if not os.read(waiting, 1):
            os._exit(0)
        try:
            syscalls.map_users(uids, gids, _folder_of(str(os.getppid())))
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    os.close(waiting)

    def map_users() -> None:
        os.write(ready, b"x")
        os.close(ready)
        number = os.waitstatus_to_exitcode(os.waitpid(mapper, 0)[1])
        if number != 0:
            raise OSError(number, f"mapping of uid {user.uid}: {os.strerror(number)}")

    return map_users


def _folder_of(process: str) -> int:
    return os.open(f"/proc/{process}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
