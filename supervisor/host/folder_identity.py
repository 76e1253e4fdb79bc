"""Identities of the folders in use: a folder replaced under the running service is reported and not used.

A path is resolved again by each call that uses it. Another process of the same user can rename the folder, or
one above it, and put its own in that place: a hermes.toml that the next reload reads, a clips folder whose
files are pruned, a journal that a restart opens. Open files are safe from that; paths are not.

So each folder is identified as the kernel does it: device, inode, owner, mode, and the path without symbolic
links. The identities are taken at the start, under the journal's lock, and handed from one image of the
process to the next. Code that is about to use a path calls `check` first; `look` compares all of them every
second, so that `hermesctl status` can name a replaced folder before it is needed.

A stop and a start take new identities: a folder that was moved on purpose needs no more than that.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ipc.errors import PlaceError
from ipc.message_parts import Part
from ipc.places import Places, make_private
from supervisor.telemetry.log import Log


class Identity(Part, frozen=True):
    """The folder that a path led to; all zero when there was none."""

    real: str
    device: int = 0
    inode: int = 0
    owner: int = 0
    mode: int = 0


class FolderReplaced(PlaceError):
    """A path leads to another folder than at the start, or to the same one with other rights."""


class Folders:
    """The folders of one instance that are used by path."""

    def __init__(self, places: Places, log: Log) -> None:
        self._config = places.config
        self._private = (
            places.state,
            places.runtime,
            places.clips,
            places.workspaces,
            places.logs,
        )
        self._log = log
        self._known: dict[str, Identity] = {}
        # By path, from the last `look`.
        self.faults: Mapping[str, FolderReplaced] = {}

    def take(self, handed: Mapping[str, Identity] | None = None) -> None:
        """Make the folders and remember them. FolderReplaced if they are not those that were handed over.

        The settings' folder is made too, where that is allowed: cells hide a folder only if it is there.
        """
        for folder in self._private:
            make_private(folder)
        if not self._config.exists():
            try:
                self._config.mkdir(mode=0o700, parents=True)
            except OSError:
                self._log.write("settings.no_folder", path=str(self._config))
        self._known = {str(path): _identity(path) for path in (self._config, *self._private)}
        for path, before in (handed or {}).items():
            if path in self._known:
                self._known[path] = before
                self.check(Path(path))

    @property
    def known(self) -> dict[str, Identity]:
        """For the next image of this process."""
        return dict(self._known)

    def check(self, *paths: Path) -> None:
        """Raise FolderReplaced when one of these folders is not the one that was taken."""
        for path in paths:
            before = self._known.get(str(path))
            if before is not None and (fault := _fault(path, before, _identity(path))) is not None:
                raise fault

    def check_all(self) -> None:
        self.check(*map(Path, self._known))

    def look(self) -> dict[str, FolderReplaced]:
        """Return all replaced folders by path; for a thread, since a disk may not answer."""
        found = {}
        for path in self._known:
            try:
                self.check(Path(path))
            except FolderReplaced as fault:
                found[path] = fault
        return found

    def looked(self, found: Mapping[str, FolderReplaced]) -> None:
        """Store the result of `look`; called in the loop."""
        for path in found.keys() - self.faults.keys():
            self._log.write("folder.replaced", path=path, error=found[path].fault)
        for path in self.faults.keys() - found.keys():
            self._log.write("folder.back", path=path)
        self.faults = found


def _identity(path: Path) -> Identity:
    real = os.path.realpath(path)
    try:
        found = os.stat(real, follow_symlinks=False)
    except OSError:
        return Identity(real)
    return Identity(real, found.st_dev, found.st_ino, found.st_uid, stat.S_IMODE(found.st_mode))


def _fault(path: Path, before: Identity, now: Identity) -> FolderReplaced | None:
    if now == before:
        return None
    again = "or, if that was you, stop and start the service"
    if now.inode == 0:
        return FolderReplaced(f"the folder {path} is gone", f"put it back, {again}")
    if now.real != before.real:
        fault = f"the path {path} leads to {now.real} now, at the start it led to {before.real}"
        return FolderReplaced(fault, f"take the link away, {again}")
    if (now.device, now.inode) != (before.device, before.inode):
        fault = f"{path} is another folder than at the start: it, or one above it, was replaced"
        return FolderReplaced(fault, f"put the first one back, {again}")
    if now.owner != before.owner:
        fault = f"{path} belongs to user {now.owner} now, at the start to user {before.owner}"
        return FolderReplaced(fault, f"chown {before.owner} {path}, {again}")
    fault = f"{path} has the mode {now.mode:o} now, at the start it had {before.mode:o}"
    return FolderReplaced(fault, f"chmod {before.mode:o} {path}, {again}")
