"""A command in a real terminal: a pty, and an emulator that knows what a person would see on it."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

from tests import warm
from tests.hermesctl.hand import ROOT, environment
from tests.waiting import DEADLINE_SECONDS, until

CTRL_U, ENTER, ESCAPE, TAB = "\x15", "\r", "\x1b", "\t"
KEYS = {
    "enter": "\r", "escape": "\x1b", "ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-o": "\x0f", "ctrl-r": "\x12",
    "ctrl-j": "\n", "ctrl-t": "\x14", "alt-enter": "\x1b\r", "up": "\x1b[A", "down": "\x1b[B", "tab": "\t",
    "page-up": "\x1b[5~", "page-down": "\x1b[6~", "ctrl-end": "\x1b[1;5F", "wheel-up": "\x1b[<64;5;5M",
}  # fmt: skip


class _Screen(pyte.Screen):
    """The emulator knows no faint letters; grey ones stand for them."""

    def select_graphic_rendition(self, *attrs: int, **options: object) -> None:
        super().select_graphic_rendition(*(90 if each == 2 else each for each in attrs))


class Terminal:
    """`raw` is every byte the command has written; `screen` is what it looks like now."""

    def __init__(self, line: Sequence[str], columns: int = 80, rows: int = 24, **more: str) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.raw = b""
        self._ours, theirs = pty.openpty()
        self._set_size(columns, rows)
        # Parallel runs of tests export a size of their own, which would count for more than the terminal's.
        wanted = environment(TERM="xterm-256color", **more)
        surroundings = {name: value for name, value in wanted.items() if name not in ("COLUMNS", "LINES")}
        self._process = warm.InTerminal(line, theirs, env=surroundings, cwd=ROOT)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        os.close(self._ours)

    @property
    def screen(self) -> str:
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """Every cell with its colours, row by row."""
        with self._lock:
            columns = range(self._screen.columns)
            return [
                [self._screen.buffer[row][column] for column in columns] for row in range(self._screen.lines)
            ]

    def shows(self, *texts: str) -> str:
        """The screen, once all these are on it."""
        return self.becomes(lambda screen: all(text in screen for text in texts), texts)

    def becomes(self, condition: Callable[[str], object], what: object = "") -> str:
        """The screen, once the condition holds of it."""
        seen: list[str] = []

        def holds() -> bool:
            seen[:] = [self.screen]
            return bool(condition(seen[0]))

        try:
            until(holds)
        except AssertionError:
            raise AssertionError(f"never seen: {what}\n{seen[0]}") from None
        return seen[0]

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._ours, KEYS[key].encode())

    def type(self, text: str) -> None:
        self.send(text.encode())

    def send(self, content: bytes) -> None:
        """Bytes as a terminal gives them, text or not."""
        os.write(self._ours, content)

    def say(self, text: str) -> None:
        """Types a line and sends it; pasted, as a terminal does, so that its signs are nothing but text."""
        self.type(f"\x1b[200~{text}\x1b[201~")
        self.press("enter")

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def ends(self) -> int:
        """The exit code, once it has ended by itself and all it said was read."""
        code = self._process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        return code

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 65536)
            except OSError:  # EIO: the last one who had the terminal open has gone
                return
            with self._lock:
                self.raw += piece
                self._stream.feed(piece)


def hermesctl_in(home: Path, *line: str, columns: int = 80, rows: int = 24, **more: str) -> Terminal:
    return Terminal([sys.executable, "-m", "hermesctl", "--home", str(home), *line], columns, rows, **more)
