"""The kinds of agents, each a module that is imported only in the zygote of that kind.

A zygote serves one runtime: an interpreter, a kind and an entry. `load` imports the module of the kind and
calls its `load(entry)`, which imports everything that a worker needs and returns a Kind. Workers are forked
from there, and ask the Kind for an agent for every attempt.

The module of a kind that runs the user's code sets `RUNS_FOREIGN_CODE`. Then our own modules are taken out of
the interpreter's tables before its `load` is called (worker/own_modules.py): from there on it must import
nothing of ours, so it imports all of that at its top.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ipc import isolation
from ipc.messages import AgentSpec, Setup
from worker import own_modules
from worker.agents.isolation_trial import Isolation
from worker.attempt import Attempt
from worker.errors import AgentError, AttemptError

BUILTIN = "builtin"
# A test adds its own.
KINDS = {
    BUILTIN: "worker.agents.builtin",
    "python": "worker.agents.python",
    "acp": "worker.agents.acp",
    "hermes": "worker.agents.hermes",
}


class Agent(Protocol):
    """Answers one turn through the attempt: returns why the model ended it, or raises AttemptError."""

    async def answer(self, attempt: Attempt) -> str: ...


@runtime_checkable
class SetUpAgent(Agent, Protocol):
    """An agent that is set up before the first turn of its worker, and then answers all turns of it.

    Its options may change between two turns: those of the Assign are in force.
    """

    async def set_up(self, setup: Setup) -> AttemptError | None:
        """Starts what lives as long as the worker (worker/residents.py); raises AttemptError if it cannot.

        Returns the fault of an agent that gives it to its first turn by itself.
        """


class Kind(Protocol):
    """A loaded kind. `rehearse` runs once in the zygote, and leaves no socket, thread or loop.

    `agent` runs in a worker, for every attempt; AgentError says which option is wrong.
    """

    def rehearse(self) -> None: ...
    def agent(self, spec: AgentSpec) -> Agent: ...


class _Loaded:
    """The kind of this process and its entry; a process has one."""

    def __init__(self) -> None:
        self.name = ""
        self.kind: Kind | None = None


_loaded = _Loaded()


def load(name: str, entry: str = "", code: Sequence[str] = (), agent: str = "NAME") -> Kind:
    """Loads a kind, once in a process. AgentError for an unknown kind, or an entry that cannot be had.

    `code` are folders with modules of the user; they are searched first, as those of PYTHONPATH are.
    """
    if name not in KINDS:
        raise AgentError(
            f"there is no agent of kind {name!r}",
            f"set [agents.{agent}] kind in hermes.toml to one of: {', '.join(sorted(KINDS))}",
        )
    module = importlib.import_module(KINDS[name])
    if getattr(module, "RUNS_FOREIGN_CODE", False):
        own_modules.set_aside()
        sys.path[:0] = code
    kind: Kind = module.load(entry)
    _loaded.name, _loaded.kind = name, kind
    return kind


def find_agent(spec: AgentSpec) -> Agent:
    """Returns the agent for an attempt; AgentError when this worker cannot serve its kind."""
    if spec.kind == isolation.KIND:
        # For the sessions of `hermesctl doctor --isolation`; no settings name it.
        return Isolation(spec)
    if _loaded.kind is None:
        load(spec.kind, agent=spec.name)
    if _loaded.name != spec.kind or _loaded.kind is None:
        raise AgentError(
            f"this worker was started for agents of kind {_loaded.name!r}, not {spec.kind!r}",
            "send it again: workers of the new kind follow a reload",
            again=True,
        )
    return _loaded.kind.agent(spec)
