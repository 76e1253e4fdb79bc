"""Admission: whether messages are accepted and turns begun; draining, and the limits for refusals.

Problem: the host must not promise work it cannot do. A message is refused before it is accepted, never after.

- `State.intake` is open, draining or stopping. Draining and stopping begin no turn; both still accept
  messages, which wait for `undrain` or for the next start. Stopping cannot be undone.
- A message is refused when its session or all sessions together have too many waiting messages and turns,
  or while the host is short of memory or under pressure (`State.strains`).
- A strain ends when its measured value is back within its limit. Meanwhile turns run one at a time
  (core/placing.py): this relieves the host, and the accepted work still gets done.
"""

from supervisor.core import line
from supervisor.core.decision import Draft
from supervisor.core.effects import Done, Refused
from supervisor.core.events import HostRead
from supervisor.core.state import Intake, Session, State, Strain

_MIB = 1024 * 1024
# A queue moves with every turn that ends. Pressure is a mean over ten seconds: an earlier retry is useless.
_FULL_RETRY_SECONDS = 5.0
_STRAIN_RETRY_SECONDS = 10.0
_STOPPING = Refused("the service is stopping", "start it again with `hermesctl start`", code="unavailable")


def drain_asked(draft: Draft) -> None:
    """Begin no new turns. A repeated request, or one while stopping, changes nothing."""
    state = draft.state
    if state.intake is Intake.STOPPING:
        draft.answer = _STOPPING
        return
    if state.intake is Intake.OPEN:
        change(draft, Intake.DRAINING)
    draft.answer = Done(note="draining: running turns finish, no new one starts")


def undrain_asked(draft: Draft) -> None:
    """Begin turns again, unless the service stops: what is left then belongs to the next epoch."""
    state = draft.state
    if state.intake is Intake.STOPPING:
        draft.answer = _STOPPING
        return
    change(draft, Intake.OPEN)
    draft.answer = Done(note="taking turns again")


def change(draft: Draft, intake: Intake) -> None:
    draft.state.intake, draft.state.intake_since = intake, draft.now


def note(state: State) -> str:
    """Return what the sender of an accepted message should know about the wait ahead."""
    if state.intake is Intake.DRAINING:
        return "the service is draining: this waits until `hermesctl undrain` or the next start"
    if state.intake is Intake.STOPPING:
        return "the service is stopping: this waits until the next start"
    # A seat that failed once may be filled in a moment.
    failed = [worker for worker in state.workers.values() if worker.is_empty and worker.starts_failed > 1]
    if failed and len(failed) == len(state.workers):
        return f"this waits for a worker, and none can be started: {failed[0].words}"
    return ""


def refusal(state: State, session: Session) -> Refused | None:
    """Why nothing more can be promised now: said before anything is accepted, never after."""
    policy, name = state.policy, session.name
    if len(session.waiting) >= policy.waiting_max:
        error = f"{policy.waiting_max} messages wait in session {name} already"
        hint = f"wait, or drop some with `hermesctl queue {name} clear`"
        return Refused(error, hint, _FULL_RETRY_SECONDS, code="full")
    if line.backlog(state) >= policy.queue_max:
        error = f"{policy.queue_max} messages and turns wait in all sessions together"
        hint = "wait, add seats with `hermesctl scale`, or raise [turns] queue_max in hermes.toml"
        return Refused(error, hint, _FULL_RETRY_SECONDS, code="full")
    for strain in state.strains.values():
        return Refused(strain.error, strain.hint, _STRAIN_RETRY_SECONDS, code="unavailable")
    return None


def host_read(draft: Draft, event: HostRead) -> None:
    """Update the strains of the host; one that continues keeps the time of its beginning."""
    before = draft.state.strains
    draft.state.strains = {
        name: Strain(error, hint, before[name].since if name in before else draft.now)
        for name, error, hint in _passed(draft.state, event)
    }


def _passed(state: State, event: HostRead) -> list[tuple[str, str, str]]:
    policy = state.policy
    found = []
    if event.memory_free_bytes is not None and event.memory_free_bytes < policy.memory_free_bytes_min:
        free, kept = event.memory_free_bytes // _MIB, policy.memory_free_bytes_min // _MIB
        error = f"the host is short of memory: {free} MiB are free, {kept} MiB must stay so"
        hint = "wait, end something, or lower [workers] memory_free_min in hermes.toml"
        found.append(("memory", error, hint))
    pressures = (
        ("memory", event.memory_pressure, policy.memory_pressure_max),
        ("io", event.io_pressure, policy.io_pressure_max),
        ("cpu", event.cpu_pressure, policy.cpu_pressure_max),
    )
    for name, percent, limit in pressures:
        if percent is not None and limit is not None and percent > limit:
            error = f"the host is under pressure: {percent:.0f}% of the time is lost waiting for {name}"
            hint = f"wait, or raise [workers] {name}_pressure_max (now {limit}) in hermes.toml"
            found.append((f"{name} pressure", error, hint))
    return found
