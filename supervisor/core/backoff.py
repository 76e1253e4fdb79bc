"""Back-off: the delay before something is tried again, and the pause of a turn between two attempts.

A delay doubles with every failure up to a limit and is spread by up to a quarter either way, so that things
that failed together are not retried together. The core has no randomness: the spread is a hash of the subject
and its number of failures, the same whenever it is computed.

A turn that pauses is not in the queue (`State.resting`) and holds no seat. After its pause it goes before
the turns that have not begun. If the turn ends meanwhile, or its session gets another one, the pause ends.
"""

from zlib import crc32

from supervisor.core import line
from supervisor.core.decision import Draft
from supervisor.core.state import Session, Turn
from supervisor.core.timers import RetryDue

_FIRST_SECONDS = 1.0
_DOUBLINGS_MAX = 16
_SPREAD = 0.25
_HASHES = 2**32


def seconds(number: int, seed: str, limit: float) -> float:
    """Return the delay after failure number `number` of the subject named by `seed`."""
    doubled = min(limit, _FIRST_SECONDS * float(2 ** min(number - 1, _DOUBLINGS_MAX)))
    share = crc32(f"{seed} {number}".encode()) / _HASHES
    return doubled * (1 - _SPREAD + 2 * _SPREAD * share)


def again(draft: Draft, session: Session, turn: Turn) -> None:
    """Retry a lost turn: at once the first time, because a worker may die by chance, then with delays."""
    state = draft.state
    if turn.losses < 2:
        line.go_first(state, session.name, draft.now)
    else:
        delay = seconds(turn.losses - 1, turn.id, state.policy.rest_seconds_max)
        rest(draft, session, turn, draft.now + delay)


def rest(draft: Draft, session: Session, turn: Turn, until: float) -> None:
    """Open the turn's next attempt not before then."""
    line.rest(draft.state, session.name)
    draft.remind(until, RetryDue(session.name, turn.id, turn.attempts))


def rested(draft: Draft, due: RetryDue) -> None:
    state = draft.state
    session = state.sessions.get(due.session) if due.session in state.resting else None
    turn = session.turn if session else None
    if turn is not None and turn.id == due.turn and turn.attempts == due.attempts:
        go_on(draft, due.session)


def go_on(draft: Draft, session: str) -> None:
    """The pause of the session's turn is over: it goes before those that have not begun."""
    line.go_first(draft.state, session, draft.now)
    line.enlist(draft.state, session)
