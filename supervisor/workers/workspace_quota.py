"""Upkeep of workspaces: enforces the quota, and removes the workspaces of pruned sessions.

The kernel has no quota for a folder, so the size of a workspace is measured while a turn runs in it. A turn
under which it grows beyond `[sandbox] quota` fails with that reason, and its worker ends. A later turn may
tidy up: only one under which it keeps growing is ended again. A measurement costs as much as the workspace
has files, so the pause after it is twenty times as long as it took.

A session is over when the journal has pruned all its events. Its row stays and identifies it: a folder whose
session the journal does not know belongs to a person, and is not touched.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from ipc.errors import PlaceError
from supervisor.clock import monotonic
from supervisor.config.live import Live
from supervisor.containment import Containment, Fault
from supervisor.core.events import Failed, WorkerUnreachable
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import State, Who
from supervisor.event_sink import StatefulSink
from supervisor.journal.asking import Asking, InPlace
from supervisor.telemetry.log import Log
from supervisor.workers.workspaces import Workspaces, sessions_of

_PAUSE_SECONDS = 2.0
_PAUSES_A_LOOK = 20.0
# Deeper nesting is not measured: a measurement holds a descriptor for each level.
_DEPTH_MAX = 200
# Prefix of folders that are being removed; no workspace's name begins so.
_GONE = ".gone-"
_BLOCK_BYTES = 512
_HINT = "remove what is not needed from the workspace, or raise [sandbox] quota in hermes.toml"


class KnownSessions(Protocol):
    def is_forgotten(self, session: str) -> bool: ...
    def long_names(self, characters_min: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class _Running:
    """A turn and the workspace it runs in."""

    session: str
    who: Who
    turn: str
    attempt: int
    agent: str


class WorkspaceCare:
    """`known` reads the sessions of the journal."""

    def __init__(
        self,
        *,
        workspaces: Workspaces,
        known: KnownSessions,
        live: Live,
        engine: StatefulSink,
        log: Log,
        contain: Containment,
        asking: Asking | None = None,
    ) -> None:
        """`asking` is how the journal is asked, in place if it is not given."""
        self._workspaces = workspaces
        self._known = known
        self._asking = asking or InPlace()
        self._live = live
        self._engine = engine
        self._log = log
        self._contain = contain
        self._sizes: dict[str, int] = {}  # last measurement, of sessions in memory
        self._is_pruning = False

    def open(self) -> None:
        self.prune()
        self._look_after(_PAUSE_SECONDS)

    # --- quotas

    def _look_after(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        running = list(_running(self._engine.state))
        paths = {each.session: self._workspaces.path(each.session) for each in running}
        if not paths:
            self._look_after(_PAUSE_SECONDS)
            return
        measure = partial(_measured, paths)
        self._contain.thread("schedule", measure, partial(self._compare, running), self._not_measured)

    def _not_measured(self, fault: Fault) -> None:
        self._look_after(_PAUSE_SECONDS)

    def _compare(self, running: list[_Running], found: tuple[dict[str, int], float]) -> None:
        sizes, took_seconds = found
        self._look_after(_PAUSE_SECONDS + _PAUSES_A_LOOK * took_seconds)
        state = self._engine.state
        still = set(_running(state))
        for each in running:
            size, before = sizes[each.session], self._sizes.get(each.session)
            quota = self._live.settings.sandbox_of(each.agent).quota_bytes
            if each in still and before is not None and size > max(before, quota):
                self._end(each, size, quota)
        self._sizes = {name: size for name, size in (self._sizes | sizes).items() if name in state.sessions}

    def _end(self, running: _Running, size: int, quota: int) -> None:
        """End the turn first, so that it fails with this reason; the next one waits for the worker's end."""
        held = f"{size / 2**20:,.0f} MiB" if size < 2**63 else f"folders nested deeper than {_DEPTH_MAX}"
        reason = Reason(EndReason.OVER_QUOTA, f"{held}, the quota is {quota / 2**20:,.0f} MiB")
        self._log.write("workspace.full", session=running.session, turn=running.turn, bytes=size)
        failed = Failed(running.who, running.turn, running.attempt, str(reason), _HINT, again=False)
        self._engine.post(failed)
        self._engine.post(WorkerUnreachable(running.who, reason))

    # --- sessions that are over

    def prune(self) -> None:
        """Remove the workspaces of pruned sessions."""
        if not self._is_pruning:
            self._is_pruning = True
            names = partial(_listed, self._workspaces)
            self._contain.thread("schedule", names, self._look_up, self._not_pruned)

    def _not_pruned(self, fault: Fault) -> None:
        self._is_pruning = False

    def _look_up(self, names: list[str]) -> None:
        def forgotten() -> list[str]:
            found = sessions_of(names, self._known).values()
            return [each for each in found if self._known.is_forgotten(each)]

        self._asking.ask(forgotten, self._remove, lambda error: self._done_pruning())

    def _remove(self, forgotten: list[str]) -> None:
        """Runs in the loop: no turn can be bound to a workspace between the check and the rename."""
        removed = 0
        for session in forgotten:
            state = self._engine.state
            if session not in state.sessions and session not in state.seat_of:
                with suppress(OSError):
                    self._workspaces.path(session).rename(self._gone())
                    removed += 1
        if removed:
            self._log.write("workspaces.removed", workspaces=removed)
        clear = partial(_clear, self._workspaces)
        self._contain.thread("schedule", clear, lambda done: self._done_pruning(), self._not_pruned)

    def _done_pruning(self) -> None:
        self._is_pruning = False

    def _gone(self) -> Path:
        return self._workspaces.folder / f"{_GONE}{secrets.token_hex(8)}"


