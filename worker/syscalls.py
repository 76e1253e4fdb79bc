"""System calls that Python does not wrap; each raises OSError with the name of the call that failed."""

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
_CLONE_INTO_CGROUP: Final = 0x200000000

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_GET_CHILD_SUBREAPER: Final = 37
_PR_SET_NO_NEW_PRIVS: Final = 38
# Capabilities are numbered from 0 without gaps, 64 at most; the first unknown one is refused.
_CAPABILITIES_MAX: Final = 64
_CAPABILITY_VERSION_3: Final = 0x20080522
_SYS_CLONE3: Final = 435
_SYS_LANDLOCK_CREATE_RULESET: Final = 444
_SYS_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_CREATE_RULESET_VERSION: Final = 1
_LANDLOCK_SCOPES: Final = 1 << 0 | 1 << 1  # abstract Unix sockets, signals
# The first version of Landlock that can scope them, in Linux 6.12.
LANDLOCK_WITH_SCOPES: Final = 6
_SECCOMP_MODE_FILTER: Final = 2
# struct sock_filter: a code of two bytes, two jumps of one byte, an operand of four.
_INSTRUCTION_BYTES: Final = 8
_SIGCHLD: Final = 17

libc = ctypes.CDLL(None, use_errno=True)
# Before glibc 2.34 timers are in a library of their own.
_timers = libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1", use_errno=True)
# Keeps the interpreter lock: a child made while it is released would wait for it forever.
_libc_with_lock = ctypes.PyDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog of seccomp(2)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: int, call: str) -> None:
    check(
        libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)),
        call,
    )


def unshare(flags: int) -> None:
    check(libc.unshare(flags), "unshare")


def setns(descriptor: int, flags: int) -> None:
    check(libc.setns(descriptor, flags), "setns")


def die_with_parent(signal_number: int) -> None:
    """Requests a signal when the thread that made this process ends. Check the parent again afterwards."""
    _prctl(_PR_SET_PDEATHSIG, signal_number, "prctl(PDEATHSIG)")


def adopt_orphans(adopt: bool = True) -> None:
    """Makes this process the new parent of every descendant that loses its own."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), "prctl(CHILD_SUBREAPER)")


def adopts_orphans() -> bool:
    """True when this process is the new parent of orphaned descendants."""
    answer = ctypes.c_int(0)
    check(libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0), "prctl(GET_CHILD_SUBREAPER)")
    return bool(answer.value)


def refuse_inspection(refuse: bool = True) -> None:
    """Keeps processes of the same user from tracing this one, and its files in /proc from all but root."""
    _prctl(_PR_SET_DUMPABLE, 0 if refuse else 1, "prctl(DUMPABLE)")


def name_process(name: str) -> None:
    """Sets the name of this thread in `ps` and `top`; the kernel keeps fifteen bytes."""
    check(libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl(NAME)")


def make_timer(clock: int, timer: ctypes.c_void_p) -> None:
    """Makes a timer of this process that sends SIGALRM."""
    check(_timers.timer_create(clock, None, ctypes.byref(timer)), "timer_create")


def set_timer(timer: ctypes.c_void_p, flags: int, spec: ctypes.Structure) -> None:
    check(_timers.timer_settime(timer, flags, ctypes.byref(spec), None), "timer_settime")


def become_user(uid: int, gid: int) -> None:
    """Changes to this user and group for good, without other groups; loses all capabilities.

    The kernel resets the signal of `die_with_parent`, and refuses inspection until it is allowed again.
    """
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    refuse_inspection(False)


def give_up_regaining() -> None:
    """Programs executed from here on gain no capability from their files.

    Needs CAP_SETPCAP, or does nothing.
    """
    for capability in range(_CAPABILITIES_MAX):
        if libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break


def drop_privileges() -> None:
    """Gives up every capability, for this process and for all that it executes."""
    give_up_regaining()
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    check(libc.capset(header, nothing), "capset")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "prctl(NO_NEW_PRIVS)")


def landlock_version() -> int:
    """Returns the version of Landlock's interface; 0 where the kernel has none or it is switched off."""
    version = libc.syscall(
        _SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_CREATE_RULESET_VERSION
    )
    return max(0, int(version))


def scope_sockets_and_signals() -> None:
    """From here on abstract Unix sockets and signals reach only what has called this or descends from it.

    For this thread and its descendants; needs NO_NEW_PRIVS and LANDLOCK_WITH_SCOPES.
    """
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped.
    wanted = (ctypes.c_uint64 * 3)(0, 0, _LANDLOCK_SCOPES)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    ruleset = check(libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, wanted, size, 0), "landlock_create_ruleset")
    try:
        check(libc.syscall(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def filter_calls(program: bytes) -> None:
    """Installs a seccomp filter for this thread and its descendants; needs NO_NEW_PRIVS."""

    installed = _FilterProgram(len(program) // _INSTRUCTION_BYTES, program)
    result = libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.byref(installed), 0, 0)
    check(result, "prctl(SECCOMP)")


def map_user(uid: int, gid: int, process: int) -> None:
    """In a new user namespace: maps this user and group to themselves, and no others.

    `process` is a descriptor of the caller's own folder in a writable /proc.
    """
    lines = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    _write_maps(process, lines)


def map_users(uids: tuple[int, ...], gids: tuple[int, ...], process: int) -> None:
    """For another process in a new user namespace: maps these users and groups to themselves, and no others.

    Takes CAP_SETUID, CAP_SETGID and CAP_SETFCAP in the namespace around it. `process` is as for `map_user`.
    """
    maps = {"uid_map": uids, "gid_map": gids}
    lines = {name: "".join(f"{each} {each} 1\n" for each in them) for name, them in maps.items()}
    _write_maps(process, lines)


def _write_maps(process: int, lines: dict[str, str]) -> None:
    for name, line in lines.items():
        descriptor = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=process)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


def fork_into_cgroup(folder: str) -> int:
    """Like os.fork, with the child in the cgroup from the start: moving it later takes ten milliseconds.

    The C library does not notice this fork: its cached thread id is wrong in the child. So the child must
    fork again before it does anything of weight, unless both are the first process of their pid namespaces,
    where that id is 1 in either.
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
