"""The engine: drives the decider with the event loop. All that asyncio adds to deciding is in this module.

`decider.py` has the theory of batches: what is decided and what a failed commit means; `performer.py` the
order in which a batch is performed. This module decides when:

- An event asks for a step, which begins in the next iteration of the loop (`nudge`), so that all events of
  one iteration share a batch. One step is under way at a time: decide, commit, perform. Meanwhile events
  gather, and at its end the next step follows at once if any of them is urgent.
- A commit runs in the journal's thread and comes back as a future. One that failed for a passing reason, such
  as a full disk, is begun again after a pause, without limit: the service waits for its disk.
- Nothing happens between steps but the timer at the next deadline of the rules.
- `halt` lets the step under way end and allows no other: the last thing before the image is replaced.

An exception while deciding, committing, starting or killing ends the process by `fatal`, and so does a commit
that fails for good: memory would be ahead of the disk, and the next life loads what is true. All else is
contained where it happens (containment.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from supervisor import decider, enrichment
from supervisor.clock import Clock
from supervisor.core.records import Record
from supervisor.core.state import State
from supervisor.decider import RETRY_SECONDS, Decider, Trouble
from supervisor.event_queue import EventQueue
from supervisor.lookahead import Wanted
from supervisor.performer import Actions, perform


class Journal(enrichment.Journal, Protocol):
    """What the engine asks of the journal."""

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]": ...


class Ahead(enrichment.Journal, Protocol):
    """The journal's answers to what a batch needs, where it has to be asked before."""

    def ask(self, wanted: Wanted) -> "asyncio.Future[None]": ...


class Outputs(decider.Outputs, Actions, Protocol):
    """What the decider tells, and what a batch does."""


class Containment(decider.Containment, Protocol):
    """Where an exception ends what was being served; `vital` is where it ends the process."""

    def vital(
        self, work: Callable[[], Awaitable[None]], fatal: Callable[[BaseException], None]
    ) -> Coroutine[Any, Any, None]: ...


class Engine:
    """Everything that happens is posted here, or to the queue directly."""

    def __init__(
        self,
        state: State,
        queue: EventQueue,
        *,
        clock: Clock,
        journal: Journal,
        outputs: Outputs,
        contain: Containment,
        passing: Callable[[BaseException], tuple[str, str] | None],
        fatal: Callable[[BaseException], None],
        ahead: Ahead | None = None,
    ) -> None:
        """`passing` gives the fault and the remedy of a failed commit that may do better later.

        Without `ahead` the journal answers in place.
        """
        self.state = state
        self._clock = clock
        self._journal = journal
        self._ahead = ahead
        self._outputs = outputs
        self._contain = contain
        self._passing = passing
        self._fatal = fatal
        self._queue = queue
        queue.open(self.nudge)
        # Nothing is added to them here: called without a step in between.
        self.post = queue.post
        self.hold = partial(queue.post, can_wait=True)
        self._decider = Decider(
            state, queue, now=clock.now, journal=ahead or journal, outputs=outputs, contain=contain
        )
        self._loop = asyncio.get_running_loop()
        self._is_stepping = False
        self._stepping: asyncio.Task[None] | None = None  # the loop holds its tasks only weakly
        self._halted: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._proofs: list[Callable[[], None]] = []

    @property
    def trouble(self) -> Trouble | None:
        """Why nothing can be written now."""
        return self._decider.trouble

    @property
    def committing_since(self) -> float | None:
        return self._decider.committing_since

    @property
    def waiting_since(self) -> float | None:
        """Since when an event waits to be decided; None when none does."""
        return self._queue.waiting_since

    @property
    def commit_seconds(self) -> float:
        """For how long the commit under way has been waited for; 0 when none is."""
        since = self._decider.committing_since
        return 0.0 if since is None else self._clock.now() - since

    def has_its_turn(self, incarnation: int) -> bool:
        """Whether the worker that is to run a turn was told so, and others are told what follows."""
        return self._halted is None and self._decider.has_its_turn(incarnation)

    def prove(self, moved: Callable[[], None]) -> None:
        """`moved` is called once, when a batch has come back from the disk: proof that this loop turns."""
        self._proofs.append(moved)
        self.nudge()

    async def halt(self) -> None:
        """Returns when the batch under way is committed and performed; none follows it."""
        self._halted = self._loop.create_future()
        if not self._is_stepping:
            self._halted.set_result(None)
        await self._halted

    def nudge(self) -> None:
        """There is something to take: an event, or streamed text that was held."""
        if not self._is_stepping and self._halted is None:
            self._is_stepping = True
            self._stepping = self._loop.create_task(self._contain.vital(self._step, self._fatal))

    async def _step(self) -> None:
        """One batch, from its decision until all of it is performed."""
        if self._ahead is not None and not await self._is_looked_up(self._ahead):
            return
        records = self._decider.take()
        if records and not await self._is_committed(records):
            return
        perform(self._decider.written(), self._outputs)
        self._decider.performed()
        self._is_stepping = False
        self._tell_moved()
        if self._halted is not None:
            self._halted.set_result(None)
        elif self._queue.is_urgent:
            self.nudge()
        else:
            self._set_timer()

    async def _is_looked_up(self, ahead: Ahead) -> bool:
        """Return when the journal has said what the batch needs; False when it cannot for good."""
        wanted = self._decider.wanted()
        while wanted:
            asked = ahead.ask(wanted)
            await asyncio.wait([asked])
            error = asked.exception()
            if error is None:
                break
            if not await self._may_pass(error, self._decider.unanswered):
                return False
        return True

    async def _may_pass(self, error: BaseException, refused: Callable[[str, str], None]) -> bool:
        """Wait before it is tried again; False when that is of no use."""
        found = self._passing(error)
        if found is None:
            self._fatal(error)
            return False
        refused(*found)
        self._tell_moved()  # the journal has answered, and a restart would find the same
        await asyncio.sleep(RETRY_SECONDS)
        return True

    async def _is_committed(self, records: Sequence[Record]) -> bool:
        """Return when the records are on disk; False when they cannot be written for good."""
        while True:
            commit = self._journal.commit(records)
            await asyncio.wait([commit])
            error = commit.exception()
            if error is None:
                return True
            if not await self._may_pass(error, self._decider.refused):
                return False

    def _tell_moved(self) -> None:
        proofs, self._proofs = self._proofs, []
        for moved in proofs:
            moved()

    def _set_timer(self) -> None:
        """Wake at the next deadline. A timer that is early does no harm, so an earlier one is left alone."""
        deadline = self._decider.deadline
        if deadline is None or deadline >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_later(max(0.0, deadline - self._clock.now()), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        self.nudge()
