"""A worker whose agent has a grace is killed once: when the attempt has ended, or when the grace is over."""

import asyncio
from collections.abc import Awaitable, Callable

from supervisor.clock import monotonic
from supervisor.core.effects import KillWorker
from supervisor.core.proof import Cancelled
from supervisor.core.reasons import EndReason, Reason
from supervisor.workers.cancellation import Cancellation
from tests.waiting import soon

INTERRUPT = Reason(EndReason.INTERRUPT)


class Scene:
    """Remembers who was told to cancel and who was killed. The worker 7 has a grace."""

    def __init__(self, grace: float, *, is_reachable: bool = True) -> None:
        self.killed: list[tuple[int, str]] = []
        self.waited = 0.0
        self.told: list[str] = []
        self.is_reachable = is_reachable
        self.cancellation = Cancellation(self, self._send, {7: grace})

    def kill(self, incarnation: int, cancel: Cancelled = "", since: float | None = None) -> None:
        self.killed.append((incarnation, cancel))
        self.waited = monotonic() - since if since is not None else 0.0

    def _send(self, effect: KillWorker) -> bool:
        self.told.append(effect.turn)
        return self.is_reachable

    def end(self, why: Reason = INTERRUPT, turn: str = "s/1") -> None:
        self.cancellation.end(KillWorker(0, 7, why, turn))


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())


def test_ends_that_no_person_asked_for_have_no_grace() -> None:
    async def scene() -> None:
        stage = Scene(60.0)
        stage.end(Reason(EndReason.SILENT, "5 m"))
        assert (stage.killed, stage.told) == ([(7, "")], [])

    play(scene)


def test_a_worker_that_cannot_be_told_is_killed_at_once() -> None:
    async def scene() -> None:
        stage = Scene(60.0, is_reachable=False)
        stage.end()
        assert stage.killed == [(7, "")]

    play(scene)


def test_the_end_of_the_attempt_is_the_end_of_the_grace() -> None:
    async def scene() -> None:
        stage = Scene(60.0)
        stage.end()
        assert (stage.killed, stage.told) == ([], ["s/1"])
        stage.cancellation.attempt_ended(8)
        assert stage.killed == []
        _, timer = stage.cancellation._told[7]
        stage.cancellation.attempt_ended(7)
        stage.cancellation.attempt_ended(7)
        assert timer.cancelled()
        assert stage.killed == [(7, "answered")]

    play(scene)


def test_an_interrupt_while_the_agent_cancels_ends_the_grace() -> None:
    async def scene() -> None:
        stage = Scene(60.0)
        stage.cancellation.end_grace(7)
        assert stage.killed == [], "it has not been interrupted"
        stage.end()
        stage.cancellation.end_grace(8)
        assert stage.killed == []
        stage.cancellation.end_grace(7)
        stage.cancellation.end_grace(7)
        stage.cancellation.attempt_ended(7)
        assert stage.killed == [(7, "unanswered")]

    play(scene)


def test_the_grace_is_over_whatever_the_worker_does() -> None:
    async def scene() -> None:
        stage = Scene(0.05)
        stage.end()
        await soon(lambda: stage.killed)
        stage.cancellation.attempt_ended(7)
        assert stage.killed == [(7, "unanswered")]
        assert stage.waited >= 0.05

    play(scene)
