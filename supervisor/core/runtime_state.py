"""The runtimes of agents, as the core knows them: which are warm, and the report of a change."""

from dataclasses import dataclass, field
from typing import Literal

# Its workers can be started; not yet; or not at all.
RuntimeState = Literal["warm", "cold", "failed"]


@dataclass(frozen=True, slots=True)
class RuntimeChanged:
    """The runtime of these agents has another state; a failed one has an error and a hint."""

    agents: frozenset[str]
    state: RuntimeState
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class Runtimes:
    """Of the agents with a runtime of their own, those that the names say; `wanted` are asked for."""

    warm: set[str] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
