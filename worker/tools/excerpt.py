"""Cuts long results of tools for the model: beginning and end stay, the middle is left out and counted.

A result that is *kept* is whole in a file (worker/output_files.py). The first line of the cut text names the
file, so that the model can read on, in later turns too, which see only the beginning of a result.
"""

import re

from worker.output_files import OutputFile, store

# Some ten thousand tokens: a model can read that at once, and it fits a tool result without another cut.
SHOWN_BYTES_MAX = 40_000
_LINE = re.compile(r"\[cut: (?:all|the beginning) of it is in [^\n]+; read it there\]")
# What stands before it is the outcome of a command.
_LOOKED_AT_CHARACTERS = 5_000
# More than the lines that a cut adds.
_LINE_CHARACTERS = 300


class Excerpt:
    """Takes bytes without end in bounded memory. A kept one writes all of them to a file once it is cut."""

    def __init__(self, bytes_max: int = SHOWN_BYTES_MAX, *, kept: bool = False) -> None:
        self._half = bytes_max // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._is_kept = kept
        self._file: OutputFile | None = None
        self._fault = ""

    def add(self, content: bytes) -> None:
        room = self._half - len(self._head)
        self._head += content[:room]
        self._tail += content[room:]
        excess = len(self._tail) - self._half
        if excess > 0:
            if self._file is not None:
                self._file.write(content)
            elif self._is_kept and not self._left_out:
                self._begin_file()
            self._left_out += excess
            del self._tail[:excess]

    def _begin_file(self) -> None:
        try:
            self._file = OutputFile()
        except OSError as error:
            self._fault = error.strerror or type(error).__name__
            return
        self._file.write(bytes(self._head + self._tail))

    def text(self) -> str:
        """Returns all of it, or both ends with a line between them that says how much is missing."""
        self.close()
        if not self._left_out:
            return (self._head + self._tail).decode(errors="replace")
        head, tail = self._head.decode(errors="replace"), self._tail.decode(errors="replace")
        return f"{self._first_line()}{head}\n[… {self._left_out} bytes left out …]\n{tail}"

    def close(self) -> None:
        """Releases the file."""
        if self._file is not None:
            self._file.close()

    def _first_line(self) -> str:
        if self._file is not None:
            return _line(self._file.path, self._file.is_whole)
        return f"[cut: the rest could not be kept: {self._fault}]\n" if self._fault else ""


def cut(text: str) -> str:
    """Returns a result as the model gets it; a long one is kept."""
    excerpt = Excerpt(kept=True)
    excerpt.add(text.encode(errors="replace"))
    return excerpt.text()


def shortened(text: str, characters: int) -> str:
    """Returns the beginning and the end of a result, so many characters together, if that is shorter.

    It is kept, unless one of its first lines names a file that has it already.
    """
    half = characters // 2
    if len(text) <= 2 * half + _LINE_CHARACTERS:
        return text
    line = _line_in(text)
    if line is not None:
        first, text = f"{line[0]}\n", text[: line.start()] + text[line.end() + 1 :]
    else:
        first = _stored(text)
    return f"{first}{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def left_out(text: str) -> str:
    """Returns one line in place of a result, if that is shorter; it names the file that has the result."""
    if len(text) <= _LINE_CHARACTERS:
        return text
    line = _line_in(text)
    where = f"{line[0]}\n" if line is not None else _stored(text)
    return f"[left out for lack of room: {len(text)} characters] {where}".rstrip()


def _stored(text: str) -> str:
    """Returns a line that names the new file of a text; none when it cannot be written."""
    try:
        return _line(store(text), is_whole=True)
    except OSError:
        return ""


def _line(path: str, is_whole: bool) -> str:
    part = "all" if is_whole else "the beginning"
    return f"[cut: {part} of it is in {path}; read it there]\n"


def _line_in(text: str) -> re.Match[str] | None:
    """A line that a tool made up names a file that the model could have read as well."""
    return _LINE.search(text, 0, _LOOKED_AT_CHARACTERS)
