"""Sentences about things a person should check, shown by `hermesctl status`; none when all is well."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from supervisor.clock import Clock
from supervisor.config.derived import exposed_interpreters, visible_keys
from supervisor.config.endpoints import cautions
from supervisor.config.live import Live
from supervisor.core.state import State, WorkerState
from supervisor.event_sink import Trouble
from supervisor.stt.transcription import Transcription
from supervisor.telemetry import outage_rows

# Clocks are corrected by this much every day; that is not reported.
_CLOCK_SECONDS_MAX = 5.0


class Replaced(Protocol):
    """The fault of a folder that was replaced since the start."""

    @property
    def fault(self) -> str: ...
    @property
    def hint(self) -> str: ...


class Hints:
    """`models` is the folder of weights, `environment` that of workers, `agents` has their runtimes."""

    def __init__(
        self,
        *,
        state: State,
        clock: Clock,
        live: Live,
        environment: Mapping[str, str],
        models: Path,
        transcription: Transcription,
        trouble: Callable[[], Trouble | None],
        replaced: Callable[[], Iterable[Replaced]],
        contained: Callable[[], float],
        agents: Callable[[], Iterable[Mapping[str, Any]]],
    ) -> None:
        self._state = state
        self._clock = clock
        self._live = live
        self._environment = environment
        self._models = models
        self._transcription = transcription
        self._trouble = trouble
        self._replaced = replaced
        self._contained = contained
        self._agents = agents

    def __call__(self) -> list[str]:
        return [*self._of_folders(), *self._of_settings(), *self._of_the_service()]

    def _of_folders(self) -> Iterator[str]:
        for replaced in self._replaced():
            yield f"{replaced.fault}, and is not followed: {replaced.hint}"

    def _of_settings(self) -> Iterator[str]:
        settings = self._live.settings
        yield from cautions(settings)
        yield from visible_keys(settings, self._environment)
        yield from exposed_interpreters(settings)

    def _of_the_service(self) -> Iterator[str]:
        trouble, model = self._trouble(), self._state.model
        if trouble is not None:
            seconds = self._clock.now() - trouble.since
            yield f"nothing is accepted for {seconds:.0f} s now: {trouble.error}; {trouble.hint}"
        if self._clock.behind_seconds > _CLOCK_SECONDS_MAX:
            yield (
                f"the clock is {self._clock.behind_seconds:.0f} s behind the journal's newest event; "
                "times go on from there: set the clock right, then restart the service"
            )
        if model.error:
            yield f"the model is not available: {model.error}; {model.hint}"
        yield from outage_rows.sentences(self._state, self._clock.now())
        if voice := self._voice():
            yield voice
        if failed := sum(worker.state is WorkerState.FAILED for worker in self._state.workers.values()):
            yield f"{failed} workers cannot start; see `hermesctl workers` for the reasons"
        for row in self._agents():
            if row["own_runtime"] and row["state"] == "failed":
                yield f"the agent {row['agent']} cannot start: {row['fault']}; {row['hint']}"
        if contained := int(self._contained()):
            yield (
                f"{contained} internal errors since the start; each has cost one request, worker or turn: "
                "`hermesctl logs` shows where, please report them"
            )

    def _voice(self) -> str:
        """Only where a clip was sent or weights are installed."""
        fault = self._transcription.fault
        has_weights = (self._models / self._live.settings.stt.model).exists()
        if fault is None or not (self._transcription.was_used or has_weights):
            return ""
        return f"voice is not understood: {fault[0]}; {fault[1]}"
