"""Sessions that test the isolation of an agent's cells (ipc/isolation.py) instead of asking a model.

Their turns are like any other: recorded, placed on a worker of that agent in its ordinary cell, shown by
`hermesctl why`. The supervisor only supplies the settings in force; the tests run in the cell.
"""

from ipc.isolation import KIND, tried_agent
from ipc.message_parts import AgentSpec
from ipc.places import credentials
from supervisor.config.derived import key_variables
from supervisor.config.endpoints import key_files
from supervisor.config.settings import Settings


def spec(settings: Settings, session: str) -> AgentSpec | None:
    """Return the options of such a session's worker: where keys are, no key. None for any other session."""
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
