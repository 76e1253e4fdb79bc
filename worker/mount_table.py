"""Finds the paths of a file: the same folder may be mounted in several places of one namespace.

A file is identified by the device of its file system and its path in that file system. Every mount of the
device whose root is above that path is a way to it, whatever its name there.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Origin:
    """A file or folder, wherever it is mounted."""

    device: str
    path: str


@dataclass(frozen=True, slots=True)
class Mounted:
    """A line of mountinfo: the part of a device from `root` on is seen at `at`."""

    device: str
    root: str
    at: str
    kind: str


def mounted() -> list[Mounted]:
    """Returns all mounts of this namespace that are reachable from this root, in order of creation."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        place, _, source = line.partition(" - ")
        fields = place.split(" ")
        found.append(Mounted(fields[2], _plain(fields[3]), _plain(fields[4]), source.split(" ")[0]))
    return found


def origin(path: str, table: list[Mounted]) -> Origin:
    """Returns the file at an absolute path without symbolic links."""
    # Of mounts at the same place the last one covers the others.
    above = max((each for each in reversed(table) if is_in(path, each.at)), key=lambda each: len(each.at))
    return Origin(above.device, _join(above.root, _rest(path, above.at)))


def ways_to(target: Origin, table: list[Mounted]) -> set[str]:
    """Returns every path at which the target, or a mount of a part of it, is visible."""
    found = set()
    for each in table:
        if each.device != target.device:
            continue
        if is_in(target.path, each.root):
            path = _join(each.at, _rest(target.path, each.root))
        elif is_in(each.root, target.path):
            path = each.at
        else:
            continue
        # Covered by another mount, it is not visible.
        seen = origin(path, table)
        if seen.device == target.device and is_in(seen.path, target.path):
            found.add(path)
    return found


def is_in(path: str, folder: str) -> bool:
    """True when `path` is the folder or below it."""
    return path == folder or folder == "/" or path.startswith(f"{folder}/")


def _rest(path: str, folder: str) -> str:
    return path if folder == "/" else path[len(folder) :]


def _join(folder: str, rest: str) -> str:
    return os.path.normpath(f"{folder}/{rest}")


def _plain(field: str) -> str:
    """Decodes octal escapes of blanks and the like."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)
