"""Maintenance of the journal beside the running service: long work in threads, pruning on a schedule."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ipc import messages as wire
from ipc import paging
from ipc.errors import WireError
from supervisor.clock import Clock
from supervisor.config.fields import DURATION, SIZE, Reading
from supervisor.config.live import Live
from supervisor.containment import Containment, Fault
from supervisor.journal import maintenance
from supervisor.journal.asking import Asking
from supervisor.journal.errors import JournalError, JournalUnwritable
from supervisor.journal.prune import Pruning
from supervisor.telemetry.log import Log

# Each reads the whole journal: more of them would only compete for the disk.
_AT_ONCE_MAX = 4
# Often enough that there is little to prune each time.
_PRUNE_SECONDS = 3600.0

Reply = Callable[[wire.Answer], None]


class PrunableJournal(Protocol):
    async def prune(self, pruning: Pruning) -> None: ...


class ServerJournal(Protocol):
    """A journal that is no file of this host."""

    @property
    def asking(self) -> Asking: ...
    def check(self) -> tuple[str, ...]: ...
    def stats(self) -> paging.Row: ...


class Care:
    """Answers Care requests; none of them blocks the loop or a commit."""

    def __init__(
        self,
        *,
        journal: PrunableJournal,
        path: Path,
        check: Callable[[Path], None],
        live: Live,
        clock: Clock,
        log: Log,
        pruned: Callable[[], None],
        contain: Containment,
        server: ServerJournal | None = None,
    ) -> None:
        """`check` raises PlaceError when the journal's folder was replaced; `server` is one without.

        `pruned` is called when something was pruned: what only that needed can be removed too.
        """
        self._journal = journal
        self._server = server
        self._path = path
        self._check = check
        self._live = live
        self._clock = clock
        self._log = log
        self._pruned = pruned
        self._contain = contain
        self._loop = asyncio.get_running_loop()
        self._stopping = threading.Event()
        self._at_once = 0
        self._pruning: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Prune now and on schedule."""
        self._timer = self._loop.call_later(_PRUNE_SECONDS, self.open)
        self._start_pruning(
            Pruning(self._before(), self._live.settings.journal.bytes_max), lambda answer: None
        )

    def close(self) -> None:
        """Cancel the work in progress as soon as it notices."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._pruning is not None:
            self._pruning.cancel()

    def request_arrived(self, request: wire.Care, reply: Reply) -> None:
        if request.act == "prune":
            self._prune(request, reply)
        elif self._server is not None:
            self._ask_server(self._server, request, reply)
        elif self._at_once >= _AT_ONCE_MAX:
            fault = f"{_AT_ONCE_MAX} such requests are under way"
            reply(wire.Refused(fault, "wait for them", 5.0, "full"))
        else:
            self._at_once += 1
            self._contain.thread(
                "request",
                lambda: self._answer(request),
                lambda answer: self._finished(answer, reply),
                lambda fault: self._finished(wire.Refused(fault.error, fault.hint, code="internal"), reply),
            )

    def _ask_server(self, server: ServerJournal, request: wire.Care, reply: Reply) -> None:
        def failed(error: JournalError | WireError) -> None:
            reply(wire.Refused(error.fault, error.hint, code="unavailable"))

        match request.act:
            case "check":
                server.asking.ask(
                    server.check,
                    lambda found: reply(_one_row({"file": "", "ok": not found, "findings": found})),
                    failed,
                )
            case "stats":
                server.asking.ask(server.stats, lambda row: reply(_one_row(row)), failed)
            case _:
                fault = f"the journal is on a PostgreSQL server, which has its own means to {request.act} it"
                reply(wire.Refused(fault, "use pg_dump", code="invalid"))

    def _finished(self, answer: wire.Answer, reply: Reply) -> None:
        self._at_once -= 1
        if not self._stopping.is_set():
            reply(answer)

    def _answer(self, request: wire.Care) -> wire.Answer:
        """Runs in a thread."""
        try:
            self._check(self._path.parent)
            return self._outcome(request)
        except JournalError as error:
            return wire.Refused(error.fault, error.hint, code="unavailable")
        except WireError as error:
            return wire.Refused(error.fault, error.hint, code="invalid")

    def _outcome(self, request: wire.Care) -> wire.Answer:
        match request.act:
            case "check":
                found = maintenance.check(self._path)
                return _one_row({"file": str(self._path), "ok": not found, "findings": found})
            case "stats":
                return _one_row(maintenance.stats(self._path))
            case "export":
                return maintenance.export_page(self._path, request.session, request.after)
        if request.file is None or not _is_file_name(request.file):
            fault = "a backup needs the whole path of its file"
            return wire.Refused(fault, "hermesctl journal backup FILE", code="invalid")
        return _one_row(maintenance.backup(self._path, Path(request.file), self._stopping.is_set))

    def _before(self) -> float:
        return self._clock.now() - self._live.settings.journal.keep_seconds

    def _prune(self, request: wire.Care, reply: Reply) -> None:
        """Prune by the limits in the request; by the settings when it has none."""
        asked = request.older is not None or request.keep is not None
        try:
            older = _read(
                DURATION, request.older, None if asked else self._live.settings.journal.keep_seconds
            )
            keep = _read(SIZE, request.keep, None if asked else self._live.settings.journal.bytes_max)
        except ValueError as error:
            fault = f"{error.args[0]} cannot be used"
            reply(wire.Refused(fault, f"write {error.args[1]}", code="invalid"))
            return
        before = self._clock.now() - older if older is not None else 0.0
        self._start_pruning(Pruning(before, None if keep is None else int(keep)), reply)

    def _start_pruning(self, pruning: Pruning, reply: Reply) -> None:
        if self._pruning is not None and not self._pruning.done():
            reply(wire.Refused("the journal is being pruned already", "wait for it", 5.0, "conflict"))
            return

        def failed(fault: Fault) -> None:
            reply(wire.Refused(fault.error, fault.hint, code="internal"))

        self._pruning = self._contain.task("request", self._run(pruning, reply), failed)

    async def _run(self, pruning: Pruning, reply: Reply) -> None:
        try:
            await self._journal.prune(pruning)
        except JournalError as error:
            # On a full disk pruning fails too; it is tried again on schedule.
            self._log.write("journal.kept", error=error.fault)
            passing = isinstance(error, JournalUnwritable)
            reply(wire.Refused(error.fault, error.hint, 5.0 if passing else None, "unavailable"))
            return
        if pruning.removed.total():
            self._log.write("journal.pruned", **pruning.removed)
            self._pruned()
        reply(_one_row(dict(pruning.removed)))


def _is_file_name(path: str) -> bool:
    return "\0" not in path and Path(path).is_absolute() and Path(path).name != ""


def _one_row(row: paging.Row) -> wire.Table:
    return paging.page(paging.listed([row], ""))


def _read(reading: Reading[float] | Reading[int], text: str | None, otherwise: float | None) -> float | None:
    """ValueError has the text and a hint."""
    if text is None:
        return otherwise
    try:
        return float(reading.read(int(text) if text.isdecimal() else text))
    except ValueError:
        raise ValueError(text, reading.wants) from None
