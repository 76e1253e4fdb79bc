"""Values measured at the time of a request; with the counters they make up `hermesctl metrics`."""

import os
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from supervisor.clock import Clock
from supervisor.core.state import ModelState, State, TurnState, WorkerState
from supervisor.telemetry import outage_rows, prometheus
from supervisor.telemetry.metrics import Metrics
from supervisor.telemetry.prometheus import Family, Read


class Gauges:
    """Reads state, files and services; changes nothing."""

    def __init__(
        self,
        *,
        metrics: Metrics,
        state: State,
        clock: Clock,
        journal: Path,
        services: Callable[[], Sequence[Mapping[str, Any]]],
        stale_frames: Callable[[], int],
        links: Callable[[], int],
        subscriptions: Callable[[], int],
        trouble: Callable[[], object | None],
    ) -> None:
        """`stale_frames` are those that were dropped before a decision."""
        self._metrics = metrics
        self._state = state
        self._clock = clock
        self._journal = journal
        self._services = services
        self._stale_frames = stale_frames
        self._links = links
        self._subscriptions = subscriptions
        self._trouble = trouble
        self._families = self._make()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, its Prometheus lines, and its samples."""
        return [
            {"name": each.name, "text": prometheus.text([each]), "samples": prometheus.rows([each])}
            for each in (*self._metrics.families(), *self._families)
        ]

    def questions(self) -> dict[str, Any]:
        """Return the number of open questions, and for how long the oldest has been open."""
        asked = [
            session.turn.question.at
            for session in self._state.sessions.values()
            if session.turn is not None and session.turn.question is not None
        ]
        oldest = max(0.0, self._clock.now() - min(asked)) if asked else None
        return {"open": len(asked), "oldest_seconds": oldest}

    def totals(self) -> dict[str, int]:
        return self._metrics.totals() | {"restarts": self._state.epoch - 1}

    def _make(self) -> list[Family]:
        state = self._state
        return [
            Read(
                "hermes_starts_total",
                "counter",
                "Epoch of the supervisor on this journal: the number of its runs.",
                lambda: state.epoch,
            ),
            Read("hermes_turns_open", "gauge", "Open turns.", self._turns, "state"),
            *self._of_questions(),
            Read("hermes_messages_waiting", "gauge", "Messages no turn has taken yet.", self._waiting),
            Read("hermes_sessions_live", "gauge", "Sessions in memory.", lambda: len(state.sessions)),
            Read("hermes_seats", "gauge", "Seats by the state of their worker.", self._seats, "state"),
            Read(
                "hermes_seats_busy_max",
                "gauge",
                "Turns that may run at once.",
                lambda: state.policy.busy_seats,
            ),
            Read("hermes_model_ready", "gauge", "1 when turns can be given a model.", self._model_ready),
            Read(
                "hermes_model_unreachable_seconds",
                "gauge",
                "For how long a model endpoint has been away, 0 when none is.",
                self._unreachable_seconds,
            ),
            Read(
                "hermes_turns_waiting_for_model",
                "gauge",
                "Turns that wait for a model endpoint that is away.",
                lambda: outage_rows.waiting(state),
            ),
            Read(
                "hermes_service_ready", "gauge", "1 for each service that is ready.", self._ready, "service"
            ),
            Read(
                "hermes_service_restarts_total",
                "counter",
                "Restarts of each service.",
                self._restarts,
                "service",
            ),
            Read("hermes_journal_bytes", "gauge", "The journal and its log of writes.", self._journal_bytes),
            Read("hermes_journal_stuck", "gauge", "1 while the journal takes nothing.", self._stuck),
            Read("hermes_timers", "gauge", "Deadlines in the heap.", lambda: len(state.deadlines)),
            Read("hermes_links", "gauge", "Links to worker processes.", self._links),
            Read("hermes_subscriptions", "gauge", "Subscriptions of all clients.", self._subscriptions),
            Read("hermes_memory_bytes", "gauge", "Resident memory of the supervisor alone.", _memory_bytes),
            Read(
                "hermes_frames_stale_total",
                "counter",
                "Stale frames from workers: of a dead worker, of no known worker, or seen before.",
                lambda: self._metrics.stale_frames + self._stale_frames(),
            ),
        ]

    def _turns(self) -> dict[str, float]:
        tally = Tally(session.turn.state for session in self._state.sessions.values() if session.turn)
        return {
            shown.value: tally[shown] for shown in (TurnState.QUEUED, TurnState.RUNNING, TurnState.ASKING)
        }

    def _of_questions(self) -> list[Family]:
        return [
            Read(
                "hermes_questions_open",
                "gauge",
                "Questions without an answer.",
                lambda: float(self.questions()["open"]),
            ),
            Read(
                "hermes_questions_oldest_seconds",
                "gauge",
                "For how long the oldest open question has been open, 0 when none is.",
                lambda: float(self.questions()["oldest_seconds"] or 0.0),
            ),
        ]

    def _waiting(self) -> float:
        return sum(len(session.waiting) for session in self._state.sessions.values())

    def _seats(self) -> dict[str, float]:
        tally = Tally(worker.state for worker in self._state.workers.values())
        return {shown.value: tally[shown] for shown in WorkerState}

    def _model_ready(self) -> float:
        return float(self._state.model.state is ModelState.READY and not self._state.outages)

    def _unreachable_seconds(self) -> float:
        since = min((each.since for each in self._state.outages.values()), default=None)
        return 0.0 if since is None else self._clock.now() - since

    def _ready(self) -> dict[str, float]:
        return {row["service"]: float(row["state"] == "ready") for row in self._services()}

    def _restarts(self) -> dict[str, float]:
        return {row["service"]: row["restarts"] for row in self._services()}

    def _journal_bytes(self) -> float:
        files = (self._journal, self._journal.with_name(self._journal.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def _stuck(self) -> float:
        return float(self._trouble() is not None)


def _memory_bytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
