"""Whether anything is taken in and anything begun: draining, and the limits at which senders are refused."""

from supervisor.core.effects import Carried, Denied
from supervisor.core.ledger import Ledger
from supervisor.core.model import Intake, State

_STOPPING = Denied("the service is stopping", "start it again with `hermesctl start`")


def drain_asked(ledger: Ledger) -> None:
    """Begin nothing new. Asked again, or while stopping, it changes nothing: it began when it began."""
    state = ledger.state
    if state.intake is Intake.STOPPING:
        ledger.answer = _STOPPING
        return
    if state.intake is Intake.OPEN:
        change(ledger, Intake.DRAINING)
    ledger.answer = Carried(note="draining: running turns finish, no new one starts")


def undrain_asked(ledger: Ledger) -> None:
    """Begin turns again, unless this life is ending: what it has left belongs to the next one."""
    state = ledger.state
    if state.intake is Intake.STOPPING:
        ledger.answer = _STOPPING
        return
    change(ledger, Intake.OPEN)
    ledger.answer = Carried(note="taking turns again")


def change(ledger: Ledger, intake: Intake) -> None:
    ledger.state.intake, ledger.state.intake_since = intake, ledger.now


def note(state: State) -> str:
    """What the sender of an accepted message should know about the wait ahead."""
    if state.intake is Intake.DRAINING:
        return "the service is draining: this waits until `hermesctl undrain` or the next start"
    if state.intake is Intake.STOPPING:
        return "the service is stopping: this waits until the next start"
    return ""
