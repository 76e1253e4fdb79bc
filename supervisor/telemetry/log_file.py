"""The log file of a background service: bounded in size, and no line is lost by a rotation."""

import os
from contextlib import suppress
from pathlib import Path

NAME = "supervisor.log"
# Several weeks of ordinary use, and small enough for every editor.
_BYTES_MAX = 8 * 1024 * 1024
# Rotated files beside the current one; .1 is the newest.
_OLDER_MAX = 3
# Lines between two checks of the size: a check is cheaper than a line, and 64 lines are some kilobytes.
_LOOK_LINES = 64


class LogFile:
    """Standard output and error of this process, when both are the log in the state folder."""

    def __init__(self, path: Path, bytes_max: int = _BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._lines = 0

    @property
    def is_ours(self) -> bool:
        """Return whether the log is the file in the state folder; a terminal, a pipe or journald is not."""
        try:
            ours, theirs = os.stat(self._path), os.fstat(2)
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)

    def wrote(self) -> None:
        """Count a written line."""
        self._lines += 1
        if self._lines % _LOOK_LINES:
            return
        with suppress(OSError):
            if os.fstat(2).st_size > self._bytes_max and self.is_ours:
                self._set_aside()

    def _set_aside(self) -> None:
        """Rotate. Lines between the rename and the change of descriptors still go to the older file."""
        for number in range(_OLDER_MAX, 0, -1):
            younger = self._older(number - 1) if number > 1 else self._path
            with suppress(FileNotFoundError):
                younger.replace(self._older(number))
        fresh = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for descriptor in (1, 2):
            os.dup2(fresh, descriptor)
        os.close(fresh)

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
