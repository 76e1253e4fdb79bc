"""Numbers and sentences about the service, each from the facts it is made of."""

import os
from pathlib import Path
from typing import Any

import pytest

from supervisor.core import effects, events, records
from supervisor.core.policy import DEFAULT_AGENT, Policy
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import (
    BusyMode,
    Message,
    Model,
    ModelState,
    Outage,
    Place,
    Proof,
    Question,
    Session,
    State,
    Turn,
    TurnState,
    Verdict,
    Who,
    Worker,
    WorkerState,
)
from supervisor.core.timers import RetryDue
from supervisor.telemetry import metrics as limits
from supervisor.telemetry.gauges import Gauges
from supervisor.telemetry.metrics import Metrics
from supervisor.telemetry.prometheus import Counter, Histogram, Read, rows, text
from tests.supervisor.fixed_clock import NOW, FixedClock

PROOF = Proof(3, True, 5.0, "pidns")
WHO = Who(1, 0, 1)


# --- the text format


def test_the_text_of_counters_and_histograms_is_that_of_prometheus() -> None:
    counter = Counter("c_total", "Help.", ("kind",), ("a",))
    counter.add('b"\\\n', amount=2.5)
    plain = Counter("plain_total", "Plain.")
    plain.add()
    times = Histogram("t_seconds", "Times.", (0.1, 1.0))
    for value in (0.1, 0.5, 2.0):
        times.observe(value)
    gauge = Read("g", "gauge", "A gauge.", lambda: {"x": 1.0}, "state")
    assert text([counter, plain, times, gauge, Read("n", "gauge", "A number.", lambda: 7)]) == (
        "# HELP c_total Help.\n# TYPE c_total counter\n"
        'c_total{kind="a"} 0\nc_total{kind="b\\"\\\\\\n"} 2.5\n'
        "# HELP plain_total Plain.\n# TYPE plain_total counter\nplain_total 1\n"
        "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
        't_seconds_bucket{le="0.1"} 1\nt_seconds_bucket{le="1"} 2\nt_seconds_bucket{le="+Inf"} 3\n'
        "t_seconds_sum 2.6\nt_seconds_count 3\n"
        '# HELP g A gauge.\n# TYPE g gauge\ng{state="x"} 1\n'
        "# HELP n A number.\n# TYPE n gauge\nn 7\n"
    )
    assert rows([gauge]) == [{"name": "g", "labels": {"state": "x"}, "value": 1.0}]
    assert (counter.total(), counter.total("a"), counter.total("none")) == (2.5, 0.0, 0.0)


# --- what is counted of decisions


class Counting:
    """Metrics that are told of decisions at given times."""

    def __init__(self) -> None:
        self.model = "first"
        self.metrics = Metrics(FixedClock(), lambda: self.model)
        self._seq = 0

    def record(self, type_: type[records.Record], at: float, session: str = "s", **fields: Any) -> None:
        self._seq += 1
        made = type_(session=session, seq=self._seq, at=at, **fields)
        self.metrics.decided(events.Ticked(), effects.Decision((made,), (), None))

    def fail(self, event: events.Failed) -> None:
        """One decision: the event, and the record of its turn's end."""
        self._seq += 1
        told: dict[str, Any] = {"error": "", "hint": "", "input_tokens": event.input_tokens}
        made = records.TurnFailed(
            session="s", seq=self._seq, at=1.0, turn=event.turn, attempt=event.attempt, **told
        )
        self.metrics.decided(event, effects.Decision((made,), (), None))

    def effect(self, effect: effects.Effect) -> None:
        self.metrics.decided(events.Ticked(), effects.Decision((), (effect,), None))

    def values(self, name: str) -> dict[str, float]:
        family = next(each for each in self.metrics.families() if each.name == name)
        return {
            ",".join([sample.name.removeprefix(name), *(value for _, value in sample.labels)]): sample.value
            for sample in family.samples()
            if sample.value
        }


