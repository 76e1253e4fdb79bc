"""Late work with its start: everything that keeps turns from moving, for status requests."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from supervisor.clock import Clock
from supervisor.core.state import ModelState, State, WorkerState
from supervisor.event_sink import CommitHealth

Row = dict[str, Any]
# From this lag on, people notice the wait.
_LAG_SECONDS_MAX = 0.5
# A commit takes milliseconds: a second means that the disk is in trouble.
_COMMIT_SECONDS_MAX = 1.0
# An event is decided in the next iteration of the loop, unless a commit is under way.
_DECISION_SECONDS_MAX = 1.0
# A turn may wait for a seat while others run; a minute at the head of the queue is reported.
_QUEUE_SECONDS_MAX = 60.0
# A model may load for a while before it is reported.
_MODEL_SECONDS_MAX = 60.0
# Thousands of seats fail for the same few reasons; `hermesctl workers` lists them all.
_WORKERS_NAMED_MAX = 20


class Lag(Protocol):
    def worst(self) -> tuple[float, float]: ...


class Lateness:
    def __init__(
        self,
        *,
        state: State,
        clock: Clock,
        engine: CommitHealth,
        lag: Lag,
        services: Callable[[], Sequence[Row]],
    ) -> None:
        self._state = state
        self._clock = clock
        self._engine = engine
        self._lag = lag
        self._services = services

    def rows(self) -> list[Row]:
        """Return the oldest trouble first."""
        now = self._clock.now()
        found = sorted(self._found(now), key=lambda each: each[1])
        return [
            {"what": what, "since": since, "seconds": round(now - since, 1), "detail": detail}
            for what, since, detail in found
        ]

    def _found(self, now: float) -> Iterator[tuple[str, float, str]]:
        yield from self._of_the_engine(now)
        yield from self._of_turns(now)
        for name, strain in self._state.strains.items():
            yield name, strain.since, strain.error
        for seat in list(self._state.stuck)[:_WORKERS_NAMED_MAX]:
            worker = self._state.workers[seat]
            if worker.stuck_since is not None:
                held = f"session {worker.session} is held: " if worker.session is not None else ""
                yield (
                    f"worker {seat}",
                    worker.stuck_since,
                    f"{held}its processes are not proved gone: {worker.words}",
                )
        failed = [each for each in self._state.workers.values() if each.state is WorkerState.FAILED]
        for worker in failed[:_WORKERS_NAMED_MAX]:
            yield f"worker {worker.seat}", worker.since, f"it cannot start: {worker.words}"
        if more := failed[_WORKERS_NAMED_MAX:]:
            yield "workers", min(worker.since for worker in more), f"{len(more)} more cannot start"
        for row in self._services():
            if row["down_seconds"] is not None:
                yield (
                    f"service {row['service']}",
                    now - row["down_seconds"],
                    f"{row['state']}: {row['detail']}",
                )

    def _of_the_engine(self, now: float) -> Iterator[tuple[str, float, str]]:
        trouble, began = self._engine.trouble, self._engine.committing_since
        if trouble is not None:
            yield "journal", trouble.since, trouble.error
        elif began is not None and now - began > _COMMIT_SECONDS_MAX:
            yield "journal", began, "a commit has not come back"
        waiting = self._engine.waiting_since
        if began is None and waiting is not None and now - waiting > _DECISION_SECONDS_MAX:
            yield "engine", waiting, "it decides nothing, and events wait"
        at, seconds = self._lag.worst()
        if seconds > _LAG_SECONDS_MAX:
            yield "loop", at - seconds, f"it stood still for {seconds:.1f} s"

    def _of_turns(self, now: float) -> Iterator[tuple[str, float, str]]:
        state = self._state
        first, place = next(iter(state.queued.items()), ("", None))
        since = place.since if place else now
        if now - since > _QUEUE_SECONDS_MAX and not state.outages:
            yield "queue", since, f"session {first} waits for a seat, and {len(state.queued) - 1} behind it"
        model = state.model
        if model.state is ModelState.FAILED:
            yield "model", model.since, model.error
        elif model.state is ModelState.WAITING and now - model.since > _MODEL_SECONDS_MAX and state.queued:
            yield "model", model.since, "it is not ready"
        for outage in state.outages.values():
            yield "model", outage.since, f"unreachable: {outage.error}"
