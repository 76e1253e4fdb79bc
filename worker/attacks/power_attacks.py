"""Capabilities that a cell should not have: namespaces, mounts, cgroups, rare system calls."""

import ctypes
import os
from pathlib import Path

from ipc.isolation import Targets
from worker.attacks import raw_calls
from worker.attacks.outcome import Outcome, any_of, held, opened
from worker.mount_table import mounted
from worker.syscalls import CLONE_NEWNS, CLONE_NEWUSER, libc

_GET_KEYRING, _SESSION_KEYRING = 0, -3
_SOFTWARE_EVENT, _DUMMY_EVENT, _ATTRIBUTES_BYTES = 1, 9, 128
_USER_MODE_ONLY = 1
_RING_BYTES = 120
_FILES_MAX = 500
# Not the bounding set: it limits the capabilities that an executed program may gain.
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


def user_namespace(targets: Targets) -> Outcome:
    return raw_calls.judged(libc.unshare(CLONE_NEWUSER), "unshare")


def mount(targets: Targets) -> Outcome:
    """Mounts a file system type that does not exist, so no mount results.

    In new namespaces first, if possible.
    """
    libc.unshare(CLONE_NEWUSER | CLONE_NEWNS)
    return raw_calls.judged(libc.mount(b"none", b"/", b"hermes-isolation", 0, None), "mount")


def cgroups(targets: Targets) -> Outcome:
    """Opens their files and writes nothing."""
    folders = {each.at for each in mounted() if each.kind in ("cgroup", "cgroup2")}
    found = [path for folder in (*sorted(folders), "/sys/fs/cgroup") for path in _files(folder)]
    if not found:
        return held("no cgroup is in sight")
    return any_of(found, lambda path: os.close(os.open(path, os.O_WRONLY)), "")


def privileges(targets: Targets) -> Outcome:
    lines = Path("/proc/self/status").read_text().splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    kept = [name for name in _CAPABILITIES if int(status.get(name, "0"), 16)]
    if kept:
        return opened(f"{' '.join(kept)} {status[kept[0]]}")
    if status.get("NoNewPrivs") != "1":
        return opened("programs may gain privileges when they are executed")
    return held("no capability, and none to gain")


def keyrings(targets: Targets) -> Outcome:
    return raw_calls.refused("keyctl", _GET_KEYRING, _SESSION_KEYRING, 0)


def bpf(targets: Targets) -> Outcome:
    return raw_calls.refused("bpf", -1, 0, 0)


def perf(targets: Targets) -> Outcome:
    """A counter that counts nothing, of this process."""
    attributes = (ctypes.c_uint64 * (_ATTRIBUTES_BYTES // 8))()
    attributes[0] = _SOFTWARE_EVENT | _ATTRIBUTES_BYTES << 32
    attributes[1] = _DUMMY_EVENT
    attributes[5] = 1 << 5 | 1 << 6  # without the kernel and the hypervisor
    return raw_calls.refused("perf_event_open", attributes, 0, -1, -1, 0)


def userfaultfd(targets: Targets) -> Outcome:
    return raw_calls.refused("userfaultfd", _USER_MODE_ONLY)


def io_uring(targets: Targets) -> Outcome:
    return raw_calls.refused("io_uring_setup", 1, raw_calls.words(*[0] * (_RING_BYTES // 4)))


def _files(folder: str) -> list[str]:
    """Some of them: if one can be written, so can the others of that cgroup."""
    found: list[str] = []
    for above, _, names in os.walk(folder):
        found += [os.path.join(above, name) for name in names]
        if len(found) > _FILES_MAX:
            break
    return found
