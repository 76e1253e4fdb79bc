"""What must hold of every effect, when it is decided and when it is performed."""

from supervisor.core.effects import (
    AnswerTurn,
    AssignTurn,
    BindWorker,
    Effect,
    EndGrace,
    ForgetClip,
    KillWorker,
    StartWorker,
    SteerTurn,
    Transcribe,
    WarmRuntime,
)
from supervisor.core.state import State, Who
from tests.invariants import Witness
from tests.pretend_processes import Process


def check_clip(
    effect: Transcribe | ForgetClip, witness: Witness, stt: set[str], late: set[Who | str]
) -> None:
    """A clip is given once in a life to whoever transcribes it, and taken back only from there.

    Within the batch it may have been dropped, or its words may have come.
    """
    if isinstance(effect, ForgetClip):
        assert effect.message in stt or effect.message in late, f"{effect} takes back what nobody has"
        return
    is_waited_for = effect.message in witness.transcribing or effect.message in late
    assert is_waited_for, f"{effect} though nobody waits for its words"
    assert effect.message not in stt, f"{effect} for the second time"
    assert effect.session == witness.accepted[effect.message]


def check_named(state: State, effect: Effect) -> None:
    """When it is decided, an effect names the current process of its seat."""
    if not isinstance(effect, Transcribe | ForgetClip | WarmRuntime):
        who = named(state, effect)
        assert who.epoch == state.epoch, f"{effect} names another life"
        assert state.workers[who.seat].incarnation == who.incarnation, f"{effect} names another process"


def check_effect(
    state: State, effect: Effect, witness: Witness, processes: dict[Who, Process], late: set[Who | str]
) -> None:
    """When it is performed, an effect names a process that can do what is asked.

    Unless that was killed, died or ended its turn within the batch: then the effect comes too late.
    """
    who = named(state, effect)
    process = processes.get(who)
    if isinstance(effect, StartWorker):
        assert process is None, f"{effect} uses an incarnation again"
        others = [each for each in processes.values() if each.who.seat == who.seat and not each.is_dead]
        assert not others, f"{effect} while {others} live in the seat"
        return
    assert process is not None, f"{effect} names a process that never was"
    assert not process.is_dead or who in late, f"{effect} names a dead process"
    match effect:
        case KillWorker():
            assert not process.is_killed, f"{effect} kills what is being killed"
        case EndGrace():
            assert process.is_killed, f"{effect} of {process}, which was not interrupted"
        case BindWorker():
            assert process.session is None, f"{effect} to {process}"
            assert process.is_heard or who in late, f"{effect} to {process}"
        case AssignTurn():
            assert process.session == effect.session, f"{effect} to {process}"
            assert process.agent == effect.agent == witness.agents[effect.turn], f"{effect} to {process}"
            assert (process.is_ready and process.is_heard) or who in late, f"{effect} to {process}"
            assert effect.turn not in witness.ended or who in late, f"{effect} of a closed turn"
        case SteerTurn() if who not in late:
            job = process.job
            assert job is not None, f"{effect} to {process}"
            assert (effect.turn, effect.attempt) == (job.turn, job.attempt), f"{effect} to {process}"
        case AnswerTurn() if who not in late:
            assert process.job is not None, f"{effect} to {process}"
            job, is_waited_for = process.job, effect.hold in process.holds
            assert (effect.turn, effect.attempt) == (job.turn, job.attempt), f"{effect} to {process}"
            assert is_waited_for, f"{effect} to {process}, which does not hold for it"


def named(state: State, effect: Effect) -> Who:
    assert not isinstance(effect, Transcribe | ForgetClip | WarmRuntime)
    if isinstance(effect, StartWorker | KillWorker):
        return Who(state.epoch, effect.seat, effect.incarnation)
    return effect.who
