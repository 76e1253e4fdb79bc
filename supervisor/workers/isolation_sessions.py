"""Sessions that test the isolation of an agent's cells (ipc/isolation.py) instead of asking a model.

Their turns are like any other: recorded, placed on a worker of that agent in its ordinary cell, shown by
`hermesctl why`. The supervisor only supplies the settings in force; the tests run in the cell.
"""

from typing import Any

from ipc.isolation import KIND, tried_agent
from ipc.message_parts import AgentSpec
from ipc.places import credentials
from supervisor.config.database_address import address_of
from supervisor.config.derived import key_variables
from supervisor.config.endpoints import key_files
from supervisor.config.settings import Settings


def spec(settings: Settings, session: str) -> AgentSpec | None:
    """Return the options of such a session's worker: where keys are, no key. None for any other session."""
    agent = tried_agent(session)
    if not agent:
        return None
    workers = settings.workers
    options: dict[str, Any] = {
        "agents": list(settings.agents),
        "keys": [str(path) for path in (*key_files(settings), *credentials())],
        "variables": sorted(key_variables(settings)),
        "cell": "pidns" if workers.cell == "auto" else workers.cell,
        "network": settings.sandbox_of(agent).network,
        "memory_bytes_max": workers.memory_bytes_max,
        "processes_max": workers.processes_max,
        "files_max": workers.files_max,
    }
    if settings.journal.url is not None:
        address = address_of(settings.journal.url)
        # A server that is named by its socket may take connections on this host besides.
        ports = [*address.ports, *(("127.0.0.1", int(each.rpartition(".")[2])) for each in address.sockets)]
        options["databases"] = [*address.sockets, *(f"{host}:{port}" for host, port in ports)]
        options |= {"role": address.role, "database": address.database}
    return AgentSpec(agent, KIND, options)
