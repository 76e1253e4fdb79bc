"""Notes about a running command's output: the newest lines, a few times a second, never all of it."""

import asyncio
import codecs
from collections import deque

from worker.tools import Note

# Frequent enough to show activity; a flood of output costs four notes a second at most.
_NOTE_SECONDS = 0.25
# Together less than the longest note, so that the newest line is never the one that is cut.
_LINES_MAX = 4
_LINE_CHARACTERS_MAX = 100


class Ticker:
    """Makes notes of output."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque(maxlen=_LINES_MAX)
        self._skipped = 0
        self._unfinished = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, content: bytes) -> None:
        *lines, unfinished = (self._unfinished + self._decoder.decode(content)).split("\n")
        for line in lines:
            self._keep(line)
        self._unfinished = unfinished[-_LINE_CHARACTERS_MAX:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_NOTE_SECONDS, self._tell)

    def close(self) -> None:
        """Sends the rest and stops."""
        if self._timer is not None:
            self._tell()

    def _keep(self, line: str) -> None:
        # Text that a progress bar has overwritten is not shown.
        shown = line.rstrip().rpartition("\r")[2][:_LINE_CHARACTERS_MAX]
        if shown:
            self._skipped += len(self._lines) == _LINES_MAX
            self._lines.append(shown)

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._keep(self._unfinished)
        self._unfinished = ""
        if self._lines:
            skipped = [f"[… {self._skipped} lines …]"] if self._skipped else []
            self._note("\n".join([*skipped, *self._lines]))
        self._lines.clear()
        self._skipped = 0
