"""The engine: drives the decider with the event loop. All that asyncio adds to deciding is in this module.

`decider.py` has the theory of batches: what is decided, in which order it is performed, and what a failed
commit means. This module decides when:

- An event asks for a step, which runs in the next iteration of the loop (`nudge`), so that all events of one
  iteration share a batch. One step is under way at a time, from `take` to `written`; meanwhile events gather,
  and at its end the next step follows at once if any of them is urgent.
- A commit runs in the journal's thread and comes back as a future. One that failed for a passing reason, such
  as a full disk, is begun again after a pause, without limit: the service waits for its disk.
- Nothing happens between steps but the timer at the next deadline of the rules.
- `halt` lets the step under way end and allows no other: the last thing before the image is replaced.

An exception while deciding, committing, starting or killing ends the process by `fatal`, and so does a commit
that fails for good: memory would be ahead of the disk, and the next life loads what is true. All else is
contained where it happens (containment.py).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from supervisor import decider, enrichment
from supervisor.clock import Clock
from supervisor.core.events import Event
from supervisor.core.records import Record
from supervisor.core.state import State
from supervisor.decider import RETRY_SECONDS, Decider, GiveAnswer, Outputs, TakeWords, Trouble


class Journal(enrichment.Journal, Protocol):
    """What the engine asks of the journal."""

    def commit(self, records: Sequence[Record]) -> "asyncio.Future[None]": ...


class Containment(decider.Containment, Protocol):
    """Where an exception ends what was being served; `vital` is where it ends the process."""

    def vital(self, act: Callable[..., None], fatal: Callable[[BaseException], None]) -> Any: ...


class Engine:
    """Everything that happens is posted here."""

    def __init__(
        self,
        state: State,
        *,
        clock: Clock,
        journal: Journal,
        outputs: Outputs,
        contain: Containment,
        passing: Callable[[BaseException], tuple[str, str] | None],
        fatal: Callable[[BaseException], None],
    ) -> None:
        """`passing` gives the fault and the remedy of a failed commit that may do better later."""
        self.state = state
        self._clock = clock
        self._journal = journal
        self._passing = passing
        self._fatal = fatal
        self._vital_step = contain.vital(self._step, fatal)
        self._vital_commit = contain.vital(self._commit, fatal)
        self._vital_committed = contain.vital(self._committed, fatal)
        self._decider = Decider(state, now=clock.now, journal=journal, outputs=outputs, contain=contain)
        self._loop = asyncio.get_running_loop()
        self._is_stepping = False
        self._halted: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._proofs: list[Callable[[], None]] = []

    def post(self, event: Event, answer: GiveAnswer | None = None) -> None:
        """Something happened. `answer` is called after the commit, if the rules have one for it."""
        self._decider.post(event, answer)
        self.nudge()

    def post_late(self, make: Callable[[], Event], answer: GiveAnswer) -> None:
        """Something happened; what it is to the rules is asked when they decide it."""
        self._decider.post(make, answer)
        self.nudge()

    def hold(self, words: TakeWords) -> None:
        """Words gather in this place until they are decided; they go with the next batch and ask for none."""
        self._decider.hold(words)

    @property
    def trouble(self) -> Trouble | None:
        """Why nothing can be written now."""
        return self._decider.trouble

    @property
    def committing_since(self) -> float | None:
        return self._decider.committing_since

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
            self._loop.call_soon(self._vital_step)

    def _step(self) -> None:
        records = self._decider.take()
        if records:
            self._commit(records)
        else:
            self._written()

    def _commit(self, records: Sequence[Record]) -> None:
        commit = self._journal.commit(records)
        commit.add_done_callback(lambda done: self._vital_committed(done, records))

    def _committed(self, commit: "asyncio.Future[None]", records: Sequence[Record]) -> None:
        error = commit.exception()
        if error is None:
            self._written()
        elif found := self._passing(error):
            self._decider.refused(*found)
            self._tell_moved()  # the disk has answered, and a restart would find the same disk
            self._loop.call_later(RETRY_SECONDS, self._vital_commit, records)
        else:
            self._fatal(error)

    def _written(self) -> None:
        self._decider.written()
        self._is_stepping = False
        self._tell_moved()
        if self._halted is not None:
            self._halted.set_result(None)
        elif self._decider.is_urgent:
            self.nudge()
        else:
            self._set_timer()

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
