"""Assembles the sources of queries from the parts of the service."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ipc.places import Places
from supervisor.clients.queries import Views
from supervisor.clients.status_hints import Hints
from supervisor.clients.view_facts import Host
from supervisor.clock import Clock
from supervisor.config.derived import program_row
from supervisor.config.live import Live
from supervisor.host.disk_space import DiskSpace
from supervisor.host.folder_identity import Folders
from supervisor.journal.opening import ChosenJournal
from supervisor.llm.model_source import ModelSource
from supervisor.process_pool import ProcessPool
from supervisor.stt.transcription import Transcription
from supervisor.telemetry.gauges import Gauges
from supervisor.telemetry.health import Health
from supervisor.telemetry.metrics import Metrics
from supervisor.workers.agent_faults import AgentFaults


@dataclass(frozen=True)
class Parts:
    """The sources. `environment` is that of workers, `waits_for` what a stop still waits for."""

    places: Places
    live: Live
    clock: Clock
    journal: ChosenJournal
    disk_space: DiskSpace
    folders: Folders
    processes: ProcessPool
    agent_faults: AgentFaults
    model: ModelSource
    transcription: Transcription
    health: Health
    metrics: Metrics
    environment: Mapping[str, str]
    services: Callable[[], Sequence[dict[str, Any]]]
    stale_frames: Callable[[], int]
    links: Callable[[], int]
    subscriptions: Callable[[], int]
    waits_for: Callable[[], str]


def make_views(parts: Parts) -> Views:
    trouble, state = parts.disk_space.trouble, parts.disk_space.engine.state

    def agents() -> list[dict[str, Any]]:
        settings, rows = parts.live.settings, parts.agent_faults.over(parts.processes.runtime_rows())
        return [row | program_row(settings, row["agent"], parts.environment) for row in rows]

    hints = Hints(
        state=state,
        clock=parts.clock,
        live=parts.live,
        environment=parts.environment,
        models=parts.places.models,
        transcription=parts.transcription,
        trouble=trouble,
        replaced=lambda: parts.folders.faults.values(),
        contained=parts.metrics.contained.total,
        agents=agents,
    )
    host = Host(
        home=str(parts.places.state),
        started_at=parts.clock.now(),
        cell=lambda: parts.processes.cell_description,
        model=parts.model.describe,
        hints=hints,
        trouble=trouble,
        has_reserve=lambda: parts.disk_space.has_reserve,
        waits_for=parts.waits_for,
        health=parts.health,
    )
    gauges = Gauges(
        metrics=parts.metrics,
        state=state,
        clock=parts.clock,
        journal=parts.places.journal,
        services=parts.services,
        stale_frames=parts.stale_frames,
        links=parts.links,
        subscriptions=parts.subscriptions,
        trouble=trouble,
    )
    return Views(
        state=state,
        clock=parts.clock,
        live=parts.live,
        journal=parts.journal,
        usages=parts.processes.usages,
        services=parts.services,
        agents=agents,
        other_hosts=lambda: _other_hosts(parts.journal),
        gauges=gauges,
        host=host,
    )


def _other_hosts(journal: ChosenJournal) -> list[dict[str, Any]]:
    others = journal.owners.others if journal.owners is not None else ()
    return [
        {"name": each.name, "state": each.state, "seats": each.seats, "free": each.free} for each in others
    ]
