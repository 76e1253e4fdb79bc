"""The parts of a supervisor, made in the order in which they depend on each other; nothing is decided here.

Parts that report what happened are made before the engine: all of them post to the queue, which is made
first. One thing goes against that order: requests that end or replace the process go to its lifecycle, which
owns the parts (app.py).
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ipc import messages as wire
from ipc.codec import encode
from ipc.places import Places
from ipc.server import Servers
from supervisor import gateway_spec
from supervisor.clients import query_sources
from supervisor.clients.changes import Changes, Reply
from supervisor.clients.control import Control
from supervisor.clients.interrupts import Interrupts
from supervisor.clients.queries import in_short
from supervisor.clients.subscriptions import Subscriptions
from supervisor.clock import Clock
from supervisor.config.applying import Applying
from supervisor.config.derived import (
    has_setup,
    limits,
    runtimes,
    sandbox,
    start_settings,
    worker_environment,
)
from supervisor.config.endpoints import hidden_paths, model_endpoint, named_endpoints
from supervisor.config.live import Live
from supervisor.config.reload import Reload
from supervisor.config.settings import Settings
from supervisor.containment import Containment
from supervisor.core.state import State
from supervisor.engine import Engine
from supervisor.event_queue import EventQueue
from supervisor.handoff.departure import Departure
from supervisor.host import banner
from supervisor.host.disk_space import DiskSpace
from supervisor.host.folder_identity import Folders
from supervisor.host.shutdown import Shutdown
from supervisor.journal.opening import ChosenJournal
from supervisor.llm.model_source import NAME as MODEL
from supervisor.llm.model_source import ModelSource
from supervisor.performer import Performer
from supervisor.process_pool import ProcessPool
from supervisor.processes.agent_user import choose
from supervisor.services.service import ServiceChanged
from supervisor.services.services import Services
from supervisor.stt import stt_spec
from supervisor.stt.transcription import Transcription
from supervisor.telemetry.health import Health
from supervisor.telemetry.log import Log
from supervisor.telemetry.metrics import Metrics
from supervisor.telemetry.systemd_notify import Notifier, Watch
from supervisor.upkeep import Upkeep
from supervisor.workers.agent_faults import AgentFaults
from supervisor.workers.assignment import AssignBuilder, Assignment
from supervisor.workers.cancellation import Cancellation
from supervisor.workers.router import Router
from supervisor.workers.setup_builder import SetupBuilder
from supervisor.workers.workspaces import Workspaces

# The notice that a session was given to another host.
_OWNERS = "owners"

if TYPE_CHECKING:
    from supervisor.hosts.sharing import Sharing


class Lifecycle(Protocol):
    """Requests that end or replace the process, or read its settings again."""

    def end(self, status: int) -> None: ...
    def fatal(self, error: BaseException) -> None: ...
    def unwritable(self) -> None: ...
    def reload_asked(self, reply: Reply, confirmed: bool = False) -> None: ...
    def hand_over_asked(self, reply: Reply) -> None: ...


class Parts:
    """All parts of one run. Each method makes parts that need only those made before."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        journal: ChosenJournal,
        lifecycle: Lifecycle,
        make_processes: Callable[..., ProcessPool],
        model_key: str,
        state: State,
        newest_at: float,
    ) -> None:
        """`state` and `newest_at`, the time of the newest event, are as the journal has them."""
        self.places = places
        self.live = Live(settings)
        self.journal = journal
        self._lifecycle = lifecycle
        self.state = state
        self._make_basics(model_key, newest_at)
        self._make_services()
        self._make_workers(make_processes)
        self._make_engine()
        self._make_upkeep()
        self._make_control()

    def _make_basics(self, model_key: str, newest_at: float) -> None:
        settings = self.live.settings
        contents = (session.turn.content_at for session in self.state.sessions.values() if session.turn)
        self.clock = Clock(not_before=max((newest_at, *contents)))
        self._queue = EventQueue(self.clock.now)
        self.log = Log(self.clock, form=lambda: self.live.settings.log.format)
        endpoints = model_endpoint(settings), named_endpoints(settings)
        weights = settings.embedded.weights
        self.model = ModelSource(*endpoints, self.places.models, self._queue.post, model_key, weights)
        self.metrics = Metrics(self.clock, lambda: self.model.name)
        self.contain = Containment(self.log, self.clock.now, self.metrics.contained.add)
        self.notifier = Notifier()
        self.folders = Folders(self.places, self.log)
        self.subscriptions = Subscriptions(self.journal.read, self.contain, self.journal.asking)
        self.sharing = self._shared_with_others()
        self._clips = self.sharing.clips if self.sharing is not None else None
        self._feed = self.sharing.feed if self.sharing is not None else self.subscriptions
        self.client_sockets = Servers()

    def _shared_with_others(self) -> "Sharing | None":
        """With a journal that other hosts share, they are told of this host's events and text, too."""
        if self.journal.notices is None:
            return None
        # Imported here only: a journal in a file belongs to this host.
        from supervisor.hosts.sharing import sharing_of

        clips, check = self.places.clips, self.folders.check
        return sharing_of(self.journal, self.subscriptions, self.state, self.contain, clips, check)

    def _make_services(self) -> None:
        """Make the children that are not workers, and the client of the STT service."""
        places = self.places
        self._stt_spec = stt_spec.stt_service(self.live.settings, places.models)
        self._gateway_spec = gateway_spec.gateway_service(self.live.settings, places)
        wanted = (self.model.spec, self._stt_spec, self._gateway_spec)
        self._transcription = Transcription(
            live=self.live,
            clips=places.clips,
            post=self._queue.post,
            progress=lambda session, message, text: self._feed.delta(
                session, encode(wire.Noted(message, 0, text))
            ),
            shared=self._clips,
        )
        self.services = Services(
            [spec for spec in wanted if spec is not None],
            endpoint=places.services,
            logs=places.logs,
            report=self._service_changed,
            clip_told=self._transcription.clip_told,
            check=self.folders.check,
            contain=self.contain,
        )
        self._transcription.open(self.services)

    def _make_workers(self, make_processes: Callable[..., ProcessPool]) -> None:
        places, settings = self.places, self.live.settings
        self._environment = worker_environment(settings, os.environ)
        self._agent_faults = AgentFaults(lambda agent: start_settings(self.live.settings, agent))
        journal = self.journal
        # What answers in place is read when the Assign is made.
        asking = journal.asking if journal.ahead is not None else None
        build_assign = AssignBuilder(journal.read, self.live, self.model.of, asking, journal.came_from)
        self.router = Router(
            subscriptions=self._feed,
            build_assign=build_assign,
            build_setup=SetupBuilder(self.live, os.environ, self.model.of),
            contain=self.contain,
            faults=self._agent_faults,
            attempt_ended=lambda incarnation: self._cancellation.attempt_ended(incarnation),
        )
        own = self.router.streamed
        self.streamed = own if self.sharing is None else self.sharing.streamed(own)
        self.processes = make_processes(
            epoch=self.journal.epoch,
            places=places,
            cell=settings.workers.cell,
            limits=limits(settings),
            sandbox=lambda agent: sandbox(self.live.settings, agent),
            has_setup=lambda agent: has_setup(self.live.settings, agent),
            key_files=lambda: hidden_paths(self.live.settings),
            agents=lambda: runtimes(self.live.settings),
            runtime_changed=self._queue.post,
            environment=self._environment,
            report=self._queue.post,
            check=self.folders.check,
            connected=self.router.connected,
            others=lambda: {row["pid"] for row in self.services.rows() if row["pid"]},
            lease=journal.lease,
        )
        self._cancellation = Cancellation(self.processes, self.router.cancel, self.router.graces)
        self.workspaces = Workspaces(
            places.workspaces, self.folders.check, choose(places.state, settings.workers.cell)
        )
        self._assignment = Assignment(
            self.workspaces,
            self.processes.bind,
            self.router,
            self._queue.post,
            self.contain,
            build_assign.prepare,
        )

    def _make_engine(self) -> None:
        performer = Performer(
            processes=self.processes,
            cancellation=self._cancellation,
            router=self.router,
            assignment=self._assignment,
            transcription=self._transcription,
            subscriptions=self._feed,
            clients=self.client_sockets,
            log=self.log,
            meter=self.metrics,
            contain=self.contain,
            post=self._queue.post,
        )
        self._disk_space = DiskSpace(
            self.places,
            self.folders,
            self.clock,
            self.log,
            self.contain,
            self._lifecycle.unwritable,
            on_server=self.journal.ahead is not None,
        )
        self.engine = Engine(
            self.state,
            self._queue,
            clock=self.clock,
            journal=self.journal,
            outputs=performer,
            contain=self.contain,
            passing=self._disk_space.passing,
            fatal=self._lifecycle.fatal,
            ahead=self.journal.ahead,
        )
        self._disk_space.open(self.engine)
        self._interrupts = Interrupts(self.engine, self.processes.kill, self.log)
        self._queue.show_deaths(self._interrupts.worker_died)

    def open_owners(self) -> None:
        """From now on sessions of other hosts are taken over, where several share the journal."""
        owners = self.journal.owners
        if owners is not None and self.sharing is not None:
            peers = self.sharing.peers
            peers.on(_OWNERS, owners.look_now)
            owners.gave = lambda life: peers.tell(life, [_OWNERS])
            owners.labels_of = lambda session: self.live.settings.for_session(session).labels
            owners.open(self.engine, self._queue.undecided, self.clock.now, self._lifecycle.fatal)

    def _make_upkeep(self) -> None:
        """Make the parts for scheduled or requested work that no turn waits for."""
        rows = self.services.rows
        self.watch = Watch(self.notifier, self.engine, lambda: in_short(self.state))
        self.health = Health(self.engine, self.clock, rows, self.metrics.lag.observe, self.contain)
        self.shutdown = Shutdown(self.notifier, self.processes.usages, rows)
        self.upkeep = Upkeep(
            places=self.places,
            folders=self.folders,
            workspaces=self.workspaces,
            journal=self.journal,
            engine=self.engine,
            live=self.live,
            clock=self.clock,
            log=self.log,
            contain=self.contain,
            shared_clips=self._clips,
        )
        apply = Applying(
            live=self.live,
            engine=self.engine,
            model=self.model,
            services=self.services,
            transcription=self._transcription,
            stt=self._stt_spec,
            gateway=self._gateway_spec,
            change_limits=self.processes.change_limits,
            change_agents=self.processes.change_agents,
        )
        self.reload = Reload(
            live=self.live,
            check=self.folders.check,
            places=self.places,
            apply=apply,
            log=self.log,
            contain=self.contain,
        )
        self.departure = Departure(
            engine=self.engine,
            router=self.router,
            processes=self.processes,
            services=self.services,
            folders=self.folders,
            environment=self.notifier.environment,
            again=self.places.arguments,
        )

    def _make_control(self) -> None:
        sources = query_sources.Parts(
            places=self.places,
            live=self.live,
            clock=self.clock,
            journal=self.journal,
            disk_space=self._disk_space,
            folders=self.folders,
            processes=self.processes,
            agent_faults=self._agent_faults,
            model=self.model,
            transcription=self._transcription,
            health=self.health,
            metrics=self.metrics,
            environment=self._environment,
            services=self.services.rows,
            stale_frames=lambda: self.router.stale_frames,
            links=lambda: self.router.link_count,
            subscriptions=lambda: self.subscriptions.count,
            waits_for=self.shutdown.waits_for,
        )
        lifecycle = self._lifecycle
        views = query_sources.make_views(sources)
        changes = Changes(
            engine=self.engine,
            interrupts=self._interrupts,
            trouble=self._disk_space.trouble,
            views=views,
            past=self.journal.read,
            asking=self.journal.asking,
            clip_fault=self.upkeep.clips.fault,
            transcribe=self._transcription.transcribe_apart,
            live=self.live,
            after_frames=self.router.after_frames,
            stop=lambda: lifecycle.end(0),
            hand_over=lifecycle.hand_over_asked,
            refused=self.metrics.refused.add,
            contain=self.contain,
            owners=self.journal.owners,
        )
        shared_views = self.sharing.route(changes, views) if self.sharing is not None else None
        control = partial(
            Control,
            changes=changes,
            subscriptions=self.subscriptions,
            views=shared_views or views,
            care=self.upkeep.journal,
            reload=lifecycle.reload_asked,
            contain=self.contain,
        )
        self.control, self.gateway_control = control(wire.Request), control(wire.GatewayRequest)

    def _service_changed(self, changed: ServiceChanged) -> None:
        self.log.write("service.changed", service=changed.service, state=changed.state)
        if changed.service == stt_spec.NAME:
            self._transcription.service_changed(changed)
        elif changed.service == MODEL:
            self.model.service_changed(changed)
        elif changed.service == gateway_spec.NAME and changed.state == "ready" and not self.notifier.is_heard:
            address = self.live.settings.gateway.console(changed.address)
            print(banner.console(self.places, address), file=sys.stderr, flush=True)
