"""A real terminal without a window: a program in a pty, its screen kept by pyte, its keys by a test."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

from tests.hermesctl.hand import ROOT, environment
from tests.hermesctl.peer import DEADLINE_SECONDS

CTRL_U, ENTER, ESCAPE, TAB = "\x15", "\r", "\x1b", "\t"


class Terminal:
    """`screen()` is what a person would see now; `wait_for` is how a test waits."""

    def __init__(self, line: Sequence[str], columns: int = 80, rows: int = 24, **more: str) -> None:
        self._ours, theirs = pty.openpty()
        self._size(theirs, columns, rows)
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self.raw = b""
        # Parallel runs of tests export a size of their own, which would count for more than the terminal's.
        without_size = {
            name: value for name, value in environment(**more).items() if name not in ("COLUMNS", "LINES")
        }
        self.process = subprocess.Popen(
            line,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**without_size, "TERM": "xterm-256color"},
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        os.close(self._ours)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        with self._changed:
            self._screen.resize(rows, columns)
        self._size(self._ours, columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def screen(self) -> str:
        with self._changed:
            return "\n".join(self._screen.display)

    def row(self, number: int) -> str:
        return self.screen().splitlines()[number].strip()

    def wait_until(self, condition: Callable[[str], object]) -> str:
        """The screen, once the condition holds of it."""

        def holds() -> object:
            return condition("\n".join(self._screen.display))

        with self._changed:
            found = self._changed.wait_for(holds, DEADLINE_SECONDS)
            screen = "\n".join(self._screen.display)
        assert found, screen
        return screen

    def wait_for(self, text: str) -> str:
        return self.wait_until(lambda screen: text in screen)

    def end(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    def _read(self) -> None:
        try:
            while piece := os.read(self._ours, 65536):
                with self._changed:
                    self.raw += piece
                    self._stream.feed(piece)
                    self._changed.notify_all()
        except OSError:
            # Linux tells the end of a terminal by EIO.
            return

    @staticmethod
    def _size(descriptor: int, columns: int, rows: int) -> None:
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def hermesctl_in(home: Path, *line: str, columns: int = 80, rows: int = 24, **more: str) -> Terminal:
    return Terminal([sys.executable, "-m", "hermesctl", "--home", str(home), *line], columns, rows, **more)