def _assign(turn: str) -> effects.AssignTurn:
    return effects.AssignTurn(Who(1, 0, 1), "s", turn, 1, "default", ())


def test_a_turn_is_counted_with_its_time_its_tokens_and_their_cost_under_its_model() -> None:
    counting = Counting()
    counting.record(records.TurnOpened, 10.0, turn="s/1", number=1, messages=("m",))
    counting.effect(_assign("s/1"))
    counting.model = "second"
    usage: dict[str, Any] = {"input_tokens": 1_000_000, "output_tokens": 2_000_000, "cost": 13_000_000}
    counting.record(records.TurnDone, 12.0, turn="s/1", attempt=1, text="", **usage)
    assert counting.values("hermes_turns_total") == {",done": 1.0}
    assert counting.values("hermes_turn_seconds")["_sum"] == 2.0
    assert counting.values("hermes_tokens_total") == {",first,in": 1e6, ",first,out": 2e6}
    assert counting.values("hermes_cost_total") == {",first": 13.0}
    # One that began in an earlier life has no known time, and one without tokens costs nothing.
    failed: dict[str, Any] = {"turn": "s/0", "attempt": 1, "error": "", "hint": ""}
    counting.record(records.TurnFailed, 13.0, **failed, poison=True)
    counting.record(records.TurnFailed, 13.0, **failed)
    assert counting.values("hermes_turns_total") == {",done": 1.0, ",failed": 2.0}
    assert counting.values("hermes_turns_poison_total") == {"": 1.0}
    assert counting.values("hermes_turn_seconds")["_count"] == 1.0
    assert len(counting.values("hermes_tokens_total")) == 2
    assert counting.metrics.totals()["turns_failed"] == 2


def test_tokens_and_cost_count_under_the_model_that_answered() -> None:
    done: dict[str, Any] = {"turn": "s/1", "attempt": 1, "text": "", "input_tokens": 4, "output_tokens": 0}
    counting = Counting()
    counting.effect(_assign("s/1"))
    counting.record(records.TurnDone, 1.0, **done, cost=2_500_000, model="substitute")
    assert counting.values("hermes_cost_total") == {",substitute": 2.5}
    assert counting.values("hermes_tokens_total") == {",substitute,in": 4.0}
    # Without prices there is no cost; without a name it is the model of the settings.
    counting.record(records.TurnDone, 1.0, **done)
    assert counting.values("hermes_cost_total") == {",substitute": 2.5}
    assert counting.values("hermes_tokens_total") == {",substitute,in": 4.0, ",first,in": 4.0}


def test_tokens_of_turns_without_an_answer_count_under_the_model_that_was_asked_last() -> None:
    who, counting = Who(1, 0, 1), Counting()
    counting.effect(_assign("s/1"))
    counting.fail(events.Failed(who, "s/1", 1, "", "", False, input_tokens=4, model="substitute"))
    assert counting.values("hermes_tokens_total") == {",substitute,in": 4.0}
    # The model of an attempt that was lost holds for the turn, until another one answers.
    counting.effect(_assign("s/2"))
    started = events.ToolStarted(who, "s/2", 1, "c", "shell", "", "{}", "unsafe", 0, model="substitute")
    begun = records.ToolCallStarted(
        session="s", seq=9, at=1.0, turn="s/2", attempt=1, call="c", name="shell", summary="", arguments="{}",
        repeat="unsafe", offset=0,
    )  # fmt: skip
    counting.metrics.decided(started, effects.Decision((begun,), (), None))
    counting.effect(_assign("s/2"))
    interrupted: dict[str, Any] = {"turn": "s/2", "attempt": 2, "by": "m", "partial": "", "killed": PROOF}
    counting.record(records.TurnInterrupted, 2.0, **interrupted, input_tokens=5)
    assert counting.values("hermes_tokens_total") == {",substitute,in": 9.0}
    # A stale event decides nothing, and names no model.
    counting.effect(_assign("s/3"))
    counting.metrics.decided(
        events.Failed(who, "s/3", 1, "", "", False, model="late"), effects.Decision((), (), None)
    )
    counting.record(records.TurnInterrupted, 2.0, **interrupted | {"turn": "s/3"}, input_tokens=1)
    assert counting.values("hermes_tokens_total") == {",substitute,in": 9.0, ",first,in": 1.0}


