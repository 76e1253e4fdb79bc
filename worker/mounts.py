"""Mount system calls on descriptors: a path is resolved once, and never again by a later call.

A part of the host's tree is cloned to a descriptor that is attached nowhere, gets its flags, and is then
attached. What was cloned in one mount namespace can be attached in another one, which mount(2) cannot do. The
calls are those of Linux 5.12 and later, numbered alike on every architecture.
"""

import ctypes
import errno
import os
import stat
from typing import Final

from worker.syscalls import check, libc

READ_ONLY: Final = 0x1
NO_SUID: Final = 0x2
NO_DEVICES: Final = 0x4
NO_EXEC: Final = 0x8

_SYS_OPEN_TREE: Final = 428
_SYS_MOVE_MOUNT: Final = 429
_SYS_MOUNT_SETATTR: Final = 442

_AT_FDCWD: Final = -100
_OPEN_TREE_CLONE: Final = 1
_OPEN_TREE_CLOEXEC: Final = os.O_CLOEXEC
_AT_RECURSIVE: Final = 0x8000
_AT_EMPTY_PATH: Final = 0x1000
_MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4
_MS_PRIVATE: Final = 1 << 18
_MS_SLAVE: Final = 1 << 19
_MNT_DETACH: Final = 2
_HERE: Final = b"."


class _Attributes(ctypes.Structure):
    """struct mount_attr of mount_setattr(2)."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def find(path: str) -> int:
    """Opens the file or folder at an absolute path in which no part is a symbolic link.

    openat2(2) would do it in one call, but systemd's RestrictSUIDSGID= blocks it.
    """
    found = os.open("/", os.O_PATH | os.O_CLOEXEC)
    for part in path.split("/"):
        if part:
            above = found
            try:
                found = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
            except OSError as error:
                raise OSError(error.errno, f"{path}: {error.strerror}") from None
            finally:
                os.close(above)
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.ELOOP, f"{path}: {os.strerror(errno.ELOOP)}")
    return found


def clone(found: int, *, below: bool = True) -> int:
    """Returns a detached copy of the mount at a descriptor; with `below` the mounts under it too.

    The kernel refuses to leave out one that an outer user namespace has made: that would reveal what it
    covers.
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_EMPTY_PATH | (_AT_RECURSIVE if below else 0)
    return check(libc.syscall(_SYS_OPEN_TREE, found, b"", flags), "open_tree")


def restrict(mount: int, attributes: int, *, below: bool = True) -> None:
    """Adds flags to a mount, and to all under it."""
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if below else 0)
    wanted = _Attributes(attr_set=attributes)
    _set(mount, flags, wanted)


def separate(path: str, *, wholly: bool = True) -> None:
    """Mounts under `path` made from now on are invisible in other namespaces.

    Mounts of other namespaces are invisible here too, unless `wholly` is false.
    """
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        wanted = _Attributes(propagation=_MS_PRIVATE if wholly else _MS_SLAVE)
        _set(folder, _AT_EMPTY_PATH | _AT_RECURSIVE, wanted)
    finally:
        os.close(folder)


def attach(mount: int, path: str, folder: int = _AT_FDCWD) -> None:
    """Attaches a detached mount at `path`, whose last part is no symbolic link; closes its descriptor."""
    try:
        where = os.fsencode(path)
        moved = libc.syscall(_SYS_MOVE_MOUNT, mount, b"", folder, where, _MOVE_MOUNT_F_EMPTY_PATH)
        check(moved, f"mount at {path}")
    finally:
        os.close(mount)


def mount(kind: str, path: str, attributes: int, options: str = "") -> None:
    """Mounts a new file system at `path`, in one call."""
    flags = ctypes.c_ulong(attributes)
    made = libc.mount(kind.encode(), os.fsencode(path), kind.encode(), flags, options.encode())
    check(made, f"mount of {kind} at {path}")


def become_root() -> None:
    """Makes the working directory, which must be a mount, the root; detaches the old root."""
    check(libc.pivot_root(_HERE, _HERE), "pivot_root")
    # The old root now covers the new one.
    check(libc.umount2(_HERE, _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def _set(mount: int, flags: int, wanted: _Attributes) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    result = libc.syscall(_SYS_MOUNT_SETATTR, mount, b"", flags, ctypes.byref(wanted), size)
    check(result, "mount_setattr")
