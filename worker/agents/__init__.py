"""The agents of a worker: found by the kind that hermes.toml names; each answers through an Attempt."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ipc.isolation import KIND
from ipc.messages import AgentSpec, Setup
from worker.agents.builtin import Builtin
from worker.agents.isolation_trial import Isolation
from worker.agents.python import Python
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.model import Model


class Agent(Protocol):
    """Answers one turn through the attempt: returns why the model ended it, or raises AttemptError."""

    async def answer(self, attempt: Attempt) -> str: ...


@runtime_checkable
class SetUpAgent(Agent, Protocol):
    """An agent that is set up before the first turn of its worker, and then answers all turns of it.

    Its options may change between two turns: those of the Assign are in force.
    """

    async def set_up(self, setup: Setup) -> None:
        """Starts what lives as long as the worker (worker/residents.py); raises AttemptError if it cannot."""


_KINDS: dict[str, Callable[[AgentSpec, Model], Agent]] = {"builtin": Builtin, "python": Python}
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
