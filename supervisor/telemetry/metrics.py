"""Counters and histograms, computed from committed decisions; streamed deltas bypass this module."""

from collections.abc import Callable
from typing import Any

from supervisor.clock import Clock
from supervisor.containment import PLACES
from supervisor.core import effects, events, records
from supervisor.core.reasons import EndReason
from supervisor.core.state import TurnState
from supervisor.telemetry.prometheus import Counter, Family, Histogram

# From one millisecond, which a person cannot notice, to ten seconds.
_SHORT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0)
_BATCHES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
# Interrupted sessions whose next turn has not begun; the oldest entry is dropped for a newer one.
_AWAITED_MAX = 1000
# Clips and turns of this epoch that have not ended: one per session, and at most this many.
_BEGUN_MAX = 100_000

# What the end of a worker is counted as; a kind that is not here is counted as "other".
_DEATHS = {
    EndReason.INTERRUPT: "interrupt",
    EndReason.DEADLINE: "deadline",
    EndReason.RECYCLED: "recycled",
    EndReason.MADE_ROOM: "made_room",
    EndReason.RENEWED: "renewed",
    EndReason.RETIRED: "retired",
    EndReason.SILENT: "silent",
    EndReason.NEVER_READY: "never_ready",
    EndReason.NO_PULSE: "lifeless",
    EndReason.LOOP_STILL: "lifeless",
    EndReason.MEMORY: "memory",
    EndReason.NOT_CONNECTED: "unreachable",
    EndReason.NOT_READING: "unreachable",
    EndReason.NOT_RECALLED: "unreachable",
    EndReason.LINE_CLOSED: "unreachable",
    EndReason.BAD_FRAME: "unreachable",
    EndReason.BROKE_PROTOCOL: "unreachable",
    EndReason.TOO_MUCH_TEXT: "unreachable",
    EndReason.EXITED: "died",
    EndReason.NOT_STARTED: "died",
    EndReason.ZYGOTE_ENDED: "died",
}
_OTHER = "other"

_FRAMES = (
    events.TextStreamed,
    events.ToolStarted,
    events.ToolFinished,
    events.Steered,
    events.Asked,
    events.Finished,
    events.Failed,
)
# Events that say which model answered the attempt last.
_WITH_MODEL = (events.ToolStarted, events.Asked, events.Failed)


class _Begun(dict[str, float]):
    """Start times of unfinished things; the oldest entries are dropped when there are too many."""

    def begin(self, what: str, at: float) -> None:
        self[what] = at
        if len(self) > _BEGUN_MAX:
            del self[next(iter(self))]


