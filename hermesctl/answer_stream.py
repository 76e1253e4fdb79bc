"""Prints a streamed answer: all text once and in order, whatever the stream repeats or misses."""

import shutil
import sys

from hermesctl.neutral import Pieces
from hermesctl.render import aside, cut, one_line, paint
from ipc.messages import Delta

# Back to the first column, with the rest of the line erased.
_LINE_START = "\r\x1b[K"


class AnswerPrinter:
    """Prints one turn's text to stdout. After a gap it waits for a piece that closes it, or for the end."""

    def __init__(self) -> None:
        self._begin = 0
        self._shown = ""
        self._is_gapped = False
        self._line_open = False
        self._is_flashing = False
        self._pieces = Pieces()

    def join_at(self, offset: int) -> None:
        """Skips the text up to here, which answers another message."""
        self._begin = offset

    def take(self, delta: Delta) -> None:
        position = self._begin + len(self._shown)
        if delta.offset <= position:
            self._is_gapped = False
            self._print(delta.text[position - delta.offset :])
        elif not self._is_gapped:
            self._is_gapped = True
            self.aside("part of the stream was missed; it is shown as soon as it is known")

    def cut_to(self, offset: int) -> None:
        """The recorded answer ends here.

        Text beyond was shown and then lost, so the answer is shown again.
        """
        if self._begin + len(self._shown) > offset:
            begin, kept = min(self._begin, offset), self._shown[: max(0, offset - self._begin)]
            self._restart()
            self._begin = begin
            self._print(kept)

    def _restart(self) -> None:
        """Starts on a new line, as if nothing had been shown."""
        self.end_line()
        self._begin = 0
        self._shown = ""
        self._is_gapped = False

    def finish(self, text: str) -> None:
        """Prints the part of the whole text that was not shown yet."""
        whole = text[self._begin :]
        if whole.startswith(self._shown):
            self._print(whole[len(self._shown) :])
        elif not self._shown.startswith(whole):
            self._restart()
            self._print(text)
        self.end_line()

    def aside(self, text: str) -> None:
        """Prints a remark on a line of its own."""
        if self._line_open and sys.stdout.isatty():
            self.end_line()
        self._unflash()
        aside(text)

    def flash(self, text: str) -> None:
        """Prints a remark that the next remark or text replaces; only on a terminal."""
        if sys.stderr.isatty() and not self._line_open:
            room = shutil.get_terminal_size().columns - 1
            self._draw(paint(cut(one_line(text), room), "dim", sys.stderr))
            self._is_flashing = True

    def _unflash(self) -> None:
        if self._is_flashing:
            self._is_flashing = False
            self._draw("")

    def _draw(self, line: str) -> None:
        """Bypasses the filter of the standard streams, which removes cursor movements."""
        if (terminal := sys.__stderr__) is not None:
            terminal.write(_LINE_START + line)
            terminal.flush()

    def end_line(self) -> None:
        self._unflash()
        if self._line_open:
            self._write(self._pieces.end() + "\n")

    def _print(self, text: str) -> None:
        if text:
            self._shown += text
            self._write(self._pieces.take(text))

    def _write(self, text: str) -> None:
        self._unflash()
        sys.stdout.write(text)
        sys.stdout.flush()
        self._line_open = not text.endswith("\n")