def _interrupt(counting: Counting, proof: Proof = PROOF, by: str = "m_2") -> None:
    verdict = Verdict(TurnState.INTERRUPTED, by)
    counting.record(records.AttemptStopped, NOW - 9.0, turn="s/1", attempt=1, verdict=verdict)
    counting.record(
        records.TurnInterrupted, NOW - 8.0, turn="s/1", attempt=1, by=by, partial="", killed=proof
    )


def test_an_interrupt_is_measured_to_its_proof_and_to_the_next_turn() -> None:
    counting = Counting()
    _interrupt(counting)
    assert counting.values("hermes_interrupts_total") == {"": 1.0}
    assert counting.values("hermes_interrupt_proof_seconds")["_sum"] == 1.0
    assert counting.values("hermes_interrupt_survivors_total") == {}
    counting.record(records.TurnOpened, NOW - 7.0, turn="s/2", number=2, messages=("m_2",))
    # Turns of other sessions, and another one of this session, are not what was waited for.
    counting.effect(effects.AssignTurn(Who(1, 0, 1), "other", "s/2", 1, "default", ()))
    counting.effect(_assign("s/9"))
    assert counting.values("hermes_interrupt_next_seconds") == {}
    counting.effect(_assign("s/2"))
    assert counting.values("hermes_interrupt_next_seconds")["_sum"] == 9.0
    counting.effect(_assign("s/2"))
    assert counting.values("hermes_interrupt_next_seconds")["_count"] == 1.0
    assert counting.metrics._awaited == {}


def test_an_interrupt_without_a_message_waits_for_no_turn_and_survivors_are_counted() -> None:
    counting = Counting()
    _interrupt(counting, Proof(3, False, 5.0, "sweep"), by="telegram")
    assert counting.values("hermes_interrupt_survivors_total") == {"": 1.0}
    counting.record(records.TurnOpened, NOW - 7.0, turn="s/2", number=2, messages=("m_2",))
    counting.effect(_assign("s/2"))
    assert counting.values("hermes_interrupt_next_seconds") == {}
    # A stop for a failure is no interrupt.
    failed = Verdict(TurnState.FAILED, error="late", hint="")
    counting.record(records.AttemptStopped, NOW, turn="s/2", attempt=1, verdict=failed)
    assert counting.values("hermes_interrupts_total") == {"": 1.0}


def test_a_clip_is_measured_from_its_acceptance_and_a_text_is_not() -> None:
    counting = Counting()
    accepted = {"key": "", "text": "", "busy": "queue"}
    counting.record(records.MessageAccepted, 10.0, message="m_1", kind="voice", clip="c", **accepted)
    counting.record(records.MessageAccepted, 10.0, message="m_2", kind="text", **accepted)
    counting.record(records.TranscriptReady, 13.0, message="m_1", text="words")
    counting.record(records.TranscriptFailed, 14.0, message="m_2", reason="", hint="")
    assert counting.values("hermes_messages_accepted_total") == {",text": 1.0, ",voice": 1.0}
    assert counting.values("hermes_stt_clips_total") == {",words": 1.0, ",failed": 1.0}
    found = counting.values("hermes_stt_seconds")
    assert (found["_sum"], found["_count"]) == (3.0, 1.0)
    assert counting.metrics.totals()["messages"] == 2


