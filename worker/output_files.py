"""Files with the whole text of long tool results, for the model to read on: in the session's workspace.

A file has 8 MiB at most, the beginning of a longer output. The folder has 256 files and 64 MiB at most: the
oldest are removed before a file is made, and after it was written. The rest goes with the workspace.

The agent's commands can write to that folder, so nothing in it is followed or opened again: a file is made
new or not at all, since a link could name anything that this process may write, its own memory too.
"""

import contextlib
import os
import re

FOLDER = ".hermes-outputs"
FILE_BYTES_MAX = 8 * 1024 * 1024
_FILES_MAX = 256
_BYTES_MAX = 64 * 1024 * 1024
# Files that were made meanwhile by a worker of another session, where sessions share a folder.
_TRIES_MAX = 20
_NAME = re.compile(r"([0-9]{1,9})\.txt")
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Place:
    """The folder that has FOLDER in it; the working directory where a cell has no workspace."""

    folder = "."


def keep_in(folder: str) -> None:
    """Makes files in this folder from now on."""
    _Place.folder = folder


class OutputFile:
    """A new file; raises OSError when none can be made."""

    def __init__(self) -> None:
        self._folder = _open_folder()
        try:
            name, self._file = _make_file(self._folder)
        except OSError:
            os.close(self._folder)
            raise
        self.path = os.path.abspath(os.path.join(_Place.folder, FOLDER, name))
        self._room = FILE_BYTES_MAX
        # What it holds is all that was given.
        self.is_whole = True

    def write(self, content: bytes) -> None:
        """Without effect beyond the limit, or on a full disk."""
        taken = content[: self._room]
        self.is_whole = self.is_whole and len(taken) == len(content)
        try:
            while taken:
                count = os.write(self._file, taken)
                self._room -= count
                taken = taken[count:]
        except OSError:
            self._room, self.is_whole = 0, False

    def close(self) -> None:
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        with contextlib.suppress(OSError):
            _remove_oldest(self._folder, _FILES_MAX, _BYTES_MAX)
        os.close(self._folder)


def store(text: str) -> str:
    """Writes a text into a new file and returns its path; raises OSError."""
    file = OutputFile()
    file.write(text.encode())
    file.close()
    return file.path


def _open_folder() -> int:
    above = os.open(_Place.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=above)
        return os.open(FOLDER, _OPEN_FOLDER, dir_fd=above)
    finally:
        os.close(above)


def _make_file(folder: int) -> tuple[str, int]:
    numbers = _remove_oldest(folder, _FILES_MAX - 1, _BYTES_MAX - FILE_BYTES_MAX)
    number = max(numbers, default=0)
    for _ in range(_TRIES_MAX):
        number += 1
        name = f"{number}.txt"
        with contextlib.suppress(FileExistsError):
            return name, os.open(name, _MAKE_FILE, 0o600, dir_fd=folder)
    raise FileExistsError(0, f"{FOLDER} is in use by others")


def _remove_oldest(folder: int, files_max: int, bytes_max: int) -> list[int]:
    """Returns the numbers of the files that are there, after the oldest were removed."""
    found = sorted(int(match[1]) for name in os.listdir(folder) if (match := _NAME.fullmatch(name)))
    sizes = {number: _size(folder, number) for number in found}
    files, total = len(found), sum(sizes.values())
    for number in found:
        if files <= files_max and total <= bytes_max:
            break
        files, total = files - 1, total - sizes[number]
        with contextlib.suppress(OSError):
            os.unlink(f"{number}.txt", dir_fd=folder)
    return found


def _size(folder: int, number: int) -> int:
    with contextlib.suppress(OSError):
        return os.stat(f"{number}.txt", dir_fd=folder, follow_symlinks=False).st_size
    return 0
