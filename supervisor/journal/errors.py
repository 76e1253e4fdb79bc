"""Errors of the journal: each has a fault and a hint, and never contains the text of a message."""

import sqlite3

_NO_ROOM = "SQLITE_FULL"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_REFUSED = ("SQLITE_CONSTRAINT", "SQLITE_MISMATCH")


class JournalError(Exception):
    """The transaction was not written."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(f"{fault}; {hint}")
        self.fault = fault
        self.hint = hint


class JournalFenced(JournalError):
    """A write did not find the state it was decided on: memory is ahead of disk."""


class JournalUnwritable(JournalError):
    """The disk did not accept the write; a later write may succeed."""


class JournalUnreachable(JournalUnwritable):
    """The server did not answer. Whether it has the write is found out before the next one."""


class JournalEnded(JournalError):
    """This life may not write any more: another one has taken its place, or the server lost what it wrote."""


class JournalUnfit(JournalError):
    """The server cannot hold a journal as it is; the settings have to name another, or it has to change."""


class JournalDamaged(JournalError):
    """The content of the file is not valid."""


class JournalTooNew(JournalError):
    """The file was written by a later version."""


class JournalLocked(JournalError):
    """Another process holds the lock; `pid` is 0 when the lock file does not name it."""

    def __init__(self, fault: str, hint: str, pid: int) -> None:
        super().__init__(fault, hint)
        self.pid = pid


def named(error: Exception, journal: str) -> JournalError:
    """Translate an SQLite error. SQLite's own messages name tables and columns, never values."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if name == _NO_ROOM:
        return JournalUnwritable(f"no space left for the journal {journal}", "free space on its disk")
    if name.startswith(_DAMAGED):
        return damaged(journal, str(error))
    if name.startswith(_REFUSED) or not isinstance(error, sqlite3.Error):
        fault = f"the journal {journal} refused a record ({name}: {_words(error)})"
        return JournalFenced(fault, "restart the service: what is on disk stands")
    fault = f"the journal {journal} cannot be used ({name}: {error})"
    return JournalUnwritable(fault, "look at its disk and at the rights on its folder")


def damaged(journal: str, what: str) -> JournalDamaged:
    hint = "`hermesctl journal check --repair` saves what can be saved; or put a backup in its place"
    return JournalDamaged(f"the journal {journal} is damaged ({what})", hint)


def _words(error: Exception) -> str:
    """An encoding error would quote the text that could not be written, so it is replaced."""
    return str(error) if isinstance(error, sqlite3.Error) else "a value SQLite cannot hold"
