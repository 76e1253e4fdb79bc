"""Why a worker died: how it ended and the last line it wrote, both short."""

import os
import signal
from pathlib import Path

from supervisor.core.reasons import EndReason, Reason

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


def too_large(bytes_max: int) -> Reason:
    """For a tree that was ended because of its memory."""
    return Reason(EndReason.MEMORY, size(bytes_max))


def not_started(fault: str) -> Reason:
    """For a worker that never had a process."""
    return Reason(EndReason.NOT_STARTED, fault)


def exited(status: int | None, log: Path) -> Reason:
    """For a worker that ended by itself, or by the hand of somebody else."""
    return Reason(EndReason.EXITED, sentence(how_it_ended(status), log))


def sentence(how: str, log: Path) -> str:
    line = last_line(log)
    return f"{how}; last line of its log: {line}" if line else how
