"""The reason of a worker's death, in a sentence: its exit status and the last line of its log, both short."""

import os
import signal
from pathlib import Path

_LOG_TAIL_BYTES = 4096
_LINE_CHARACTERS_MAX = 300


def how_it_ended(status: int | None) -> str:
    """Return the meaning of a status from the zygote: 128 + N and -N both mean signal N."""
    if status is None:
        return "ended with an unknown status"
    number = -status if status < 0 else status - 128
    if status < 0 or status > 128:
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"exited with status {status}"


def last_line(log: Path) -> str:
    """Return the last line that is not blank, or nothing."""
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
    """Return an amount of memory as people write it: 512 MiB, 1.5 GiB."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def too_large(bytes_max: int) -> str:
    """Return the reason for a tree that was killed because of its memory."""
    return f"it used more than {size(bytes_max)} of memory"


def sentence(how: str, log: Path) -> str:
    line = last_line(log)
    return f"{how}; last line of its log: {line}" if line else how
