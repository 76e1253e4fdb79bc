"""Clips between hosts: the content of a message's clip is in the journal, too, where any host finds it.

A sender stores a clip as a file of the host that it talks to. Its session may be at another host, or move to
one before there is a transcript. So before a message with a clip is accepted, its clip becomes a row; and a
host that is to transcribe a clip without its file makes the file from the row.
"""

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ipc.errors import PlaceError
from supervisor.journal.asking import Asking, Failed
from supervisor.stt import clip_store


class ClipRows(Protocol):
    """The rows; each method is called by a thread that reads."""

    def store(self, name: str, content: bytes) -> None: ...
    def content(self, name: str) -> bytes | None: ...
    def remove(self, names: Collection[str]) -> None: ...
    def prune(self, keep_seconds: float, stray_seconds: float) -> None: ...


class SharedClips:
    """`check` raises PlaceError when the folder was replaced."""

    def __init__(self, folder: Path, check: Callable[[Path], None], rows: ClipRows, asking: Asking) -> None:
        self._folder = folder
        self._check = check
        self._rows = rows
        self._asking = asking

    def share(self, name: str, then: Callable[[], None], failed: Failed) -> None:
        """Make the row of a clip that is a file here, or the file of one that is a row; then go on.

        A clip that is neither, or cannot be accepted, is refused later, as with one host.
        """
        self._asking.ask(lambda: self._make_both(name), lambda done: then(), failed)

    def remove(self, names: Collection[str]) -> None:
        """The files of these clips were removed: their rows are, too."""
        self._asking.ask(lambda: self._rows.remove(names), lambda done: None, lambda error: None)

    def prune(self, keep_seconds: float, stray_seconds: float) -> None:
        """Remove rows of clips whose files other hosts have, or none."""
        self._asking.ask(
            lambda: self._rows.prune(keep_seconds, stray_seconds), lambda done: None, lambda error: None
        )

    def is_here(self, name: str) -> bool:
        return (self._folder / name).exists()

    def _make_both(self, name: str) -> None:
        """Runs in a thread."""
        if not clip_store.is_name(name):
            return
        if self.is_here(name):
            if clip_store.fault(self._folder, name) is None:
                self._rows.store(name, (self._folder / name).read_bytes())
        elif content := self._rows.content(name):
            with suppress(OSError, PlaceError):
                self._write(name, content)

    def _write(self, name: str, content: bytes) -> None:
        """A clip has its name when it is whole."""
        self._check(self._folder)
        part = self._folder / f".{name}.{os.getpid()}"
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)
            part.rename(self._folder / name)
        finally:
            with suppress(OSError):
                part.unlink()
