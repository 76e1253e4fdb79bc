"""Outages of model endpoints: turns wait for an endpoint that is away, and one at a time probes whether it
is back.

An endpoint is away when an attempt reports that it could not be reached, answers with a server error, or asks
for a pause (`Failed.outage`). The attempt is put back without counting against its turn, and no turn for that
endpoint is placed until its next probe is due. The probe is an ordinary attempt at the first turn in the
queue that can be placed; its worker sends one request and does not repeat it. The others wait.

An agent may have several endpoints, in the order of their use. An attempt that finds one away reports it
(`ModelAway`) and goes on with the next. Later attempts skip it, and one at a time probes it: so turns wait
only while all endpoints of their agent are away, for the one that went away last.

    state       left by                                           to
    up          a refused attempt                                 away
    away        the probe is due, and a turn can be placed        probing
    probing     the probe is refused                              away, the next probe later
    probing     the probe ends in another way, without an answer  away, the next probe at once
    probing     any other frame of the probe: it has an answer    up
    any         a reload, or the embedded model changes           up

An attempt probes at most one endpoint, the first that is due and has none before it that is up: an answer
then comes from the probe, or after the report that it is still away.

- Only the probe brings an endpoint up. An attempt that was answered before the outage may stream for minutes
  while its server refuses every new request.
- A refused turn pauses (core/backoff.py) until a little after the probe. So the next probe is another turn if
  one waits, and a session that the server cannot answer does not hold up the others: it alone backs off
  further with every refusal.
- A turn that waits holds no seat, and its deadline is suspended. It fails when it has waited for
  `[turns] outage_max` in a row. For a turn that was refused the wait begins with its first refusal and ends
  with an answer. For one that has not begun it begins with its opening, or with the outage if that is later.
- All of this is in memory only. The first attempts of a new epoch find out again.
"""

from collections.abc import Iterator

from supervisor.core import backoff, time_limits, turns
from supervisor.core.decision import Draft
from supervisor.core.events import Failed, Frame, ModelAway
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import Attempt, Outage, Session, State, Turn, session_of
from supervisor.core.timers import OutageDue

# A server may ask for more. It is asked again after this time in any case: it may have been fixed.
_ASKED_SECONDS_MAX = 300.0
# Delay of a refused turn after the probe: another one can be placed within this time.
_GRACE_SECONDS = 0.25
# Waiting turns are checked for the limit at most this often.
_LOOK_SECONDS_MIN = 1.0


def refused(draft: Draft, event: Failed) -> None:
    """The attempt could not reach its endpoint: the turn waits, or fails if it has waited too long."""
    found = turns.running(draft.state, event.who, event.turn, event.attempt)
    if found is None:
        return
    session, turn, attempt = found
    _declare(draft, turn, attempt, event)
    attempt.spend(event.input_tokens, event.output_tokens, event.cost)
    turns.give_back(draft, event.who)
    since = _refused_since(turn)
    if since is None:
        since, turn.refusals = draft.now, 0
    turn.away_since, turn.refusals = since, turn.refusals + 1
    limit = draft.state.policy.outage_seconds_max
    if draft.now >= since + limit:
        _give_up(draft, session, turn, event.error, event.hint)
        return
    if turn.is_held:
        turns.end_hold(draft, session, turn, event.error)
        return
    turns.leave(draft, session, turn, Reason(EndReason.MODEL_AWAY, event.error))
    time_limits.pause(draft, turn)
    until = draft.now + backoff.seconds(turn.refusals, turn.id, draft.state.policy.rest_seconds_max)
    endpoint = _holding(draft.state, turn.agent)
    if endpoint:
        _look_by(draft, endpoint, draft.state.outages[endpoint], since + limit)
        until = max(until, _next_probe_at(draft.state, turn.agent))
    backoff.rest(draft, session, turn, until + _GRACE_SECONDS)