def test_lost_attempts_tool_calls_and_questions_are_counted() -> None:
    counting = Counting()
    told: dict[str, Any] = {"turn": "s/1", "attempt": 1}
    counting.record(records.AttemptLost, 1.0, **told, reason=Reason(EndReason.EXITED), losses=1)
    for ok in (True, False, False):
        counting.record(records.ToolCallFinished, 1.0, **told, call="c", name="shell", ok=ok, ms=1, result="")
    counting.effect(effects.StartWorker(0, 1, "default"))
    assert counting.values("hermes_attempts_lost_total") == {"": 1.0}
    assert counting.values("hermes_tool_calls_total") == {",ok": 1.0, ",failed": 2.0}
    assert counting.values("hermes_worker_starts_total") == {"": 1.0}


def test_what_never_ends_is_forgotten_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_BEGUN_MAX", 2)
    monkeypatch.setattr(limits, "_AWAITED_MAX", 2)
    counting = Counting()
    for number in range(4):
        counting.metrics._await(f"s{number}", 0.0, "m")
        counting.record(records.TurnOpened, 1.0, f"s{number}", turn=f"s{number}/1", number=1, messages=())
    assert list(counting.metrics._turns) == ["s2/1", "s3/1"]
    counting.metrics._awaited.clear()
    for number in range(4):
        counting.metrics._await(f"s{number}", 0.0, "m")
    assert list(counting.metrics._awaited) == ["s2", "s3"]


def test_a_frame_without_effect_is_stale_and_another_event_is_not() -> None:
    counting = Counting()
    nothing = effects.Decision((), (), None)
    counting.metrics.decided(events.Ticked(), nothing)
    assert counting.metrics.stale_frames == 0
    stale = events.Steered(Who(1, 0, 1), "s/1", 1, "m")
    counting.metrics.decided(stale, nothing)
    assert counting.metrics.stale_frames == 1
    counting.effect(effects.KillWorker(0, 7, Reason(EndReason.INTERRUPT)))
    counting.metrics.decided(events.WorkerDied(0, 7, PROOF, Reason(EndReason.KILLED)), nothing)
    assert counting.values("hermes_worker_deaths_total") == {",interrupt": 1.0}
    assert counting.metrics._killed == {}
    counting.metrics.committed(0.5, 3)
    assert counting.values("hermes_commit_seconds")["_sum"] == 0.5
    assert counting.values("hermes_commit_records")["_sum"] == 3.0


def test_nothing_is_remembered_of_what_has_ended() -> None:
    counting = Counting()
    counting.record(records.TurnOpened, 1.0, turn="s/1", number=1, messages=("m_1",))
    counting.effect(_assign("s/1"))
    _interrupt(counting)
    clip: dict[str, Any] = {"key": "", "text": "", "busy": "queue", "kind": "voice", "clip": "c"}
    counting.record(records.MessageAccepted, 10.0, message="m_3", **clip)
    counting.record(records.TranscriptReady, 13.0, message="m_3", text="words")
    metrics = counting.metrics
    assert (metrics._turns, metrics._stopped, metrics._models, metrics._clips) == ({}, {}, {}, {})


# --- what is measured on request


