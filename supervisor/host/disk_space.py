"""Disk space for the journal: why no message is accepted now, and a reserve to close what is open.

A full disk keeps turns from being closed: an interrupt, an answer or a failure is a record too. So the
state folder holds a file that only occupies space. When a commit finds the disk full, the file is removed
and the open work can be recorded. From then on no message is accepted, though commits succeed, until the
file could be written again: otherwise new messages would use the space that is reserved for closing old ones.

The reserve holds a hundred ordinary closings (eight pages of the log each, and as many again for the
checkpoint), or one whose partial answer has the maximum length.

Files are examined in a thread: a disk that does not answer must not block the loop.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from ipc.places import Places
from supervisor.clock import Clock
from supervisor.containment import Containment
from supervisor.decider import Trouble
from supervisor.engine import Engine
from supervisor.host.folder_identity import FolderReplaced, Folders
from supervisor.journal.errors import JournalUnwritable
from supervisor.telemetry.log import Log

RESERVE_BYTES = 4 * 1024 * 1024
# With less than this beside the reserve, the next commits would need the reserve at once.
_ROOM_BYTES = 1024 * 1024
_LOOK_SECONDS = 1.0
# Longer than SQLite waits for a lock; a commit that takes as long hangs in the kernel or in the thread.
_HANGS_SECONDS = 6.0


class DiskSpace:
    """`unwritable` is called for each failed commit that may succeed later."""

    def __init__(
        self,
        places: Places,
        folders: Folders,
        clock: Clock,
        log: Log,
        contain: Containment,
        unwritable: Callable[[], None],
        on_server: bool = False,
    ) -> None:
        """With the journal on a server no reserve is kept: it needs no space here."""
        self._state = places.state
        self._folders = folders
        self._reserve = places.reserve
        self._on_server = on_server
        self._name = "the journal's database" if on_server else f"the journal {places.journal}"
        self._clock = clock
        self._log = log
        self._contain = contain
        self._unwritable = unwritable
        self._missing: Trouble | None = None
        self._replaced: Trouble | None = None
        self._is_looking = False
        self._is_hanging = False

    def open(self, engine: Engine) -> None:
        """Begin to maintain the reserve; with a delay, because a start has more urgent work."""
        self.engine = engine
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_again)

    @property
    def has_reserve(self) -> bool:
        return self._missing is None

    def trouble(self) -> Trouble | None:
        """Return why no message is accepted."""
        return self.engine.trouble or self._hanging() or self._replaced or self._missing

    def _hanging(self) -> Trouble | None:
        """A commit that does not come back: no error says so, only the time."""
        since = self.engine.committing_since
        if since is None or self.engine.commit_seconds < _HANGS_SECONDS:
            return None
        error = f"a commit to {self._name} does not come back"
        hint = "look at its disk (`dmesg` names a failing one), then restart the service"
        if self._on_server:
            hint = "look at the server and at the network to it"
        return Trouble(error, hint, since)

    def passing(self, error: BaseException) -> tuple[str, str] | None:
        """Return fault and hint of a failed commit that may succeed later; giving up the reserve helps it."""
        if not isinstance(error, JournalUnwritable):
            return None
        if self.engine.trouble is None:
            self._log.write("journal.waits", error=error.fault)
        self._look(is_stuck=True)
        self._unwritable()
        return error.fault, error.hint

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_again)
        hanging = self._hanging()
        if hanging is not None and not self._is_hanging:
            self._log.write("journal.waits", error=hanging.error)
        self._is_hanging = hanging is not None
        self._look(is_stuck=self.engine.trouble is not None)

    def _look(self, is_stuck: bool) -> None:
        if not self._is_looking:
            self._is_looking = True
            look = partial(self._look_at_disk, is_stuck)
            self._contain.thread("schedule", look, self._looked, lambda fault: self._kept(False))

    def _look_at_disk(self, is_stuck: bool) -> tuple[dict[str, FolderReplaced], bool]:
        """Runs in a thread. In a folder other than the journal's, the reserve is not touched."""
        replaced = self._folders.look()
        if str(self._state) in replaced:
            return replaced, True
        has_reserve = self._on_server or keep(self._reserve, is_stuck)
        # Again: a folder that was replaced meanwhile has no reserve, and is not full.
        replaced = self._folders.look()
        return replaced, has_reserve or str(self._state) in replaced

    def _looked(self, found: tuple[dict[str, FolderReplaced], bool]) -> None:
        """The journal goes on in its open files, but the next start would not find a message in them."""
        replaced, is_there = found
        self._folders.looked(replaced)
        fault = replaced.get(str(self._state))
        if fault is None:
            self._replaced = None
        elif self._replaced is None:
            self._replaced = Trouble(fault.fault, fault.hint, self._clock.now())
        self._kept(is_there)

    def _kept(self, is_there: bool) -> None:
        self._is_looking = False
        if is_there and self._missing is not None:
            self._log.write("reserve.made", bytes=RESERVE_BYTES)
            self._missing = None
        elif not is_there and self._missing is None:
            self._log.write("reserve.gone")
            error = f"no space left for {self._name} but what its reserve has left"
            self._missing = Trouble(error, "free space on its disk", self._clock.now())


def keep(reserve: Path, is_stuck: bool) -> bool:
    """Give the reserve up when the disk is full and commits wait; write it when there is space.

    Return whether it exists afterwards.
    """
    room = os.statvfs(reserve.parent)
    free = room.f_bavail * room.f_frsize
    if is_there(reserve):
        if not is_stuck or free >= RESERVE_BYTES:
            return True
        reserve.unlink(missing_ok=True)
        return False
    return not is_stuck and free >= RESERVE_BYTES + _ROOM_BYTES and _make(reserve)


def is_there(reserve: Path) -> bool:
    try:
        return reserve.stat().st_size >= RESERVE_BYTES
    except FileNotFoundError:
        return False


def _make(reserve: Path) -> bool:
    """Write random bytes, which no file system compresses."""
    part = reserve.with_suffix(".part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
            file.write(os.urandom(RESERVE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        part.replace(reserve)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True
