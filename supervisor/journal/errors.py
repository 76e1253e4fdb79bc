"""What can go wrong with the journal: a fault and its remedy in words, never a message's text."""

import sqlite3

_NO_ROOM = "SQLITE_FULL"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_REFUSED = ("SQLITE_CONSTRAINT", "SQLITE_MISMATCH")


class JournalError(Exception):
    """Nothing of the transaction was written."""

    def __init__(self, fault: str, hint: str) -> None:
        super().__init__(f"{fault}; {hint}")
        self.fault = fault
        self.hint = hint


class JournalFenced(JournalError):
    """A write did not find the state it was decided on: memory is ahead of disk."""


class JournalUnwritable(JournalError):
    """The disk did not take it; it may later."""


class JournalDamaged(JournalError):
    """What is in the file cannot be true."""


class JournalTooNew(JournalError):
    """The file was written by a later version."""


class JournalLocked(JournalError):
    """Another process has the journal; `pid` is 0 when it did not say who it is."""

    def __init__(self, fault: str, hint: str, pid: int) -> None:
        super().__init__(fault, hint)
        self.pid = pid


def named(error: Exception, journal: str) -> JournalError:
    """The error of SQLite in our words. Its own words name tables and columns, never values."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if name == _NO_ROOM:
        return JournalUnwritable(f"no room left for the journal {journal}", "make room on its disk")
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
    """An encoding error would quote the text it could not write."""
    return str(error) if isinstance(error, sqlite3.Error) else "a value SQLite cannot hold"
