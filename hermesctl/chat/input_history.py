"""Input history, kept privately and bounded, and completion of commands."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from hermesctl.chat.slash_commands import COMMANDS, MODES, QUEUE_ACTS
from hermesctl.text_input import clean
from ipc.places import Places, make_private

# As many lines as a person may want back, and no line that is a pasted book.
LINES_MAX = 1000
LINE_BYTES_MAX = 64 * 1024


class PrivateHistory(History):
    """One JSON string a line in the state folder, mode 0600: it has the text of messages."""

    def __init__(self, places: Places) -> None:
        super().__init__()
        self._path = places.state / "chat.history"
        make_private(places.state)

    def load_history_strings(self) -> Iterable[str]:
        """The newest first. A line that a crash cut short is left out."""
        lines = _read(self._path)
        if len(lines) > 2 * LINES_MAX:
            self._rewrite(lines[-LINES_MAX:])
        for line in reversed(lines[-LINES_MAX:]):
            try:
                yield msgspec.json.decode(line, type=str)
            except msgspec.MsgspecError:
                continue

    def store_string(self, string: str) -> None:
        line = msgspec.json.encode(clean(string)) + b"\n"
        if len(line) <= LINE_BYTES_MAX:
            with open(self._path, "ab", opener=_privately) as file:
                file.write(line)

    def _rewrite(self, lines: list[bytes]) -> None:
        fresh = self._path.with_name(f".chat.history.{os.getpid()}")
        with open(fresh, "wb", opener=_privately) as file:
            file.write(b"\n".join(lines) + b"\n")
        fresh.replace(self._path)


class Input(Buffer):
    """The input line."""

    def _open_file_in_editor(self, filename: str) -> bool:
        """Decodes the editor's file with replacement of invalid bytes; the library would raise."""
        is_saved = super()._open_file_in_editor(filename)
        path = Path(filename)
        path.write_bytes(path.read_bytes().decode(errors="replace").encode())
        return is_saved


class CommandCompleter(Completer):
    """Completes commands and their arguments."""

    def __init__(self, sessions: Callable[[], Iterable[str]]) -> None:
        self._sessions = sessions
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or typed.startswith("//") or "\n" in typed:
            return
        name, space, rest = typed.partition(" ")
        if not space:
            for command in COMMANDS.values():
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), display_meta=command.says)
        elif name == "/voice":
            offered = self._paths.get_completions(Document(rest), complete_event)
            yield from (each for each in offered if each.text.isprintable())
        else:
            for word in self._words(name):
                if word.startswith(rest) and word != rest and word.isprintable():
                    yield Completion(word, -len(rest))

    def _words(self, name: str) -> Iterable[str]:
        """Returns the possible arguments of a command."""
        if name == "/session":
            return self._sessions()
        return {"/busy": (*MODES, "default"), "/queue": QUEUE_ACTS, "/interrupt": ("drop",)}.get(name, ())


def _read(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []


def _privately(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
