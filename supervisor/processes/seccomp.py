"""The system calls that are denied in a cell, compiled once to BPF programs that the zygote installs.

The filter denies by name and allows the rest, as systemd's SystemCallFilter=~ does: a worker runs whatever
programs the host has, and an allow-list would break those that are newer than it. A denied call fails with
EPERM, so that a program can say what it was refused. Denied are the calls that reach beyond the process and
its files: what could change a cell's view (mounts, namespaces), what is a frequent source of kernel faults
and has no use in a tool (io_uring, bpf, perf, userfaultfd, keyrings), and what belongs to the administrator.
An agent has no capability, so many of them would fail anyway; the filter keeps the kernel's code for them out
of reach too. The list is drawn from Docker's default profile and systemd's @system-service.
"""

import errno
import tempfile
from functools import cache
from typing import Any

from supervisor.processes.cells.contract import CellUnavailable

_VIEW = (
    "mount",
    "umount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare",
    "setns",
    "open_by_handle_at",
)
# Numbered alike on every architecture; an older libseccomp may not know them.
_NUMBERS = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_CLONE3 = 435
_SURFACE = (
    "add_key",
    "keyctl",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "fanotify_init",
    "lookup_dcookie",
    "uselib",
    "ustat",
    "sysfs",
    "_sysctl",
    "nfsservctl",
    "vm86",
    "vm86old",
)
_ADMINISTRATOR = (
    "acct",
    "adjtimex",
    "clock_adjtime",
    "clock_settime",
    "settimeofday",
    "stime",
    "create_module",
    "delete_module",
    "finit_module",
    "get_kernel_syms",
    "init_module",
    "query_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "pciconfig_iobase",
    "pciconfig_read",
    "pciconfig_write",
    "quotactl",
    "reboot",
    "setdomainname",
    "sethostname",
    "swapoff",
    "swapon",
    "syslog",
    "vhangup",
)
DENIED = (*_VIEW, *_NUMBERS, *_SURFACE, *_ADMINISTRATOR)

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NAMESPACE_FLAGS = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
# They put input into a terminal as if it had been typed, or paste from the console.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# The kernel reads only the lower half of this argument.
_LOWER_HALF = 0xFFFFFFFF
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_FAMILIES = frozenset({_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK})

_HINT = "install it (Debian and Ubuntu: apt install libseccomp2; Fedora: dnf install libseccomp)"


@cache
def cell_filter() -> bytes:
    """Return the filter for a worker and its children, at every level; CellUnavailable without libseccomp."""
    seccomp = _library()
    calls = _allowing(seccomp)
    denied = seccomp.ERRNO(errno.EPERM)
    names = (*_VIEW, *_SURFACE, *_ADMINISTRATOR)
    numbers = [seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) for name in names]
    # Calls that this architecture does not have are negative, and need no rule.
    for number in (*_NUMBERS.values(), *(number for number in numbers if number >= 0)):
        calls.add_rule(denied, number)
    for flag in _NAMESPACE_FLAGS:
        calls.add_rule(denied, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # Its flags are in memory, which a filter cannot read; with ENOSYS the C library uses clone.
    calls.add_rule(seccomp.ERRNO(errno.ENOSYS), _CLONE3)
    for request in (_TIOCSTI, _TIOCLINUX):
        calls.add_rule(denied, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, _LOWER_HALF, request))
    for family in set(range(_AF_NETLINK)) - _FAMILIES:
        calls.add_rule(denied, "socket", seccomp.Arg(0, seccomp.EQ, family))
    calls.add_rule(denied, "socket", seccomp.Arg(0, seccomp.GT, _AF_NETLINK))
    return _compiled(calls)


@cache
def tools_filter() -> bytes:
    """Return the filter for tools at `network = "none"`, in addition to the cell's: only Unix sockets."""
    seccomp = _library()
    calls = _allowing(seccomp)
    calls.add_rule(seccomp.ERRNO(errno.EPERM), "socket", seccomp.Arg(0, seccomp.NE, _AF_UNIX))
    return _compiled(calls)


def _library() -> Any:
    """Import late: the search for the C library takes longer than the rest of a start."""
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as error:
        raise CellUnavailable(f"libseccomp is missing ({error})", _HINT) from None
    return pyseccomp


def _allowing(seccomp: Any) -> Any:
    """Return a filter that allows all calls of this architecture and gives ENOSYS to any other."""
    calls = seccomp.SyscallFilter(seccomp.ALLOW)
    calls.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.ERRNO(errno.ENOSYS))
    return calls


def _compiled(calls: Any) -> bytes:
    with tempfile.TemporaryFile() as file:
        calls.export_bpf(file)
        file.seek(0)
        return file.read()
