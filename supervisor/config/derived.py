"""Values derived from the settings: the policy, the cells, and the environment of workers."""

import os
from collections.abc import Mapping
from pathlib import Path

from ipc.interpreter import without_code
from ipc.isolation import tried_agent
from ipc.message_parts import MCP_ENTRY
from ipc.service_messages import Sandbox
from ipc.try_sessions import agent_of
from supervisor.config.agent_settings import Agent, code_folders, home_folder
from supervisor.config.endpoints import endpoint_id
from supervisor.config.key_remedies import missing_variable
from supervisor.config.model_settings import models_of
from supervisor.config.settings import Settings
from supervisor.config.toml_file import SettingsError
from supervisor.core.policy import Policy
from supervisor.processes.cells import Limits
from supervisor.processes.runtimes import DEFAULT, Runtime

# Variables whose names end so hold secrets, by convention.
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")


def policy(settings: Settings) -> Policy:
    """Return the settings that the core depends on."""
    turns, own_model = settings.turns, _own_model(settings)
    return Policy(
        agent_of=lambda session: _agent_of(settings, session),
        endpoints_of=lambda agent: _endpoints(settings, agent),
        apart=frozenset(agent for agent, runtime in runtimes(settings).items() if runtime != DEFAULT),
        own_model=own_model,
        busy_seats=settings.workers.seats,
        spares=settings.workers.spares,
        turns_per_worker_max=settings.workers.turns_max,
        attempts_max=turns.attempts_max,
        waiting_max=turns.waiting_max,
        queue_max=turns.queue_max,
        memory_free_bytes_min=settings.workers.memory_free_bytes_min,
        memory_pressure_max=settings.workers.memory_pressure_max,
        io_pressure_max=settings.workers.io_pressure_max,
        cpu_pressure_max=settings.workers.cpu_pressure_max,
        resume=turns.resume,
        freshness_seconds=turns.freshness_seconds,
        deadline_seconds=turns.deadline_seconds,
        silence_seconds=turns.silence_seconds,
        hold_seconds=turns.hold_seconds,
        outage_seconds_max=turns.outage_seconds_max,
        pulse_seconds=settings.workers.pulse_seconds,
        echo=settings.stt.echo,
    )


def _agent_of(settings: Settings, session: str) -> str:
    """Return the agent of a session; the sessions of trials name theirs."""
    tried = agent_of(session)
    found = tried if tried in settings.agents else settings.for_session(session).agent
    return tried_agent(session) or found


def _own_model(settings: Settings) -> frozenset[str]:
    """Return the agents that bring a model of their own."""
    return frozenset(name for name, agent in settings.agents.items() if _brings_model(agent))


def _brings_model(agent: Agent) -> bool:
    """An agent of kind hermes does so in a home of the user's; in its own ones it has ours."""
    return agent.home is not None if agent.kind == "hermes" else agent.kind != DEFAULT.kind


def asked_models(settings: Settings, agent: str) -> tuple[str, ...]:
    """Return the names of our models that this agent asks, in their order."""
    return () if agent in _own_model(settings) else models_of(settings.agents.get(agent))


def _endpoints(settings: Settings, agent: str) -> tuple[str, ...]:
    asked = asked_models(settings, agent)
    return tuple(endpoint_id(settings, name) for name in asked) or (f"agent {agent}",)


def runtimes(settings: Settings) -> dict[str, Runtime]:
    """Return the runtime of every agent; a relative path of an interpreter starts beside hermes.toml.

    Built-in agents with MCP servers have a runtime apart from those without: importing the client of the
    servers takes a second and some 25 MB, which a fork shares with its zygote.

    A zygote is in no cell. So code that an agent may write is no part of a runtime: workers import it.
    """
    folder = settings.file.parent if settings.file else Path()
    found = {}
    for name, agent in settings.agents.items():
        python = os.path.abspath(folder / Path(agent.python).expanduser()) if agent.python else ""
        code = code_folders(settings.file, agent)
        is_safe = not any(_may_be_written(settings, each) for each in code)
        entry = agent.entry or "" if is_safe else ""
        if settings.servers_of(name):
            entry = MCP_ENTRY
        found[name] = Runtime(agent.kind, python, entry, code if is_safe else ())
    return found


