"""Why a worker died, in a sentence: how it ended and the last line it wrote, both short."""

import os
import signal
from pathlib import Path

_LOG_TAIL_BYTES = 4096
_LINE_CHARACTERS_MAX = 300


def how_it_ended(status: int | None) -> str:
    """A status as the zygote tells it: 128 + N and -N both stand for signal N."""
    if status is None:
        return "ended, nobody could tell how"
    number = -status if status < 0 else status - 128
    if status < 0 or status > 128:
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"exited with status {status}"


def last_line(log: Path) -> str:
    """The last line with something in it, or nothing."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LOG_TAIL_BYTES))
            text = file.read(_LOG_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LINE_CHARACTERS_MAX] if lines else ""


def size(count: int) -> str:
    """An amount of memory as people write it: 512 MiB, 1.5 GiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def too_large(bytes_max: int) -> str:
    """For a tree that was ended because of its memory."""
    return f"it used more than {size(bytes_max)} of memory"


def sentence(how: str, log: Path) -> str:
    line = last_line(log)
    return f"{how}; its last words: {line}" if line else how
