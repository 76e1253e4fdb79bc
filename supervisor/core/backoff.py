"""Back-off: how long until something is tried again, and the rest of a turn between two of its attempts.

A delay doubles with every failure up to a limit and is spread by up to a quarter either way, so that what
failed together is not tried together. The rules have no randomness: the spread is a hash of what is tried and
how often it has failed, the same whenever it is computed.

A turn that rests is out of the line (`State.resting`) and holds no seat. When its rest is over it goes before
the turns that have not begun. Whatever ends the turn meanwhile, or gives its session another one, ends the
rest.
"""

from zlib import crc32

from supervisor.core import line
from supervisor.core.decision import Ledger
from supervisor.core.state import Session, Turn
from supervisor.core.timers import RetryDue

_FIRST_SECONDS = 1.0
_DOUBLINGS_MAX = 16
_SPREAD = 0.25
_HASHES = 2**32


def seconds(number: int, seed: str, limit: float) -> float:
    """The delay after failure number `number` of whatever `seed` names."""
    doubled = min(limit, _FIRST_SECONDS * float(2 ** min(number - 1, _DOUBLINGS_MAX)))
    share = crc32(f"{seed} {number}".encode()) / _HASHES
    return doubled * (1 - _SPREAD + 2 * _SPREAD * share)


def again(ledger: Ledger, session: Session, turn: Turn) -> None:
    """A lost turn is tried again: at once the first time, for a worker may die by chance, then spaced."""
    state = ledger.state
    if turn.losses < 2:
        line.go_first(state, session.name, ledger.now)
    else:
        delay = seconds(turn.losses - 1, turn.id, state.policy.rest_seconds_max)
        rest(ledger, session, turn, ledger.now + delay)


def rest(ledger: Ledger, session: Session, turn: Turn, until: float) -> None:
    """The turn's next attempt is not opened before then."""
    line.rest(ledger.state, session.name)
    ledger.remind(until, RetryDue(session.name, turn.id, turn.attempts))


def rested(ledger: Ledger, due: RetryDue) -> None:
    state = ledger.state
    session = state.sessions.get(due.session) if due.session in state.resting else None
    turn = session.turn if session else None
    if turn is not None and turn.id == due.turn and turn.attempts == due.attempts:
        go_on(ledger, due.session)


def go_on(ledger: Ledger, session: str) -> None:
    """The session's turn has rested: it goes before those that have not begun."""
    line.go_first(ledger.state, session, ledger.now)
    line.enlist(ledger.state, session)