def _running(state: State) -> Iterable[_Running]:
    for seat in state.busy:
        worker = state.workers[seat]
        session = state.sessions.get(worker.session) if worker.session is not None else None
        attempt = session.turn.attempt if session and session.turn else None
        if session and session.turn and attempt and attempt.verdict is None:
            yield _Running(session.name, attempt.who, session.turn.id, attempt.number, worker.agent)


def _listed(workspaces: Workspaces) -> list[str]:
    """Runs in a thread; returns nothing when the folder was replaced."""
    with suppress(PlaceError, OSError):
        workspaces.check()
        return sorted(os.listdir(workspaces.folder))
    return []


def _clear(workspaces: Workspaces) -> None:
    """Runs in a thread. What cannot be removed now is tried again the next time."""
    for name in _listed(workspaces):
        if name.startswith(_GONE):
            with suppress(RecursionError):
                shutil.rmtree(workspaces.folder / name, ignore_errors=True)


def _measured(paths: dict[str, Path]) -> tuple[dict[str, int], float]:
    """Runs in a thread: return the sizes, and how long the measurement took."""
    began = monotonic()
    sizes = {session: size_of(path) for session, path in paths.items()}
    return sizes, monotonic() - began


def size_of(path: Path) -> int:
    """Return bytes on disk below a folder; links are not followed, a file with several names counts once."""
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    return _below(top, _DEPTH_MAX, set())


def _below(folder: int, depth: int, seen: set[tuple[int, int]]) -> int:
    """Close the descriptor. Works by descriptors, since an agent can make paths too long for the kernel."""
    total = 0
    try:
        if depth == 0:
            return 2**63
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += _of_entry(folder, entry, depth, seen)
    except OSError:
        pass
    finally:
        os.close(folder)
    return total


def _of_entry(folder: int, entry: "os.DirEntry[str]", depth: int, seen: set[tuple[int, int]]) -> int:
    found = entry.stat(follow_symlinks=False)
    size = found.st_blocks * _BLOCK_BYTES
    if entry.is_dir(follow_symlinks=False):
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return size + _below(os.open(entry.name, flags, dir_fd=folder), depth - 1, seen)
    if found.st_nlink > 1:
        key = (found.st_dev, found.st_ino)
        if key in seen:
            return 0
        seen.add(key)
    return size
