"""Runtimes of agents: workers are started only for an agent whose runtime is warm.

An agent in `Policy.apart` has a runtime of its own (supervisor/processes/runtimes.py): its zygote is started
at first need, which may take long or fail. So it is asked for once, when a turn of the agent is queued, and
no seat is used before it is warm: turns of other agents are placed meanwhile.

| report | effect |
| --- | --- |
| warm | its turns get workers |
| cold | its turns wait; it is asked for again if one is queued |
| failed | its queued turns fail with the fault; the next turn asks for it again |

For spares alone a runtime is asked for only if it has not failed.
"""

from supervisor.core import line, turns
from supervisor.core.decision import Draft
from supervisor.core.effects import WarmRuntime
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.core.state import State


def is_warm(state: State, agent: str) -> bool:
    """Return whether a worker of this agent can be started."""
    return agent not in state.policy.apart or agent in state.runtimes.warm


def changed(draft: Draft, event: RuntimeChanged) -> None:
    runtimes = draft.state.runtimes
    runtimes.wanted -= event.agents
    runtimes.failed -= event.agents
    if event.state == "warm":
        runtimes.warm |= event.agents
        return
    runtimes.warm -= event.agents
    if event.state == "failed":
        runtimes.failed |= event.agents
        for agent in sorted(event.agents):
            _fail_queued(draft, agent, event)


def _fail_queued(draft: Draft, agent: str, event: RuntimeChanged) -> None:
    state = draft.state
    while (name := line.first_of(state, agent)) is not None:
        session = state.sessions[name]
        line.leave(state, name)
        assert session.turn is not None  # a session without a turn is not in the queue
        turns.fail(draft, session, session.turn, event.error, event.hint)


def want_queued(draft: Draft) -> None:
    """Ask for the runtimes of queued turns."""
    state = draft.state
    for agent in sorted(state.policy.apart & state.lines.keys()):
        if line.first_of(state, agent) is not None:
            _want(draft, agent)


def want_spare(draft: Draft, agent: str) -> None:
    """Ask for the runtime of an agent that is to have spares."""
    if agent not in draft.state.runtimes.failed:
        _want(draft, agent)


def _want(draft: Draft, agent: str) -> None:
    runtimes = draft.state.runtimes
    if agent not in runtimes.warm and agent not in runtimes.wanted:
        runtimes.wanted.add(agent)
        draft.perform(WarmRuntime(agent))
