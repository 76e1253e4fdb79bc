"""System calls by number, made so that they do nothing where they are allowed."""

import ctypes
import errno
import os
import platform

from worker.attacks.outcome import REFUSALS, Outcome, absent, held, opened
from worker.syscalls import libc

_SAME_EVERYWHERE = {"io_uring_setup": 425}
_NUMBERS = {
    "x86_64": {
        "bpf": 321,
        "keyctl": 250,
        "open_by_handle_at": 304,
        "perf_event_open": 298,
        "process_vm_readv": 310,
        "syslog": 103,
        "userfaultfd": 323,
    },
    "aarch64": {
        "bpf": 280,
        "keyctl": 219,
        "open_by_handle_at": 265,
        "perf_event_open": 241,
        "process_vm_readv": 270,
        "syslog": 116,
        "userfaultfd": 282,
    },
}


def refused(name: str, *arguments: object) -> Outcome:
    """Held if the kernel refuses the call as such; any effect ends with this process."""
    number = (_NUMBERS.get(platform.machine(), {}) | _SAME_EVERYWHERE).get(name)
    if number is None:
        return absent(f"the number of {name} is not known for {platform.machine()}")
    return judged(int(libc.syscall(number, *map(_argument, arguments))), name)


def judged(result: int, name: str) -> Outcome:
    """Judges the return value of a call of the C library."""
    if result >= 0:
        return opened(f"{name} is allowed")
    number = ctypes.get_errno()
    said = f"{name}: {os.strerror(number)}"
    return held(said) if number in (*REFUSALS, errno.ESRCH) else opened(f"{said}, so it is allowed")


def words(*values: int) -> "ctypes.Array[ctypes.c_uint32]":
    """Allocates memory for a structure; it lives as long as the call."""
    return (ctypes.c_uint32 * len(values))(*values)


def _argument(value: object) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value