def passed_over(draft: Draft, event: ModelAway) -> None:
    """The attempt could not reach one of its endpoints, and goes on with the next one."""
    found = turns.running(draft.state, event.who, event.turn, event.attempt)
    if found is not None:
        _, turn, attempt = found
        attempt.progress_at = draft.now
        _declare(draft, turn, attempt, event)


def _declare(draft: Draft, turn: Turn, attempt: Attempt, event: Failed | ModelAway) -> None:
    """Update the outage of the endpoint, unless other settings have replaced it meanwhile."""
    state, now = draft.state, draft.now
    endpoints = state.policy.endpoints_of(turn.agent)
    endpoint = event.endpoint or attempt.endpoint or next(iter(endpoints), "")
    if endpoint not in endpoints:
        return
    outage = state.outages.get(endpoint)
    if outage is None:
        limit_at = now + state.policy.outage_seconds_max
        outage = state.outages[endpoint] = Outage(now, event.error, event.hint, now, limit_at)
        draft.remind(limit_at, OutageDue(endpoint))
    elif outage.probe != (event.turn, event.attempt):
        # Begun before the outage was known: it adds nothing, but a server may ask for a longer pause.
        _probe_at(draft, endpoint, outage, max(outage.probe_at, now + _asked(event)))
        return
    outage.failures += 1
    outage.error, outage.hint, outage.probe = event.error, event.hint, None
    delay = backoff.seconds(outage.failures, turn.id, state.policy.rest_seconds_max)
    _probe_at(draft, endpoint, outage, now + max(delay, _asked(event)))


def _asked(event: Failed | ModelAway) -> float:
    return min(event.wait_seconds, _ASKED_SECONDS_MAX)


def _probe_at(draft: Draft, endpoint: str, outage: Outage, at: float) -> None:
    outage.probe_at = at
    draft.remind(at, OutageDue(endpoint))


def _look_by(draft: Draft, endpoint: str, outage: Outage, at: float) -> None:
    if at < outage.limit_at:
        outage.limit_at = at
        draft.remind(at, OutageDue(endpoint))


def may_begin(state: State, agent: str, now: float) -> bool:
    """Return whether a turn of this agent may be placed: an endpoint is up, or due to be probed."""
    if not state.outages:
        return True
    endpoints = state.policy.endpoints_of(agent)
    return not endpoints or any(_may_try(state, endpoint, now) for endpoint in endpoints)


def _may_try(state: State, endpoint: str, now: float) -> bool:
    outage = state.outages.get(endpoint)
    return outage is None or (now >= outage.probe_at and not _is_probing(state, outage))


def begun(draft: Draft, turn: Turn) -> tuple[tuple[str, ...], str]:
    """A turn is being placed. Return its endpoints that are away, and the one that its attempt probes."""
    state = draft.state
    if not state.outages:
        return (), ""
    endpoints = state.policy.endpoints_of(turn.agent)
    away = tuple(endpoint for endpoint in endpoints if endpoint in state.outages)
    first = next((endpoint for endpoint in endpoints if _may_try(state, endpoint, draft.now)), "")
    if first not in state.outages:
        return away, ""
    state.outages[first].probe = turn.id, turn.attempts + 1
    return away, first


def received(draft: Draft, event: Frame) -> None:
    """A frame of the probe shows that its endpoint has answered, unless it is a failure that may pass."""
    state = draft.state
    if not state.outages or (isinstance(event, Failed) and event.again):
        return
    found = turns.running(state, event.who, event.turn, event.attempt)
    for endpoint in state.policy.endpoints_of(found[1].agent) if found else ():
        outage = state.outages.get(endpoint)
        if outage is not None and outage.probe == (event.turn, event.attempt):
            del state.outages[endpoint]
            # A delta alone places no turn: this timer does.
            draft.remind(draft.now, OutageDue(endpoint))