def _may_be_written(settings: Settings, folder: str) -> bool:
    """Return whether the cell of some agent shows this folder, or a part of it, to be written to."""
    shown = sandboxes(settings).values()
    of_levels = {"workspace": (), "home": (str(Path.home()),), "host": ("/",)}
    named = {path for each in shown for path in (*each.write, *of_levels[each.level])}
    real, written = os.path.realpath(folder), map(os.path.realpath, named)
    return any(os.path.commonpath((real, path)) in (real, path) for path in written)


def exposed_interpreters(settings: Settings) -> tuple[str, ...]:
    """Return sentences about interpreters that an agent may change: their zygotes run in no cell."""
    found = {name: runtime.python for name, runtime in runtimes(settings).items() if runtime.python}
    folders = {name: os.path.dirname(os.path.dirname(python)) for name, python in found.items()}
    return tuple(
        f"[agents.{name}] python runs outside of cells too, and agents may write to {folder}: "
        "move that environment, or leave it out of what [sandbox] write and level show"
        for name, folder in folders.items()
        if os.access(folder, os.W_OK) and _may_be_written(settings, folder)
    )


def secrets(settings: Settings, agent: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an agent's `env_from` names. SettingsError for one that is not set."""
    found = settings.agents.get(agent)
    names = found.env_from if found is not None else ()
    missing = next((name for name in names if name not in environment), None)
    if missing is not None:
        raise SettingsError(
            f"the environment variable {missing}, named by [agents.{agent}] env_from, is not set",
            missing_variable(settings.file, missing),
        )
    return {name: environment[name] for name in names}


def limits(settings: Settings) -> Limits:
    """Return the limits of one worker's cell."""
    workers = settings.workers
    return Limits(workers.memory_bytes_max, workers.processes_max, workers.files_max)


def sandbox(settings: Settings, agent: str) -> Sandbox:
    """Return the view that cells of this agent have of the host. The supervisor enforces the quota itself."""
    found = settings.sandbox_of(agent)
    named = settings.agents.get(agent)
    code = code_folders(settings.file, named) if named is not None else ()
    home = home_folder(settings.file, named) if named is not None else None
    write = (*found.write, home) if home is not None and home not in found.write else found.write
    return Sandbox(found.level, found.read, write, found.network, code)


def sandboxes(settings: Settings) -> dict[str, Sandbox]:
    """Return the sandbox of every agent in hermes.toml."""
    return {agent: sandbox(settings, agent) for agent in settings.agents}


def has_setup(settings: Settings, agent: str) -> bool:
    """Return whether workers of this agent are set up before they are ready."""
    found = settings.agents.get(agent)
    return found is not None and (found.kind != "builtin" or bool(settings.servers_of(agent)))


def start_settings(settings: Settings, agent: str) -> object:
    """Return what decides whether a program of this agent can be started, to be compared."""
    return settings.agents.get(agent), settings.sandbox, settings.file


def program_row(settings: Settings, agent: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the program of an agent that is one, and the folders in which its name is looked up."""
    found = settings.agents.get(agent)
    if found is None or not found.command:
        return {}
    searched = {**environment, **(found.env or {})}.get("PATH", os.defpath)
    return {"program": found.command[0], "searched": searched}


def worker_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of workers: without secrets and without variables that name code to load.

    The model's key reaches them with the turn instead.
    """
    keys = key_variables(settings)
    return {
        name: value
        for name, value in without_code(environment).items()
        if name not in keys and not name.upper().endswith(_SECRET_ENDINGS)
    }


def visible_keys(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return sentences about keys in the environment of workers: it was made under earlier settings."""
    seen = sorted(key_variables(settings) & environment.keys())
    return tuple(
        f"workers can read {name}, which holds a key: restart the service to hide it" for name in seen
    )


def key_variables(settings: Settings) -> set[str]:
    """Return the environment variables that hold keys, according to the settings."""
    holders = (settings.stt, settings.model, *settings.models.values())
    of_agents = (agent.env_from for agent in settings.agents.values())
    of_servers = (server.variables for server in settings.mcp.values())
    keys = {holder.api_key_env for holder in holders if holder and holder.api_key_env is not None}
    # Read by the driver of a database.
    keys |= {"PGPASSWORD"} if settings.journal.url is not None else set()
    return keys.union(*of_agents, *of_servers)
