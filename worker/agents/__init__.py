"""The agents of a worker: found by the kind that hermes.toml names; each answers through an Attempt."""

from collections.abc import Callable
from typing import Protocol

from ipc.isolation import KIND
from ipc.messages import AgentSpec
from worker.agents.builtin import Builtin
from worker.agents.isolation_trial import Isolation
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.model import Model


class Agent(Protocol):
    """Answers one turn through the attempt: returns why the model ended it, or raises AttemptError."""

    async def answer(self, attempt: Attempt) -> str: ...


_KINDS: dict[str, Callable[[AgentSpec, Model], Agent]] = {"builtin": Builtin}
# For the sessions of `hermesctl doctor --isolation`; no settings name it.
_HIDDEN: dict[str, Callable[[AgentSpec, Model], Agent]] = {KIND: Isolation}


def find_agent(spec: AgentSpec, model: Model) -> Agent:
    """Returns the agent of that kind; AgentError lists the known kinds."""
    make = (_KINDS | _HIDDEN).get(spec.kind)
    if make is None:
        raise AgentError(
            f"there is no agent of kind {spec.kind!r}",
            f"set [agents.{spec.name}] kind in hermes.toml to one of: {', '.join(sorted(_KINDS))}",
        )
    return make(spec, model)
