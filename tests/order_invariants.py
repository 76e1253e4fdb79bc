"""What must hold of every decision: the order of the queue, the count of losses, the number of timers."""

from collections import Counter
from dataclasses import dataclass, field

from supervisor.core.effects import BindWorker, Decision
from supervisor.core.obsolete_timers import KEPT_MIN
from supervisor.core.reasons import EndReason
from supervisor.core.records import AttemptLost, AttemptOpened, TurnFailed
from supervisor.core.state import ModelState, State

# An attempt that ended for these was put back, and counts as no loss of its turn.
_NO_LOSS = (EndReason.SERVICE_STOPPED, EndReason.MODEL_AWAY, EndReason.GIVEN_BACK)
# Turns of other sessions that begin while one that was queued before them waits. A session that has a worker
# may go first as long as that of the waiting one starts; the simulated days have three sessions.
_OVERTAKEN_MAX = 6


@dataclass
class Queue:
    """The queue as it was before a decision, and how often each session in it was overtaken so far."""

    overtaken: Counter[str] = field(default_factory=Counter)
    _before: list[tuple[str, str, bool]] = field(default_factory=list)
    _resting: set[str] = field(default_factory=set)

    def look(self, state: State) -> None:
        self._resting = set(state.resting)
        self._before = [(name, _agent(state, name), name in state.seat_of) for name in state.queued]

    def check(self, state: State, decision: Decision) -> None:
        """Of those that need a new worker of the same agent, the one that is queued first begins first."""
        fresh = {effect.session for effect in decision.effects if isinstance(effect, BindWorker)}
        # A turn that this decision put back or whose pause it ended, and placed again, goes before all that
        # have not begun.
        put_back = {record.session for record in decision.records if isinstance(record, AttemptLost)}
        put_back |= self._resting
        for record in decision.records:
            if isinstance(record, AttemptOpened):
                passed = self._passed(state, record.session)
                if state.model.state is ModelState.READY:
                    self.overtaken.update(name for name, _, _ in passed)
                could = [name for name, _, _ in passed if not state.outages and _could_begin(state, name)]
                assert not could or record.session in put_back, (
                    f"{record} while {could} were queued before and could begin"
                )
                # A turn that has lost an attempt goes before those that have not begun.
                if record.session in fresh and record.attempt == 1:
                    agent = _agent(state, record.session)
                    waits = [name for name, of, has_worker in passed if of == agent and not has_worker]
                    assert not waits, f"{record} while {waits} were queued before"
        for name in list(self.overtaken):
            if name not in state.queued:
                del self.overtaken[name]
        worst = max(self.overtaken.values(), default=0)
        assert worst <= _OVERTAKEN_MAX, f"not fair: {self.overtaken}"

    def _passed(self, state: State, begun: str) -> list[tuple[str, str, bool]]:
        """Sessions that were queued before this one and still are."""
        names = [name for name, _, _ in self._before]
        ahead = self._before[: names.index(begun)] if begun in names else self._before
        return [each for each in ahead if each[0] in state.queued]


def _could_begin(state: State, name: str) -> bool:
    """Whether its model is ready, and a worker that this session may have is idle."""
    agent = _agent(state, name)
    if state.model.state is not ModelState.READY and agent not in state.policy.own_model:
        return False
    return name in state.own or (name not in state.seat_of and bool(state.unbound.get(agent)))


def _agent(state: State, name: str) -> str:
    turn = state.sessions[name].turn
    assert turn is not None, f"{name} is queued without a turn"
    return turn.agent


def check_losses(state: State, decision: Decision) -> None:
    """A turn that is lost as often as the policy allows is closed by the same decision."""
    closed = {record.turn for record in decision.records if isinstance(record, TurnFailed) and record.poison}
    for record in decision.records:
        if isinstance(record, AttemptLost) and record.reason.kind not in _NO_LOSS:
            is_last = record.losses >= state.policy.attempts_max
            assert is_last == (record.turn in closed), f"{record}, closed as poison: {closed}"


def check_timers(state: State) -> None:
    """Timers whose subject has ended are removed: a simulated day never has half as many that apply."""
    assert len(state.deadlines) <= 2 * KEPT_MIN, f"{len(state.deadlines)} timers"
