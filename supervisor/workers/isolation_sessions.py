"""Sessions in which the isolation of an agent's cells is tried (ipc/isolation.py) instead of a model asked.

Their turns are like any other: written down, placed on a worker of that agent in its ordinary cell, told by
`hermesctl why`. The supervisor only says what the settings in force are; what is tried runs in the cell.
"""

from ipc.isolation import KIND, tried_agent
from ipc.message_parts import AgentSpec
from ipc.places import credentials
from supervisor.config.derived import key_variables
from supervisor.config.settings import Settings, key_files


def spec(settings: Settings, session: str) -> AgentSpec | None:
    """What the worker of such a session is told: where keys lie, no key. None for any other session."""
    agent = tried_agent(session)
    if not agent:
        return None
    workers = settings.workers
    options = {
        "agents": list(settings.agents),
        "keys": [str(path) for path in (*key_files(settings), *credentials())],
        "variables": sorted(key_variables(settings)),
        "cell": "pidns" if workers.cell == "auto" else workers.cell,
        "network": settings.sandbox_of(agent).network,
        "memory_bytes_max": workers.memory_bytes_max,
        "processes_max": workers.processes_max,
        "files_max": workers.files_max,
    }
    return AgentSpec(agent, KIND, options)
