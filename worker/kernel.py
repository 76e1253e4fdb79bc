"""The system calls Python has no words for; each raises OSError with the name of the call that failed."""

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
_CLONE_INTO_CGROUP: Final = 0x200000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
# A remount may not lose what the mount already forbids; these are numbered alike in statvfs and in mount.
_MOUNT_FLAGS_KEPT: Final = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
_PR_SET_NO_NEW_PRIVS: Final = 38
# Capabilities are numbered from 0 without gaps; there is room for 64, the first unknown one is refused.
_CAPABILITIES_MAX: Final = 64
_CAPABILITY_VERSION_3: Final = 0x20080522
_SYS_CLONE3: Final = 435
_SIGCHLD: Final = 17

_libc = ctypes.CDLL(None, use_errno=True)
# Keeps the interpreter lock: a child made while it is released would wait for it for ever.
_libc_with_lock = ctypes.PyDLL(None, use_errno=True)


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: int, call: str) -> None:
    _check(
        _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)),
        call,
    )


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    _check(_libc.setns(descriptor, flags), "setns")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _check(result, f"mount of {target}")


def make_read_only(target: str) -> None:
    """Forbids writing through the mount at `target`, and keeps whatever else it forbids."""
    kept = os.statvfs(target).f_flag & _MOUNT_FLAGS_KEPT
    mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def die_with_parent(signal_number: int) -> None:
    """Asks for a signal when the thread that made this process ends. Check the parent again afterwards."""
    _prctl(_PR_SET_PDEATHSIG, signal_number, "prctl(PDEATHSIG)")


def adopt_orphans() -> None:
    """Makes this process the new parent of every descendant that loses its own."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, "prctl(CHILD_SUBREAPER)")


def adopts_orphans() -> bool:
    """Whether this process is the new parent of orphaned descendants."""
    answer = ctypes.c_int(0)
    _check(_libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0), "prctl(GET_CHILD_SUBREAPER)")
    return bool(answer.value)


def refuse_inspection() -> None:
    """Keeps processes of the same user from tracing this one."""
    _prctl(_PR_SET_DUMPABLE, 0, "prctl(DUMPABLE)")


def name_process(name: str) -> None:
    """What `ps` and `top` show of this thread; the kernel keeps fifteen bytes."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl(NAME)")


def drop_privileges() -> None:
    """Gives up every capability, for this process and for whatever it executes."""
    for capability in range(_CAPABILITIES_MAX):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "capset")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "prctl(NO_NEW_PRIVS)")


def map_user(uid: int, gid: int) -> None:
    """In a user namespace just made: this user and group are themselves, and nobody else exists."""
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def fork_into_cgroup(folder: str) -> int:
    """Like os.fork, the child in the cgroup from its first instant: moving it later costs ten milliseconds.

    The child must fork again before it does anything of weight: the C library has not noticed this fork.
    """
    cgroup = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    # struct clone_args: eleven 64-bit words, of which only flags, exit_signal and cgroup are used.
    arguments = (ctypes.c_uint64 * 11)(_CLONE_INTO_CGROUP, 0, 0, 0, _SIGCHLD, 0, 0, 0, 0, 0, cgroup)
    ctypes.pythonapi.PyOS_BeforeFork()
    result = int(_libc_with_lock.syscall(_SYS_CLONE3, arguments, ctypes.c_size_t(ctypes.sizeof(arguments))))
    number = ctypes.get_errno()
    if result == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    os.close(cgroup)
    if result < 0:
        raise OSError(number, f"clone3: {os.strerror(number)}")
    return result
