"""The lock of the journal: an flock held by one process until it ends, with its pid in the locked file."""

import errno
import fcntl
import os
from pathlib import Path

from supervisor.journal.errors import JournalLocked, JournalUnwritable

# A pid and a newline; any other content is not ours.
_PID_BYTES_MAX = 32


def take(path: Path) -> int:
    """Take the lock or name its holder. The returned descriptor is the lock: closing it releases it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            fault = f"the lock {path} is a symbolic link, and what it points to would be overwritten"
            raise JournalUnwritable(fault, "remove the link, then start again") from error
        fault = f"the lock {path} cannot be opened ({error.strerror})"
        raise JournalUnwritable(fault, "look at the rights on its folder") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _pid(descriptor)
        os.close(descriptor)
        raise JournalLocked(
            f"another supervisor has {path} (pid {pid or 'unknown'})", "stop it, or use another --home", pid
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _pid(descriptor: int) -> int:
    words = os.pread(descriptor, _PID_BYTES_MAX, 0).split()
    return int(words[0]) if words and words[0].isdigit() else 0
