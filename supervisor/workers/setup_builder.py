"""Makes the Setup of a worker: the agent with its servers, and the secrets that its settings name."""

from collections.abc import Mapping

from ipc import messages as wire
from supervisor.config.live import Live


class SetupBuilder:
    """`environment` is the supervisor's own: secrets are read from it when a worker asks for its Setup."""

    def __init__(self, live: Live, environment: Mapping[str, str]) -> None:
        self._live = live
        self._environment = environment

    def __call__(self, agent: str) -> wire.Setup:
        settings = self._live.settings
        servers = settings.servers_of(agent)
        found = settings.agents.get(agent)
        of_agent = found.env_from if found is not None else ()
        variables = frozenset(of_agent).union(*(server.variables for server in servers.values()))
        return wire.Setup(
            agent=settings.agent(agent) or wire.AgentSpec(agent, "builtin"),
            servers=tuple(server.spec(name) for name, server in servers.items()),
            secrets={name: self._environment[name] for name in sorted(variables & self._environment.keys())},
        )
