"""`python -m worker.file_calls`: one call of a file tool, in a process of its own.

The worker itself must not open a path that a model names: its own memory is a file too, and holds the key of
the model. This process has what a command of the agent has: the same user, view, limits and filter. It reads
the call from stdin as JSON and prints the result; its exit status is 1 when the call failed.
"""

import contextlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from io import BufferedReader
from typing import Any

# What a model reads at once; as much as of the output of a command.
_SHOWN_BYTES_MAX = 40_000
_LINE_CHARACTERS_MAX = 2_000
_ENTRIES_MAX = 1_000
# A file that is edited is held in memory twice.
_EDITED_BYTES_MAX = 16 * 1024 * 1024
# A NUL byte this early is the usual sign of a file that is no text.
_PROBED_BYTES = 8_192
_UNFINISHED = ".hermes-"


class CallError(Exception):
    """What is wrong with the call, in words for the model."""


def read(path: str, first_line: int = 1, lines: int = 2_000) -> str:
    """Returns lines of a text file, or the names in a folder."""
    place = _place(path)
    if os.path.isdir(place):
        return _entries(place)
    with _opened(place) as file:
        if b"\0" in file.peek(_PROBED_BYTES)[:_PROBED_BYTES]:
            size = os.fstat(file.fileno()).st_size
            raise CallError(f"{path} is no text, but {size} bytes of something else")
        return _lines(file, first_line, first_line + lines)


def _lines(file: BufferedReader, first: int, end: int) -> str:
    """Returns the lines from `first` up to `end`, and says which they are if there are others."""
    shown: list[str] = []
    size, last, count = 0, first - 1, 0
    for count, line in enumerate(file, 1):
        if first <= count < end and last == count - 1:
            text = _cut(line.decode(errors="replace"))
            size += len(text.encode())
            if size <= _SHOWN_BYTES_MAX:
                shown.append(text)
                last = count
    if count == 0:
        return "(an empty file)"
    if not shown:
        raise CallError(f"it has {count} lines, so there is no line {first}")
    if (first, last) == (1, count):
        return "".join(shown)
    return f"[lines {first} to {last} of {count}]\n{''.join(shown)}"


def _cut(line: str) -> str:
    surplus = len(line.rstrip("\n")) - _LINE_CHARACTERS_MAX
    return line if surplus <= 0 else f"{line[:_LINE_CHARACTERS_MAX]}[… {surplus} characters left out …]\n"


def _entries(folder: str) -> str:
    names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in os.scandir(folder))
    more = [f"[… {len(names) - _ENTRIES_MAX} more …]"] if len(names) > _ENTRIES_MAX else []
    return "\n".join([*names[:_ENTRIES_MAX], *more]) or "(an empty folder)"


def write(path: str, content: str) -> str:
    """Writes a whole file, and the folders above it where they are missing."""
    place = os.path.realpath(_place(path))
    is_new = not os.path.exists(place)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    _replace(place, _encoded(content))
    return f"{'made' if is_new else 'replaced'} {path}: {content.count(chr(10))} line ends"


def edit(path: str, old: str, new: str, every: bool = False) -> str:
    """Replaces one passage of a text file, or every one like it."""
    place = os.path.realpath(_place(path))
    with _opened(place) as file:
        content = file.read(_EDITED_BYTES_MAX + 1)
    if len(content) > _EDITED_BYTES_MAX:
        raise CallError(f"{path} has more than {_EDITED_BYTES_MAX} bytes: edit it with a command")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise CallError(f"{path} is no text in UTF-8: edit it with a command") from None
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    found = text.count(old)
    if found == 0:
        raise CallError(f"{path} does not contain the old text: read it again, and give the text exactly")
    if found > 1 and not every:
        raise CallError(f"{path} has the old text {found} times: give more of what is around it, or every")
    _replace(place, _encoded(text.replace(old, new)))
    return f"replaced {found} passage{'s' if found > 1 else ''} in {path}"


def _place(path: str) -> str:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise CallError(f"{path!a} has one half of a character: give the whole one") from None
    return os.path.expanduser(path)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start : error.end]
        raise CallError(f"the text has {half!a}, one half of a character: give the whole one") from None


def _opened(place: str) -> BufferedReader:
    """Without waiting: a pipe that nothing is written to would be waited for."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise CallError(f"{place} is no file")
    return file


def _replace(place: str, content: bytes) -> None:
    """The file is the old one or the new one, whatever happens in between."""
    if os.path.exists(place) and not os.path.isfile(place):
        raise CallError(f"{place} is no file")
    try:
        mode = stat.S_IMODE(os.stat(place).st_mode)
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=os.path.dirname(place))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        os.replace(unfinished, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


_CALLS: dict[str, Callable[..., str]] = {"read": read, "write": write, "edit": edit}


def main() -> int:
    call: dict[str, Any] = json.load(sys.stdin)
    try:
        result, status = _CALLS[call.pop("tool")](**call), 0
    except CallError as error:
        result, status = f"error: {error}", 1
    except OSError as error:
        result, status = f"error: {error.filename}: {error.strerror}", 1
    sys.stdout.buffer.write(result.encode(errors="replace"))
    return status


if __name__ == "__main__":
    sys.exit(main())
