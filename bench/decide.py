"""What one decision costs with 10, 1,000 and 10,000 live sessions: the number of sessions must not matter."""

import time

from bench.goals import Outcome, rounds_asked, tell
from supervisor.core.decide import decide
from supervisor.core.effects import AssignTurn, KillWorker, StartWorker
from supervisor.core.events import (
    Event,
    Finished,
    ModelChanged,
    Recovered,
    TextArrived,
    TextStreamed,
    WorkerDied,
    WorkerReady,
    WorkerStarted,
)
from supervisor.core.policy import Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import BusyMode, ModelState, Proof, State, Who

SIZES = (10, 1_000, 10_000)
TITLE = f"decide, beside the same with {SIZES[0]} live sessions"
ROUNDS = 200
# Turns in one go at one size before the next size has its go: short, so that all see the same machine.
TURNS_A_ROUND = 20
ROUNDS_TO_WARM_UP = 10
GOAL = 1.5
# Nobody sends signs of life here, nobody is replaced, and everything is accepted.
_PROOF = Proof(processes=1, all_dead=True, ms=1.0, how="pretend")
_POLICY = Policy(busy_seats=2, spares=1, turns_per_worker_max=10**9, pulse_seconds=1e9, queue_max=10**9)


class House:
    """Every session has a turn and a message behind it; two turns run at a time, each in its own process."""

    def __init__(self, sessions: int) -> None:
        self._now = 1_700_000_000.0
        self._messages = 0
        self._running: dict[Who, AssignTurn] = {}
        self._state = State(_POLICY, epoch=1)
        self.spent_us: list[float] = []
        self._happens(Recovered())
        self._happens(ModelChanged(ModelState.READY))
        for number in range(sessions):
            for _ in range(2):
                self._says(f"session-{number}")
        self.spent_us.clear()

    def answer_one(self) -> None:
        """The mix: words, an answer, a worker that makes room for the next, and a message to the session."""
        who, job = next(iter(self._running.items()))
        self._happens(TextStreamed(who, job.turn, job.attempt, "words "))
        del self._running[who]
        self._happens(Finished(who, job.turn, job.attempt, "answer", 7, 3))
        self._happens(WorkerReady(who))
        self._says(job.session)

    def _says(self, session: str) -> None:
        self._messages += 1
        message = f"m{self._messages}"
        self._happens(TextArrived(session, message, message, "hello", BusyMode.QUEUE))

    def _happens(self, event: Event) -> None:
        self._now += 0.001
        begin = time.perf_counter_ns()
        decision = decide(self._state, event, self._now)
        self.spent_us.append((time.perf_counter_ns() - begin) / 1000)
        for effect in decision.effects:
            if isinstance(effect, AssignTurn):
                self._running[effect.who] = effect
            elif isinstance(effect, StartWorker):
                self._happens(WorkerStarted(effect.seat, effect.incarnation, pid=1))
                self._happens(WorkerReady(Who(self._state.epoch, effect.seat, effect.incarnation)))
            elif isinstance(effect, KillWorker):
                self._happens(WorkerDied(effect.seat, effect.incarnation, _PROOF, Reason(EndReason.KILLED)))


def measure(rounds: int) -> list[Outcome]:
    houses = {size: House(size) for size in SIZES}
    for number in range(ROUNDS_TO_WARM_UP + rounds):
        for house in houses.values():
            if number == ROUNDS_TO_WARM_UP:
                house.spent_us.clear()
            for _ in range(TURNS_A_ROUND):
                house.answer_one()
    few = houses[SIZES[0]].spent_us
    return [
        Outcome(f"{size:,} live sessions", house.spent_us, few, "µs an event", "at most", GOAL)
        for size, house in houses.items()
    ]


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