def forget(draft: Draft) -> None:
    """The endpoints may have changed: every turn that waits for one may be placed."""
    state = draft.state
    state.outages.clear()
    for name in list(state.resting):
        turn = state.sessions[name].turn
        if turn is not None and _refused_since(turn) is not None:
            backoff.go_on(draft, name)


def look(draft: Draft, due: OutageDue) -> None:
    """Fail turns that have waited too long. Placing checks whether a probe is due."""
    state = draft.state
    outage = state.outages.get(due.endpoint)
    if outage is None or draft.now < outage.limit_at:
        return
    limit, next_at = state.policy.outage_seconds_max, draft.now + state.policy.outage_seconds_max
    for session, turn in list(waiting(state, due.endpoint)):
        at = _waits_since(turn, outage) + limit
        if at <= draft.now:
            _give_up(draft, session, turn, outage.error, outage.hint)
        else:
            next_at = min(next_at, at)
    outage.limit_at = max(next_at, draft.now + _LOOK_SECONDS_MIN)
    draft.remind(outage.limit_at, due)


def _waits_since(turn: Turn, outage: Outage) -> float:
    since = _refused_since(turn)
    return max(turn.opened_at, outage.since) if since is None else since


def _refused_since(turn: Turn) -> float | None:
    """Return the time of the first refusal in a row; None if there was none, or an answer since."""
    answered = turn.away_since is not None and turn.content_at > turn.away_since
    return None if answered else turn.away_since


def _give_up(draft: Draft, session: Session, turn: Turn, error: str, hint: str) -> None:
    limit = draft.state.policy.outage_seconds_max
    told = f"{error}; it waited {limit:.0f} s for the model server, which is [turns] outage_max"
    turns.fail(draft, session, turn, told, hint)


def waiting(state: State, endpoint: str) -> Iterator[tuple[Session, Turn]]:
    """Yield the turns that wait for an endpoint, queued ones first."""
    for name in (*state.queued, *state.resting):
        turn = state.sessions[name].turn
        if turn is not None and _holding(state, turn.agent) == endpoint:
            yield state.sessions[name], turn


def of_turn(state: State, turn: Turn) -> Outage | None:
    """Return the outage that a turn waits for, if it does."""
    waits = turn.attempt is None and turn.question is None
    return state.outages.get(_holding(state, turn.agent)) if waits else None


def note(state: State, session: str, now: float) -> str:
    """Return what the sender of a message should know when its model cannot be reached."""
    outage = state.outages.get(_holding(state, state.policy.agent_of(session)))
    if outage is None:
        return ""
    told = f"model unreachable for {now - outage.since:.0f} s: {outage.error}"
    return f"{told}; this waits, {next_try(state, outage, now)}"


def next_try(state: State, outage: Outage, now: float) -> str:
    if _is_probing(state, outage):
        return "it is being tried now"
    return f"next try in {max(0.0, outage.probe_at - now):.0f} s"


def _is_probing(state: State, outage: Outage) -> bool:
    """Return whether the probe runs. After any end of it another turn may be the probe."""
    session = state.sessions.get(session_of(outage.probe[0])) if outage.probe else None
    turn = session.turn if session else None
    attempt = turn.attempt if turn else None
    if turn is None or attempt is None or attempt.verdict is not None:
        return False
    return (turn.id, attempt.number) == outage.probe


def _holding(state: State, agent: str) -> str:
    """Return the endpoint for which turns of this agent wait: the last to go away; "" if one is up."""
    endpoints = state.policy.endpoints_of(agent) if state.outages else ()
    if not all(endpoint in state.outages for endpoint in endpoints):
        return ""
    return max(endpoints, key=lambda endpoint: state.outages[endpoint].since, default="")


def _next_probe_at(state: State, agent: str) -> float:
    """Return when the first of the agent's endpoints, which are all away, may be probed."""
    return min(state.outages[endpoint].probe_at for endpoint in state.policy.endpoints_of(agent))