def test_gauges_are_read_from_state_files_and_services(tmp_path: Path) -> None:
    state = State(Policy(), epoch=4)
    journal = tmp_path / "journal"
    journal.write_bytes(b"12345")
    trouble: list[object] = []
    services = [{"service": "stt", "state": "ready", "restarts": 2}]
    services += [{"service": "model", "state": "failed", "restarts": 0}]
    gauges = Gauges(
        metrics=Counting().metrics,
        state=state,
        clock=FixedClock(),
        journal=journal,
        services=lambda: services,
        stale_frames=lambda: 5,
        links=lambda: 3,
        subscriptions=lambda: 2,
        trouble=lambda: trouble[0] if trouble else None,
    )

    def read() -> dict[str, float]:
        return {
            ",".join([sample["name"].removeprefix("hermes_"), *sample["labels"].values()]): sample["value"]
            for row in gauges.rows()
            for sample in row["samples"]
        }

    state.workers = {0: Worker(0, state=WorkerState.IDLE), 1: Worker(1)}
    found = read()
    assert (found["starts_total"], found["frames_stale_total"], found["journal_bytes"]) == (4, 5, 5)
    assert (found["links"], found["subscriptions"]) == (3, 2)
    assert (found["service_ready,stt"], found["service_ready,model"]) == (1, 0)
    assert (found["service_restarts_total,stt"], found["journal_stuck"]) == (2, 0)
    assert (found["seats,idle"], found["seats,resting"], found["seats,busy"]) == (1, 1, 0)
    assert (found["model_ready"], found["model_unreachable_seconds"]) == (0, 0)
    mapped, resident = map(int, Path("/proc/self/statm").read_text().split()[:2])
    assert found["memory_bytes"] < (mapped + resident) / 2 * os.sysconf("SC_PAGE_SIZE")
    assert found["memory_bytes"] > 1_000_000
    (tmp_path / "journal-wal").write_bytes(b"123")
    trouble.append("full")
    state.model = Model(ModelState.READY)
    found = read()
    assert (found["journal_bytes"], found["journal_stuck"], found["model_ready"]) == (8, 1, 1)
    for since in (NOW - 5, NOW - 7, NOW - 2):
        state.outages[str(since)] = Outage(since, "gone", "wait", NOW, NOW)
    found = read()
    assert (found["model_ready"], found["model_unreachable_seconds"]) == (0, 7)
    assert gauges.totals()["restarts"] == 3
    assert gauges.questions() == {"open": 0, "oldest_seconds": None}
    for number, at in enumerate((NOW - 5, NOW - 9, NOW - 2)):
        asked = Question(f"q{number}", "clarify", "which one?", (), at=at)
        turn = Turn(f"s{number}/1", f"s{number}", (), at, question=asked)
        state.sessions[turn.session] = Session(turn.session, turn=turn)
    assert gauges.questions() == {"open": 3, "oldest_seconds": 9.0}


def test_an_interrupt_is_over_for_the_session_whose_next_turn_is_another_one() -> None:
    counting = Counting()
    _interrupt(counting)
    counting.record(records.TurnOpened, NOW - 7.0, turn="s/2", number=2, messages=("m_9",))
    assert counting.metrics._awaited == {}


def test_gauges_count_turns_messages_and_deadlines() -> None:
    state = State(Policy(busy_seats=6, spares=1))
    metrics = Counting().metrics
    metrics.stale_frames = 2
    gauges = Gauges(
        metrics=metrics,
        state=state,
        clock=FixedClock(),
        journal=Path("/nowhere/journal"),
        services=list,
        stale_frames=lambda: 5,
        links=lambda: 0,
        subscriptions=lambda: 0,
        trouble=lambda: None,
    )
    for name in ("queued", "resting", "asks"):
        asked = Question("q", "clarify", "which one?", (), at=NOW) if name == "asks" else None
        turn = Turn(f"{name}/1", name, (), NOW, question=asked)
        state.sessions[name] = Session(name, turn=turn)
    waiting = state.sessions["queued"].waiting
    waiting.extend(Message(f"m{number}", "x", BusyMode.QUEUE, NOW) for number in range(4))
    state.queued["queued"], state.resting["resting"] = Place(0, NOW), None
    (endpoint,) = state.policy.endpoints_of(DEFAULT_AGENT)
    state.outages[endpoint] = Outage(NOW, "gone", "wait", NOW, NOW)
    state.deadlines.extend((NOW, number, RetryDue("s", "s/1", 1)) for number in range(5))
    found = {
        ",".join([sample["name"].removeprefix("hermes_"), *sample["labels"].values()]): sample["value"]
        for row in gauges.rows()
        for sample in row["samples"]
    }
    assert (found["turns_open,queued"], found["turns_open,running"], found["turns_open,asking"]) == (2, 0, 1)
    assert (found["messages_waiting"], found["sessions_live"], found["timers"]) == (4, 3, 5)
    assert (found["seats_busy_max"], found["turns_waiting_for_model"]) == (6, 2)
    assert (found["frames_stale_total"], found["journal_bytes"]) == (7, 0)
