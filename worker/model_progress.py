"""Progress of a model while it sends no text: it reasons, or it writes the arguments of a tool call.

Each report is a note with a count. It is progress for the supervisor, which ends a turn that shows none
(`[turns] silence`), and a transient line for a person. The reasoning itself is not shown: it is neither the
answer nor part of the history.
"""

import asyncio
from typing import Protocol

from worker.model_answer import Assembly

# Frequent enough to show activity; a fast model costs two notes a second at most.
_NOTE_SECONDS = 0.5


class Noted(Protocol):
    """Sends a note; with `replaces`, in place of the previous one."""

    def __call__(self, text: str, /, *, replaces: bool = False) -> None: ...


class Progress:
    """Watches an answer while it grows, and reports growth that is no text."""

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self._told_at = asyncio.get_running_loop().time()
        self._thought = 0
        self._called = 0

    def look(self, assembly: Assembly) -> None:
        thinks, calls = assembly.thought > self._thought, assembly.called > self._called
        now = asyncio.get_running_loop().time()
        if not (thinks or calls) or now - self._told_at < _NOTE_SECONDS:
            return
        self._told_at, self._thought, self._called = now, assembly.thought, assembly.called
        if thinks:
            self._noted(f"thinking… {assembly.thought:,} characters", replaces=True)
        else:
            self._noted(f"writing a tool call… {assembly.called:,} characters", replaces=True)