class Metrics:
    """Counts one epoch of the service. `model`, that of [model], is read at the moment of counting."""

    def __init__(self, clock: Clock, model: Callable[[], str]) -> None:
        self._clock = clock
        self._model = model
        self._make_counters()
        self._make_histograms()
        self._turns = _Begun()
        self._clips = _Begun()
        self._stopped = _Begun()  # by turn: when it was stopped
        # By session: when its turn was stopped, and the message or turn that is next.
        self._awaited: dict[str, tuple[float, str]] = {}
        # By turn: the model that gave its last reply, or before that the one of [model].
        self._models: dict[str, str] = {}
        self._killed: dict[int, EndReason] = {}  # by incarnation: why
        self._of_record: dict[type[records.Record], Callable[[Any], None]] = {
            records.MessageAccepted: self._accepted,
            records.TranscriptReady: lambda record: self._heard(record, "words"),
            records.TranscriptFailed: lambda record: self._heard(record, "failed"),
            records.TurnOpened: self._opened,
            records.AttemptStopped: self._attempt_stopped,
            records.AttemptLost: lambda record: self.attempts_lost.add(),
            records.ToolCallFinished: lambda record: self.tools.add("ok" if record.ok else "failed"),
            records.QuestionAsked: lambda record: self.questions.add(),
            records.TurnDone: self._done,
            records.TurnFailed: self._failed,
            records.TurnInterrupted: self._interrupted,
        }
        self._of_effect: dict[type[effects.Effect], Callable[[Any], None]] = {
            effects.StartWorker: lambda effect: self.worker_starts.add(),
            effects.KillWorker: self._kill,
            effects.AssignTurn: self._assigned,
        }

    def _make_counters(self) -> None:
        self.messages = Counter(
            "hermes_messages_accepted_total", "Messages accepted.", ("kind",), ("text", "voice")
        )
        self.refused = Counter("hermes_messages_refused_total", "Messages refused.")
        self.turns = Counter(
            "hermes_turns_total", "Turns ended.", ("outcome",), ("done", "failed", "interrupted")
        )
        self.poison = Counter("hermes_turns_poison_total", "Turns closed because they cost too many workers.")
        self.attempts_lost = Counter("hermes_attempts_lost_total", "Attempts whose worker ended first.")
        self.interrupts = Counter("hermes_interrupts_total", "Running attempts killed by an interrupt.")
        self.survivors = Counter(
            "hermes_interrupt_survivors_total",
            "Interrupts after which the kernel had not ended every process.",
        )
        self.tools = Counter("hermes_tool_calls_total", "Tool calls ended.", ("outcome",), ("ok", "failed"))
        self.questions = Counter("hermes_questions_total", "Questions asked of a human.")
        self.worker_starts = Counter("hermes_worker_starts_total", "Workers started.")
        reasons = dict.fromkeys((*_DEATHS.values(), _OTHER))
        self.worker_deaths = Counter("hermes_worker_deaths_total", "Workers gone.", ("reason",), reasons)
        self.clips = Counter(
            "hermes_stt_clips_total", "Voice clips ended.", ("outcome",), ("words", "failed")
        )
        self.tokens = Counter(
            "hermes_tokens_total", "Tokens of turns that have ended.", ("model", "direction")
        )
        self.cost = Counter(
            "hermes_cost_total", "Cost of those tokens by the prices of their models.", ("model",)
        )
        self.contained = Counter(
            "hermes_contained_total",
            "Contained exceptions: each cost what was being served and nothing else.",
            ("place",),
            PLACES,
        )
        # Stale frames that reached a decision; others are dropped before.
        self.stale_frames = 0

    def _make_histograms(self) -> None:
        self.interrupt_proof = Histogram(
            "hermes_interrupt_proof_seconds",
            "From the decision to interrupt until every process was proved dead.",
            _SHORT_SECONDS,
        )
        self.interrupt_next = Histogram(
            "hermes_interrupt_next_seconds",
            "From the decision to interrupt until the interrupting message was with a worker.",
            _SHORT_SECONDS,
        )
        self.turn_seconds = Histogram(
            "hermes_turn_seconds", "From a turn's opening to its end.", _LONG_SECONDS
        )
        self.stt_seconds = Histogram(
            "hermes_stt_seconds",
            "From a clip's acceptance until its transcript was ready or had failed.",
            _LONG_SECONDS,
        )
        self.commits = Histogram("hermes_commit_seconds", "One commit of the journal.", _SHORT_SECONDS)
        self.batches = Histogram("hermes_commit_records", "Records in one commit.", _BATCHES)
        self.lag = Histogram(
            "hermes_loop_lag_seconds", "How late the supervisor's loop turned.", _SHORT_SECONDS
        )

    def families(self) -> list[Family]:
        return [found for found in vars(self).values() if isinstance(found, Counter | Histogram)]

    def totals(self) -> dict[str, int]:
        """Return the totals of this epoch that `status` shows."""
        return {
            "messages": int(self.messages.total()),
            "turns_done": int(self.turns.total("done")),
            "turns_failed": int(self.turns.total("failed")),
            "turns_interrupted": int(self.turns.total("interrupted")),
            "interrupts": int(self.interrupts.total()),
        }

    def decided(self, event: events.Event, decision: effects.Decision) -> None:
        if isinstance(event, _WITH_MODEL) and event.model and decision.records:
            self._models[event.turn] = event.model
        for record in decision.records:
            if count := self._of_record.get(type(record)):
                count(record)
        for effect in decision.effects:
            if count := self._of_effect.get(type(effect)):
                count(effect)
        if isinstance(event, events.WorkerDied):
            self._died(event)
        elif not decision.records and isinstance(event, _FRAMES):
            self.stale_frames += 1

    def committed(self, seconds: float, count: int) -> None:
        self.commits.observe(seconds)
        self.batches.observe(count)

    # --- records ----------------------------------------------------------------------------------------

    def _accepted(self, record: records.MessageAccepted) -> None:
        self.messages.add(record.kind)
        if record.clip:
            self._clips.begin(record.message, record.at)

    def _heard(self, record: records.TranscriptReady | records.TranscriptFailed, outcome: str) -> None:
        self.clips.add(outcome)
        began = self._clips.pop(record.message, None)
        if began is not None:
            self.stt_seconds.observe(record.at - began)

    def _opened(self, record: records.TurnOpened) -> None:
        self._turns.begin(record.turn, record.at)
        stopped_at, by = self._awaited.pop(record.session, (0.0, ""))
        if by in record.messages:
            self._await(record.session, stopped_at, record.turn)

    def _attempt_stopped(self, record: records.AttemptStopped) -> None:
        if record.verdict.state is TurnState.INTERRUPTED:
            self.interrupts.add()
            self._stopped.begin(record.turn, record.at)

    def _done(self, record: records.TurnDone) -> None:
        self._ended(record, "done")

    def _failed(self, record: records.TurnFailed) -> None:
        self._ended(record, "failed")
        if record.poison:
            self.poison.add()

    def _interrupted(self, record: records.TurnInterrupted) -> None:
        self._ended(record, "interrupted")
        stopped_at = self._stopped.pop(record.turn, None)
        if stopped_at is not None:
            self.interrupt_proof.observe(record.at - stopped_at)
            self._await(record.session, stopped_at, record.by)
            if not record.killed.all_dead:
                self.survivors.add()

    def _ended(
        self, record: records.TurnDone | records.TurnFailed | records.TurnInterrupted, outcome: str
    ) -> None:
        self.turns.add(outcome)
        began = self._turns.pop(record.turn, None)
        if began is not None:
            self.turn_seconds.observe(record.at - began)
        answered = self._models.pop(record.turn, None) or self._model()
        # The tokens of all attempts count under the model that gave the last reply.
        model = (record.model if isinstance(record, records.TurnDone) else "") or answered
        if record.input_tokens or record.output_tokens:
            self.tokens.add(model, "in", amount=record.input_tokens)
            self.tokens.add(model, "out", amount=record.output_tokens)
        if record.cost:
            self.cost.add(model, amount=record.cost / 1_000_000)

    def _await(self, session: str, stopped_at: float, what: str) -> None:
        self._awaited[session] = (stopped_at, what)
        if len(self._awaited) > _AWAITED_MAX:
            del self._awaited[next(iter(self._awaited))]

    # --- effects and deaths -----------------------------------------------------------------------------

    def _assigned(self, effect: effects.AssignTurn) -> None:
        self._models.setdefault(effect.turn, self._model())
        stopped_at, turn = self._awaited.get(effect.session, (0.0, ""))
        if turn == effect.turn:
            del self._awaited[effect.session]
            self.interrupt_next.observe(self._clock.now() - stopped_at)

    def _kill(self, effect: effects.KillWorker) -> None:
        self._killed[effect.incarnation] = effect.why.kind

    def _died(self, event: events.WorkerDied) -> None:
        """Why it was killed says more than how its process ended."""
        kind = self._killed.pop(event.incarnation, event.reason.kind)
        self.worker_deaths.add(_DEATHS.get(kind, _OTHER))
