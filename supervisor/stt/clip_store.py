"""The clip store: clips are kept for a time, within a size, and never deleted during their transcription."""

import asyncio
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from ipc.errors import PlaceError
from supervisor.clock import Clock
from supervisor.config.live import Live
from supervisor.containment import Containment, nothing
from supervisor.core.state import State
from supervisor.journal.asking import Asking, InPlace, asked
from supervisor.telemetry.log import Log

# The limit of hosted services, far more than one message needs; a test compares it with the limit of the
# STT service.
CLIP_BYTES_MAX = 25 * 1024 * 1024
# A name is a random token of its sender: no folder, no dot, nothing a shell or a log could misread.
_NAME_CHARACTERS_MAX = 64
# A stray clip belongs to no message: its sender died before submitting it, or its message was pruned. A
# living sender submits it at once, also on a slow disk.
_STRAY_SECONDS = 3600.0
_PRUNE_SECONDS = 3600.0
# Clips examined and removed before the loop runs other work: some milliseconds.
_AT_ONCE = 100


class KnownClips(Protocol):
    def clips_known(self, names: Collection[str]) -> set[str]:
        """Return those of these clips that belong to a message."""
        ...


class SharedClips(Protocol):
    """The rows of clips, where several hosts share the journal."""

    def remove(self, names: Collection[str]) -> None: ...
    def prune(self, keep_seconds: float, stray_seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Stored:
    name: str
    at: float
    size: int


def is_name(name: str) -> bool:
    return 0 < len(name) <= _NAME_CHARACTERS_MAX and name.isascii() and name.isalnum()


def fault(folder: Path, name: str) -> tuple[str, str] | None:
    """Return why a clip of this name cannot be accepted, and a hint."""
    if not is_name(name):
        error = f"a clip's name has 1 to {_NAME_CHARACTERS_MAX} letters and digits"
        return error, "store the clip under another name"
    try:
        found = os.lstat(folder / name)
    except OSError:
        return "the clip is not in the clips folder", "store it there, then submit it; old ones are removed"
    if not stat.S_ISREG(found.st_mode):
        return "the clip is not a plain file", "store a copy of it in the clips folder"
    if not found.st_size:
        return "the clip is empty", "record it again"
    if found.st_size > CLIP_BYTES_MAX:
        size = f"the clip has {found.st_size:,} bytes, the limit is {CLIP_BYTES_MAX:,}"
        return size, "send it compressed (OGG/Opus), or in parts"
    return None


def superfluous(stored: Collection[Stored], now: float, keep_seconds: float, bytes_max: int) -> list[Stored]:
    """Return clips that are too old, and of the rest the oldest beyond the size limit."""
    kept = sorted(stored, key=lambda clip: clip.at, reverse=True)
    size = 0
    gone = []
    for clip in kept:
        size += clip.size
        if size > bytes_max or now - clip.at > keep_seconds:
            gone.append(clip)
    return gone


class ClipStore:
    """Prunes the folder at the start, on schedule, and after messages were pruned.

    `check` raises PlaceError when the folder was replaced; `in_use` names the clips that are being
    transcribed.
    """

    def __init__(
        self,
        *,
        folder: Path,
        check: Callable[[Path], None],
        live: Live,
        known: KnownClips,
        asking: Asking | None = None,
        in_use: Callable[[], set[str]],
        clock: Clock,
        log: Log,
        contain: Containment,
        shared: SharedClips | None = None,
    ) -> None:
        self._shared = shared
        self._folder = folder
        self._check = check
        self._live = live
        self._known = known
        self._asking = asking or InPlace()
        self._in_use = in_use
        self._clock = clock
        self._log = log
        self._contain = contain
        self._loop = asyncio.get_running_loop()
        self._pruning: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Prune now and on schedule."""
        self._timer = self._loop.call_later(_PRUNE_SECONDS, self.open)
        self.prune()

    def prune(self) -> None:
        if self._pruning is None or self._pruning.done():
            self._pruning = self._contain.task("schedule", self._prune(), nothing)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pruning is not None:
            self._pruning.cancel()

    def fault(self, name: str) -> tuple[str, str] | None:
        """Return why a clip of this name cannot be accepted, and a hint."""
        try:
            self._check(self._folder)
        except PlaceError as error:
            return error.fault, error.hint
        return fault(self._folder, name)

    async def _prune(self) -> None:
        try:
            await self._remove_superfluous()
        except PlaceError as error:
            self._log.write("clips.kept", error=error.fault)

    async def _remove_superfluous(self) -> None:
        self._check(self._folder)
        stored = await asyncio.to_thread(_stored, self._folder)
        now = self._clock.now()
        stt = self._live.settings.stt
        gone = superfluous(stored, now, stt.clips_seconds, stt.clips_bytes_max)
        aged = [clip for clip in stored if now - clip.at > _STRAY_SECONDS]
        removed = 0
        for start in range(0, len(aged), _AT_ONCE):
            names = [clip.name for clip in aged[start : start + _AT_ONCE]]
            known = await asked(self._asking, partial(self._known.clips_known, names))
            removed += self._remove(set(names) - known)
            await asyncio.sleep(0)
        for start in range(0, len(gone), _AT_ONCE):
            removed += self._remove({clip.name for clip in gone[start : start + _AT_ONCE]})
            await asyncio.sleep(0)
        if self._shared is not None:
            self._shared.prune(stt.clips_seconds, _STRAY_SECONDS)
        if removed:
            self._log.write("clips.pruned", clips=removed)

    def _remove(self, names: set[str]) -> int:
        """Ask for the clips in use again each time: one may have come into use meanwhile."""
        self._check(self._folder)
        removed = 0
        unused = names - self._in_use()
        for name in unused:
            with suppress(OSError):
                (self._folder / name).unlink()
                removed += 1
        if self._shared is not None and unused:
            self._shared.remove(unused)
        return removed


def _stored(folder: Path) -> list[Stored]:
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                found.append(Stored(entry.name, about.st_mtime, about.st_size))
    return found


def clips_in_use(state: State) -> set[str]:
    """Return the clips whose transcripts are still to come."""
    waiting = (message for session in state.sessions.values() for message in session.waiting)
    return {message.clip for message in waiting if message.is_transcribing}
