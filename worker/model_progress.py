"""Signs that a model is at work while no words come: it thinks, or it writes the arguments of a tool call.

Each sign is a note with a count. It is progress for the supervisor, which ends a turn that shows none
(`[turns] silence`), and a fleeting line for a person. The thought itself is not shown: it is neither the
answer nor part of the history.
"""

import asyncio
from typing import Protocol

from worker.model_answer import Assembly

# Often enough to look alive; a model that thinks fast costs two notes a second and not more.
_NOTE_SECONDS = 0.5


class Noted(Protocol):
    """Tells a watcher something; with `replaces`, in place of the note before."""

    def __call__(self, text: str, /, *, replaces: bool = False) -> None: ...


class Progress:
    """Looks at an answer as it is put together, and tells what grew in it without being heard."""

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
