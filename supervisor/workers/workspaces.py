"""The sessions' workspaces: one folder each below `workspaces/` of the state folder, private, kept across
turns.

Session names hold any printable character, folder names must not: no `/`, no leading dot, at most 255
bytes. A name made of letters, digits and `._:@+=,-` is its own folder name. Every other byte is written as
`%` and two hexadecimal digits, and so is a leading dot; `%` itself is one of the others, so no two names
collide and a folder name can be read back. A name that grows too long that way is cut and ends in `~` and a
digest instead of the rest: `~` stands in no other folder name, so these cannot collide with the plain ones
either.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote_to_bytes

from ipc.errors import PlaceError
from supervisor.processes.agent_user import OWN, AgentUser

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+=,-")
# The limit of a folder name is 255 bytes on every file system in use here.
_NAME_BYTES_MAX = 200
_DIGEST_BYTES = 16
# A byte is written as three characters at most, and a character has four bytes: shorter names are not cut.
_LONG_MIN = 16


def folder_name(session: str) -> str:
    """Return the folder name of a session's workspace."""
    parts = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in session.encode()]
    if parts and parts[0] == ".":
        parts[0] = "%2E"
    name = "".join(parts) or "%"  # no other name is written so
    if len(name) <= _NAME_BYTES_MAX:
        return name
    digest = hashlib.blake2b(session.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{name[: _NAME_BYTES_MAX - len(digest) - 1]}~{digest}"


def session_of_folder(name: str) -> str | None:
    """Return the session whose workspace has this name; None when the name is cut, or no workspace's."""
    with suppress(UnicodeDecodeError):
        session = "" if name == "%" else unquote_to_bytes(name).decode()
        return session if folder_name(session) == name else None
    return None


class Known(Protocol):
    """The names of sessions that have so many characters or more."""

    def long_names(self, characters_min: int) -> list[str]: ...


def sessions_of(names: Iterable[str], known: Known) -> dict[str, str]:
    """Whose folders these are. A long name is not in the folder's: it is found among those there are."""
    long: dict[str, str] | None = None
    sessions = {}
    for name in names:
        session = session_of_folder(name)
        if session is None and "~" in name:
            if long is None:
                long = {folder_name(each): each for each in known.long_names(_LONG_MIN)}
            session = long.get(name)
        if session is not None:
            sessions[name] = session
    return sessions


class Workspaces:
    """The folder of all workspaces; `user` owns their content.

    `check` raises PlaceError when the folder was replaced.
    """

    def __init__(self, folder: Path, check: Callable[[Path], None], user: AgentUser = OWN) -> None:
        self.folder = folder
        self._check = check
        self._user = user

    def take_over(self) -> None:
        """Change the owner of content made while agents ran as another user. Call it in a thread."""
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                # `make` reports the fault to the session that needs this one.
                with suppress(OSError):
                    self._user.give(path)

    def check(self) -> None:
        """Raise PlaceError when the folder was replaced."""
        self._check(self.folder)

    def path(self, session: str) -> Path:
        return self.folder / folder_name(session)

    def make(self, session: str) -> Path:
        """Return the session's workspace, made if there is none. A symbolic link in its place is refused."""
        self.check()
        path = self.path(session)
        try:
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                os.close(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            self._user.give(path)
        except OSError as error:
            raise PlaceError(
                f"the workspace {path} cannot be used: {error.strerror}",
                "look at that folder, then try again",
            ) from None
        return path
