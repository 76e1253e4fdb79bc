"""The settings that the core depends on."""

from collections.abc import Callable
from dataclasses import dataclass

# The agent that always exists; sessions without another one use it.
DEFAULT_AGENT = "default"
# The one endpoint of a host whose agents all use the same language model.
DEFAULT_ENDPOINT = "model"


def _default_agent(session: str) -> str:
    return DEFAULT_AGENT


def _default_endpoints(agent: str) -> tuple[str, ...]:
    return (DEFAULT_ENDPOINT,)


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that the core depends on."""

    # The agent of a session's next turn: a pure function of the session's name.
    agent_of: Callable[[str], str] = _default_agent
    # The model endpoints of an agent, in the order of their use: a pure function of the agent's name.
    endpoints_of: Callable[[str], tuple[str, ...]] = _default_endpoints
    # Agents with a runtime of their own, and agents that need no model of this host.
    apart: frozenset[str] = frozenset()
    own_model: frozenset[str] = frozenset()
    busy_seats: int = 2
    spares: int = 1
    turns_per_worker_max: int = 200
    attempts_max: int = 3
    waiting_max: int = 1000
    queue_max: int = 10_000
    memory_free_bytes_min: int = 0
    memory_pressure_max: int | None = None
    io_pressure_max: int | None = None
    cpu_pressure_max: int | None = None
    resume: str = "auto"
    freshness_seconds: float = 3600.0
    deadline_seconds: float = 1800.0
    silence_seconds: float = 300.0
    # How long an attempt keeps its seat while a person is asked.
    hold_seconds: float = 120.0
    outage_seconds_max: float = 3600.0
    start_seconds: float = 30.0
    # The pulse needs no interpreter lock, so only a stopped or starved process misses it this long.
    pulse_seconds: float = 15.0
    rest_seconds_max: float = 30.0
    starts_failed_max: int = 5
    # The limit of one event: the event that ends the turn has the whole text.
    said_characters_max: int = 1_000_000
    echo: bool = True
