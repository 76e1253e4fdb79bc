"""Makes the Setup of a worker: the agent with its servers and its model, and the secrets that they need."""

from collections.abc import Callable, Mapping, Sequence

from ipc import messages as wire
from supervisor.config.agent_settings import Agent
from supervisor.config.live import Live
from supervisor.config.model_settings import models_of


class SetupBuilder:
    """`environment` is the supervisor's own: secrets are read from it when a worker asks for its Setup.

    `endpoints` gives the models by their names in the settings, those that can be asked now.
    """

    def __init__(
        self,
        live: Live,
        environment: Mapping[str, str],
        endpoints: Callable[[Sequence[str]], Sequence[wire.ModelEndpoint]],
    ) -> None:
        self._live = live
        self._environment = environment
        self._endpoints = endpoints

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
            model=self._model(found),
        )

    def _model(self, agent: Agent | None) -> wire.ModelEndpoint | None:
        """Return the model that an agent prepares for: only those of kind hermes do."""
        if agent is None or agent.kind != "hermes" or agent.home is not None:
            return None
        return next(iter(self._endpoints(models_of(agent))), None)
