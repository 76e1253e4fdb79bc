"""Ends workers; where the settings give an agent a grace, it may cancel an interrupted turn by itself before.

An interrupt is a kill, and needs no cooperation of what is killed (docs/decisions/0001). `cancel_grace` of
an agent delays that kill and replaces nothing of it: the timer runs here, and the worker is killed when the
grace is over, or earlier, when the attempt has ended.

    interrupted ──┬── no grace, or Cancel cannot be sent ──────────────────────► killed at once
                  └── Cancel is sent ──┬── Finished or Failed of the attempt ──► killed: answered
                                       └── the grace is over, or a client ─────► killed: unanswered
                                           interrupts again

All other ends have no grace: a limit was reached, the worker is not needed, the service stops, or the disk
takes no records (docs/decisions/0021). The proof of a delayed kill says which of the two it was, and its
time counts from the interrupt. A worker that dies in its grace has the proof of any other death.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from supervisor.clock import monotonic
from supervisor.core.effects import KillWorker
from supervisor.core.proof import Cancelled
from supervisor.core.reasons import EndReason


class DelayedKills(Protocol):
    """Kills a worker; the proof has `cancel`, and counts its time from `since`."""

    def kill(self, incarnation: int, cancel: Cancelled = "", since: float | None = None) -> None: ...


class Send(Protocol):
    """Tells a worker to cancel its turn; returns whether that was possible."""

    def __call__(self, effect: KillWorker) -> bool: ...


class Cancellation:
    """`graces` are the seconds that agents have, by incarnation."""

    def __init__(self, processes: DelayedKills, send: Send, graces: Mapping[int, float]) -> None:
        self.graces = graces
        self._kill = processes.kill
        self._send = send
        self._loop = asyncio.get_running_loop()
        # Of workers that were told: when, and the timer of the kill.
        self._told: dict[int, tuple[float, asyncio.TimerHandle]] = {}

    def end(self, effect: KillWorker) -> None:
        """End a worker: after the grace of an interrupted turn, else now."""
        is_interrupt = effect.turn and effect.why.kind is EndReason.INTERRUPT
        if is_interrupt and self._send(effect):
            seconds = self.graces[effect.incarnation]
            timer = self._loop.call_later(seconds, self._over, effect.incarnation, "unanswered")
            self._told[effect.incarnation] = (monotonic(), timer)
        else:
            self._kill(effect.incarnation)

    def attempt_ended(self, incarnation: int) -> None:
        """A worker has sent the end of its attempt: if that is waited for, the grace is over."""
        if incarnation in self._told:
            self._over(incarnation, "answered")

    def end_grace(self, incarnation: int) -> None:
        """A person does not want to wait any longer; without effect on a worker that has no grace now."""
        if incarnation in self._told:
            self._over(incarnation, "unanswered")

    def _over(self, incarnation: int, result: Cancelled) -> None:
        since, timer = self._told.pop(incarnation)
        timer.cancel()
        self._kill(incarnation, result, since)
