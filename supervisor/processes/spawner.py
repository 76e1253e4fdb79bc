"""The spawner: one runtime in one kind of cell, and a zygote that forks its workers, replaced when it dies.

Problem: a worker must start in milliseconds, but importing an agent takes seconds. So a zygote imports
everything once and forks workers. It must be replaceable: it can crash, be killed by an agent, or hang.

States (SpawnerState):

    closed ── open ──► warming ── Warm ──► ready          only `ready` forks
    warming, ready ── the zygote's guard ended ──► resting ── after a pause ──► warming
    closed, warming ── no cell of this kind on this host ──► unavailable ── every 30 s ──► warming
    warming ── no agent, or the third zygote in a row that was never warm ──► unavailable
    any ── close, retire or hand_over ──► closed

An optional spawner, of a runtime beside the default one, leaves `unavailable` only when it is wanted.

Each start begins with a trial: the zygote makes one cell and ends it (CellWorks or CellFails).

Invariants: a spawner has at most one zygote. Workers are descendants of the zygote, and the guard above it
ends them before itself; a guard that was killed cannot, so `lost` also says whether their end is certain. It
is called once for each zygote that ended after its trial. A weaker kind of cell is never substituted.
The pause doubles up to 30 s, and is reset after a zygote that was warm for a minute.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ipc import foreign_python
from ipc.errors import PlaceError
from ipc.service_messages import (
    LEASE_GIVEN_UP,
    Boundary,
    CellFails,
    CellSpec,
    CellWorks,
    FromZygote,
    NoAgent,
    Prepare,
    Sandbox,
    Warm,
)
from supervisor.clock import monotonic
from supervisor.core.reasons import EndReason, Reason
from supervisor.handoff.carried_workers import HandedZygote
from supervisor.host.lease import Lease
from supervisor.processes import procfs
from supervisor.processes.cells import BEST, CELLS, Cell, CellUnavailable, Limits
from supervisor.processes.exit_reason import how_it_ended, sentence
from supervisor.processes.orphans import Record
from supervisor.processes.zygote_client import Program, Zygote

# A light interpreter start and a trial fork; more means that the host is in trouble.
_TRIAL_SECONDS_MAX = 20.0
# The zygote reports an exit status right after the death, unless it has died too. With the lease of the host
# it has: then its guard says why, when it has ended all cells.
_STATUS_SECONDS_MAX, _GUARD_SECONDS_MAX = 0.25, 5.0
_REST_SECONDS_FIRST = 0.2
_REST_SECONDS_MAX = 30.0
# Interval of retries while this kind of cell is unavailable.
_RETRY_SECONDS = 30.0
# Limit of an optional zygote's imports and rehearsal: the user's code may hang.
_WARM_SECONDS_MAX = 120.0
# One zygote may die by chance. After this many that were never warm, the turns that wait for it fail.
_COLD_ENDS_MAX = 3
# A zygote that was warm this long worked: the pause before the next one is reset.
_SOUND_SECONDS = 60.0
_HINTS = {
    "pidns": (
        "`hermesctl doctor` says what to change on this host; or choose a weaker cell, in which agents read "
        'and write what this user can: [workers] cell = "sweep" in hermes.toml'
    ),
    "cgroup": 'set [workers] cell = "auto" in hermes.toml',
    "sweep": 'set [workers] cell = "auto" in hermes.toml',
}
# Only the supervisor may notify systemd.
_NOT_FOR_WORKERS = frozenset({"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"})


class SpawnerState(StrEnum):
    CLOSED = "closed"
    WARMING = "warming"
    READY = "ready"
    RESTING = "resting"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Wishes:
    """Requirements for cells: `cell` is a kind or "auto"."""

    cell: str
    limits: Limits
    # Of the agent with the most workers: the zygote prepares a cell for it.
    sandbox: Callable[[], Sandbox]
    # Folders and files that no cell may see.
    hide: Callable[[], tuple[str, ...]]
    boundary: Callable[[str], Boundary]
    program: Program
    environment: Mapping[str, str]
    # Raises PlaceError when a folder that is used by path was replaced.
    check: Callable[[], None]
    # Of this host, where several share a journal: no zygote begins while it is given up.
    lease: Lease | None = None
    # Of a runtime beside the default one; and how to mend a zygote of it that does not start.
    is_optional: bool = False
    hint: str = ""


class Spawner:
    """`receive` gets this spawner and the zygote's frames about workers; `changed` each change of the state.

    `lost` gets this spawner, the reason why the zygote and all its workers are gone, and whether it is
    certain that none of their descendants is alive.
    """

    def __init__(
        self,
        wishes: Wishes,
        log: Path,
        record: Record,
        receive: Callable[["Spawner", FromZygote, int | None], None],
        lost: Callable[["Spawner", Reason, bool], None],
        changed: Callable[["Spawner"], None],
    ) -> None:
        self._wishes = wishes
        self._log = log
        self._record = record
        self._receive = receive
        self._lost = lost
        self._changed = changed
        # It forks workers only in the state `ready`.
        self.zygote: Zygote | None = None
        self._trial: asyncio.Future[tuple[str, str]] | None = None
        self._gone = asyncio.Event()
        self._rest_seconds = _REST_SECONDS_FIRST
        self._warm_at: float | None = None
        self.is_retired = False
        self._cold_ends = 0
        self._refusal: CellUnavailable | None = None
        self._restart: asyncio.TimerHandle | None = None
        self._warm_limit: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self.state = SpawnerState.CLOSED
        # Why there is no zygote at the moment.
        self.detail = ""
        self.fault: CellUnavailable | None = None
        # Limits that the kernel cannot enforce on cells of this kind.
        self.shortcomings: tuple[str, ...] = ()
        self.cell: Cell = CELLS[BEST if wishes.cell == "auto" else wishes.cell](wishes.limits)

    async def open(self) -> None:
        """Set up the configured kind of cell; where it is unavailable, no worker is made (`detail`).

        A weaker kind is never substituted: a person chooses how agents are held.
        """
        former = self.fault
        try:
            if self._wishes.is_optional:
                await _check_interpreter(self._wishes.program)
            self.cell.set_up()
            await self._try()
        except CellUnavailable as fault:
            self._fail(fault)
            if not self._wishes.is_optional:
                self._restart = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._open_again)
        else:
            # A zygote that has ended right behind its trial may have left another one.
            if self.fault is former:
                self.fault = None

    def want(self) -> None:
        """Open it unless it is open, or was retired."""
        if self.state is SpawnerState.UNAVAILABLE or (self._opening is None and not self.is_retired):
            self.state = SpawnerState.WARMING
            self.fault = self._refusal = None
            self._open_again()

    def retire(self) -> None:
        """Fork no more workers; those that there are end with their turns."""
        self.is_retired = True
        self.state = SpawnerState.CLOSED
        self._stop_timers()

    def _fail(self, fault: CellUnavailable) -> None:
        if self.is_retired:
            return
        self.fault = fault
        self.state = SpawnerState.UNAVAILABLE
        self.detail = f"{fault.fault}; {fault.hint}"
        self._changed(self)

    def _open_again(self) -> None:
        """Try again: the cause may be gone."""
        self._opening = asyncio.get_running_loop().create_task(self.open())

    def spec(self, incarnation: int, sandbox: Sandbox) -> CellSpec:
        """Return how to make the cell of this incarnation, and make its prerequisites."""
        return self.cell.spec(incarnation, sandbox, self._wishes.hide())

    def take_over(self, handed: HandedZygote) -> None:
        """Hold the workers that an earlier image of this process left running; fork no others."""
        self.cell = CELLS[handed.cell](self._wishes.limits)
        self.zygote = Zygote.take_over(handed, self._heard, self._ended)
        self._record.add(self.zygote.process)

    def description(self, agents: str) -> str:
        """Return what cells of this kind are and cannot enforce, and `agents`; or why there are none."""
        if self.state is SpawnerState.UNAVAILABLE:
            return f"none, so no agent starts: {self.detail}"
        return "; ".join([self.cell.description, agents, *self.shortcomings])

    @property
    def status_seconds_max(self) -> float:
        """Return how long the reason is waited for why a worker has ended."""
        lease = self._wishes.lease
        return _GUARD_SECONDS_MAX if lease is not None and lease.is_given_up else _STATUS_SECONDS_MAX

    @property
    def guard(self) -> int:
        """Return the pid of the guard, the process above the zygote."""
        return self.zygote.process.pid if self.zygote is not None else procfs.NO_PROCESS.pid

    def hand_over(self) -> HandedZygote | None:
        """Return None when there is no zygote at the moment, and so no worker either."""
        self.retire()
        zygote, self.zygote = self.zygote, None
        return zygote.hand_over(self.cell.name) if zygote is not None else None

    def forget(self, incarnation: int) -> None:
        """A worker has ended."""
        if self.zygote is not None:
            self.zygote.forget(incarnation)

    def give_up_zygote(self) -> None:
        """End a zygote that no longer answers, with all its workers; `lost` follows, then a new zygote."""
        if self.zygote is not None:
            self.zygote.end()

    async def close(self, deadline_seconds: float) -> None:
        """End the zygote and all its descendants; kill what has not ended in half the time."""
        self.retire()
        await self._end_zygote(deadline_seconds)

    async def _end_zygote(self, deadline_seconds: float) -> None:
        self.state = SpawnerState.CLOSED
        self._stop_timers()
        if self.zygote is None:
            return
        for act in (self.zygote.end, self.zygote.kill):
            act()
            try:
                async with asyncio.timeout(deadline_seconds / 2):
                    await self._gone.wait()
                    return
            except TimeoutError:
                continue

    async def _try(self) -> None:
        trial = self._trial = asyncio.get_running_loop().create_future()
        self._start()
        try:
            async with asyncio.timeout(_TRIAL_SECONDS_MAX):
                fault, hint = await trial
        except TimeoutError:
            fault, hint = f"no answer from the zygote within {_TRIAL_SECONDS_MAX:.0f} s", ""
        self._trial = None
        if fault:
            await self._end_zygote(_TRIAL_SECONDS_MAX)
            self.cell.clear(0)
            raise CellUnavailable(fault, hint or _HINTS[self.cell.name])
        self.cell.clear(0)

    def _stop_timers(self) -> None:
        for timer in (self._restart, self._warm_limit):
            if timer is not None:
                timer.cancel()

    def _start(self) -> None:
        environment = {
            name: value for name, value in self._wishes.environment.items() if name not in _NOT_FOR_WORKERS
        }
        try:
            self._wishes.check()
        except PlaceError as error:
            raise CellUnavailable(error.fault, error.hint) from None
        self.state = SpawnerState.WARMING
        self.detail = ""
        self._gone.clear()
        prepare = Prepare(self.spec(0, self._wishes.sandbox()), self._wishes.boundary(self.cell.name))
        program = self._wishes.program
        try:
            callbacks = self._heard, self._ended
            lease = self._wishes.lease
            self.zygote = Zygote.start(program, prepare, self._log, environment, *callbacks, lease)
        except OSError as error:
            if not self._wishes.is_optional:
                raise
            fault = f"{program.python} cannot be started: {error.strerror}"
            raise CellUnavailable(fault, self._wishes.hint) from None
        self._record.add(self.zygote.process)
        if self._wishes.is_optional:
            loop = asyncio.get_running_loop()
            self._warm_limit = loop.call_later(_WARM_SECONDS_MAX, self._too_slow)

    def _too_slow(self) -> None:
        self.detail = f"its agent was not ready {_WARM_SECONDS_MAX:.0f} s after the start"
        self.give_up_zygote()

    def _start_again(self) -> None:
        if self._wishes.lease is not None and self._wishes.lease.is_given_up:
            loop = asyncio.get_running_loop()
            self._restart = loop.call_later(_REST_SECONDS_FIRST, self._start_again)
            return
        try:
            self._start()
        except CellUnavailable as fault:
            self._rest(f"{fault.fault}; {fault.hint}")

    def _heard(self, message: FromZygote, descriptor: int | None) -> None:
        match message:
            case CellWorks():
                self.shortcomings = message.shortcomings
                self._settle_trial("")
                # The next thing that is heard may be its end, before `_try` goes on.
                self._trial = None
            case CellFails():
                self.detail = message.error
                self._settle_trial(message.error)
            case NoAgent():
                self._refusal = CellUnavailable(message.error, message.hint)
            case Warm() if self.state is SpawnerState.WARMING:
                self._stop_timers()
                self.state = SpawnerState.READY
                self._warm_at = monotonic()
                self._cold_ends = 0
                self.cell.clear(0)
                self._changed(self)
            case Warm():
                pass  # it was retired meanwhile
            case _:
                self._receive(self, message, descriptor)

    def _settle_trial(self, fault: str, hint: str = "") -> None:
        if self._trial is not None and not self._trial.done():
            self._trial.set_result((fault, hint))

    def _ended(self, status: int) -> None:
        zygote, self.zygote = self.zygote, None
        if zygote is not None:
            self._record.remove(zygote.process)
        self._gone.set()
        words = self.detail or sentence(f"the zygote {how_it_ended(status)}", self._log)
        reason = Reason(EndReason.ZYGOTE_ENDED, words)
        if status == LEASE_GIVEN_UP:
            reason = Reason(EndReason.LEASE_GIVEN_UP)
            words = str(reason)
        # A killed guard has not ended its descendants, and an agent may have killed it.
        is_certain = status >= 0 or self.cell.name == BEST
        if self._trial is not None:
            self._settle_trial(words, self._wishes.hint)
            return
        if self.state is not SpawnerState.CLOSED:
            self._stop_timers()
            self._replace(words)
        self._lost(self, reason, is_certain)

    def _replace(self, words: str) -> None:
        """Start another zygote after a pause; not if there can be no agent."""
        if self._wishes.is_optional and self._warm_at is None:
            self._cold_ends += 1
        if self._refusal is not None:
            self._fail(self._refusal)
        elif self._cold_ends >= _COLD_ENDS_MAX:
            times = f"its process ended before it was ready, {self._cold_ends} times in a row"
            self._fail(CellUnavailable(f"{times}: {words}", f"{self._log} says more"))
        else:
            self._rest(words)

    def _rest(self, words: str) -> None:
        if self._warm_at is not None and monotonic() - self._warm_at > _SOUND_SECONDS:
            self._rest_seconds = _REST_SECONDS_FIRST
        self._warm_at = None
        self.state = SpawnerState.RESTING
        self.detail = f"{words}; the next one starts in {self._rest_seconds:.1f} s"
        self._restart = asyncio.get_running_loop().call_later(self._rest_seconds, self._start_again)
        self._rest_seconds = min(2 * self._rest_seconds, _REST_SECONDS_MAX)
        self._changed(self)


async def _check_interpreter(program: Program) -> None:
    """Raise CellUnavailable for an interpreter that no zygote can run in."""
    python, path = program.python, program.path
    if python != sys.executable and (fault := await asyncio.to_thread(foreign_python.fault, python, path)):
        raise CellUnavailable(*fault)
