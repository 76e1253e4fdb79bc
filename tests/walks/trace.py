"""Records the functions of this project that a process enters, in order, as lines on standard error.

A line is a mark, the monotonic time, the thread, the depth (how many functions of this project are
above on the stack), the file, the function and the file of its caller. Standard error is a file that every
process of ours has, a worker in its cell too, and the monotonic clock is one for all processes of a host, so
the lines of all processes are merged by sorting them.

The caller is the nearest function of this project above on the stack. A callback has none: what stands above
the event loop on the stack did not call it.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ipc.interpreter import OURS, PACKAGES

_MARK = "\x1ewalk"
_FOLDERS = tuple(f"{PACKAGES / package}/" for package in OURS)
_PREFIX = len(str(PACKAGES)) + 1
# Above these frames stands whoever waits for the loop or the thread, not who called.
_LOOPS = ("/asyncio/", "/concurrent/futures/", "/threading.py", "/uvloop/", "/runpy.py")
# Comprehensions belong to the function they stand in; a module's body is an import.
_NO_FUNCTIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One function entered. `caller` is a file, empty for a callback."""

    at: int
    thread: str
    depth: int
    file: str
    function: str
    caller: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.function}"


def start() -> None:
    """Records this process from now on, its threads and its forks too; a fork has to call this again."""
    _process.append(os.urandom(4).hex())
    threading.setprofile(_profile)
    sys.setprofile(_profile)


def entries(text: str) -> Iterator[Entry]:
    """Those in a log; other lines, and one that a kill has cut, are passed over."""
    for line in text.split(_MARK)[1:]:
        fields = line.partition("\n")[0].split("\t")
        if len(fields) == 7:
            _, at, thread, depth, *names = fields
            yield Entry(int(at), thread, int(depth), *names)


def read(logs: Path) -> list[Entry]:
    """The entries of all logs in a folder, by time."""
    texts = (log.read_text(errors="replace") for log in sorted(logs.rglob("*.log")))
    return sorted(entry for text in texts for entry in entries(text))


_files: dict[CodeType, str] = {}
# The name of this process, and before it of those it was forked from. Pids do not do: a cell has its own.
_process: list[str] = []


def _file(code: CodeType) -> str:
    """The path in the project; empty when it is not one of ours, or no function."""
    found = _files.get(code)
    if found is None:
        path = code.co_filename
        ours = path.startswith(_FOLDERS) and code.co_name not in _NO_FUNCTIONS
        found = _files[code] = path[_PREFIX:] if ours else ""
    return found


def _profile(frame: FrameType, event: str, _: Any) -> None:
    if event != "call" or not (file := _file(frame.f_code)):
        return
    depth, caller, above = 0, "", frame.f_back
    while above is not None and not any(loop in above.f_code.co_filename for loop in _LOOPS):
        if found := _file(above.f_code):
            depth += 1
            caller = caller or found
        above = above.f_back
    thread = f"{_process[-1]}.{threading.get_ident()}"
    fields = (_MARK, str(time.monotonic_ns()), thread, str(depth), file, frame.f_code.co_qualname, caller)
    os.write(2, ("\t".join(fields) + "\n").encode())
