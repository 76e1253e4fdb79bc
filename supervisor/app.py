"""The wiring; it decides nothing. The order of a start: lock, load, sweep, recover, sockets, READY."""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

from ipc.codec import encode
from ipc.messages import Noted, Refused
from ipc.places import Places, remove_stand_in
from ipc.server import Server
from ipc.time_budgets import PROCESSES_END_SECONDS
from supervisor.clients.control import Control, Reply
from supervisor.clients.interrupts import Interrupts
from supervisor.clients.queries import Views, in_short
from supervisor.clients.query_sources import Parts, make_views
from supervisor.clients.subscriptions import Feed
from supervisor.clock import Clock, monotonic
from supervisor.config.applying import Applying
from supervisor.config.derived import limits, policy, prices, sandbox, worker_environment
from supervisor.config.live import Live
from supervisor.config.reload import Reload
from supervisor.config.settings import Settings, key_files, model_endpoint
from supervisor.containment import Containment, Fault
from supervisor.core import events
from supervisor.core.effects import Answer
from supervisor.core.state import State
from supervisor.engine import Engine
from supervisor.handoff.departure import Departure
from supervisor.handoff.handover import Handover
from supervisor.host import signals, threads
from supervisor.host.banner import welcome
from supervisor.host.disk_space import Storage
from supervisor.host.folder_identity import Folders
from supervisor.host.shutdown import Ending
from supervisor.journal.errors import JournalError
from supervisor.journal.journal import Journal
from supervisor.llm.model_source import NAME as MODEL
from supervisor.llm.model_source import ModelSource
from supervisor.performer import Performer
from supervisor.processes.agent_user import choose
from supervisor.processes.contract import ProcessRoom
from supervisor.processes.worker_processes import Processes
from supervisor.services.service import ServiceChanged
from supervisor.services.services import Services
from supervisor.stt import stt_spec
from supervisor.stt.transcription import Hearing
from supervisor.telemetry import log_file
from supervisor.telemetry.health import Health
from supervisor.telemetry.log import Log
from supervisor.telemetry.metrics import Metrics
from supervisor.telemetry.systemd_notify import Notifier, Watch
from supervisor.upkeep import Upkeep
from supervisor.workers.assignment import Assignment, Briefing
from supervisor.workers.router import Switchboard
from supervisor.workers.workspaces import Workspaces, sessions_of

# Time to send the last answers to connected clients.
_FLUSH_SECONDS = 0.1
_PULSE_SECONDS = 1.0
# No exit status: the next image of this process continues.
_HANDING_OVER = -1


class App:
    """One run of the supervisor."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        journal: Journal,
        make_processes: Callable[..., ProcessRoom] = Processes,
        handed: Handover | None = None,
    ) -> None:
        """`handed` is the handover of an earlier image of this process."""
        self._handed, self._places = handed, places
        self.leaving: Handover | None = None
        self._live = Live(settings)
        self._journal = journal
        self._make_processes = make_processes
        state = journal.load(policy(settings))
        contents = (session.turn.content_at for session in state.sessions.values() if session.turn)
        self._clock = Clock(not_before=max((journal.read.newest_at(), *contents)))
        self._log = Log(self._clock, form=lambda: self._live.settings.log.format)
        self._model = ModelSource(
            model_endpoint(settings), places.models, self._post, handed.model_key if handed else ""
        )
        self._metrics = Metrics(self._clock, lambda: self._model.name, lambda: prices(self._live.settings))
        self._contain = Containment(self._log, self._clock.now, self._metrics.contained.add)
        self._notifier, self._is_stopping = Notifier(), False
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._folders = Folders(places, self._log)
        self._environment = worker_environment(settings, os.environ)
        self._clients: Server | None = None
        self._wire_up(state)

    def _wire_up(self, state: State) -> None:
        places, settings = self._places, self._live.settings
        self._processes = self._make_processes(
            epoch=self._journal.epoch,
            places=places,
            cell=settings.workers.cell,
            limits=limits(settings),
            sandbox=lambda agent: sandbox(self._live.settings, agent),
            key_files=lambda: key_files(self._live.settings),
            environment=self._environment,
            report=self._post,
            check=self._folders.check,
            connected=self._connected,
        )
        self._make_services()
        self._storage = Storage(
            places, self._folders, self._clock, self._log, self._contain, self._unwritable
        )
        services = self._services.rows
        self._ending = Ending(self._notifier, self._processes.readings, services)
        self._feed = Feed(
            self._journal.read, lambda session: self._switchboard.spoken(session), self._contain
        )
        briefing = Briefing(self._journal.read, self._live, lambda: self._model.endpoint)
        self._switchboard = Switchboard(
            known=self._processes, feed=self._feed, brief=briefing, contain=self._contain
        )
        self._workspaces = Workspaces(
            places.workspaces, self._folders.check, choose(places.state, settings.workers.cell)
        )
        assignment = Assignment(
            self._workspaces, self._processes.bind, self._switchboard, self._post, self._contain
        )
        performer = Performer(
            processes=self._processes,
            switchboard=self._switchboard,
            assignment=assignment,
            hearing=self._hearing,
            feed=self._feed,
            log=self._log,
            meter=self._metrics,
            contain=self._contain,
            post=self._post,
        )
        self._engine = Engine(
            state,
            clock=self._clock,
            journal=self._journal,
            outputs=performer,
            contain=self._contain,
            passing=self._storage.passing,
            fatal=self._fatal,
        )
        self._storage.open(self._engine)
        self._watch = Watch(self._notifier, self._engine, lambda: in_short(state))
        self._health = Health(self._engine, self._clock, services, self._metrics.lag.observe, self._contain)
        self._interrupts = Interrupts(self._engine, self._processes.kill, self._log)
        self._make_upkeep()
        self._make_control()

    def _make_upkeep(self) -> None:
        """Make the parts for scheduled or requested work that no turn waits for."""
        places = self._places
        self._upkeep = Upkeep(
            places=places,
            folders=self._folders,
            workspaces=self._workspaces,
            journal=self._journal,
            engine=self._engine,
            live=self._live,
            clock=self._clock,
            log=self._log,
            contain=self._contain,
        )
        self._reload = Reload(
            live=self._live,
            path=places.settings_file,
            check=self._folders.check,
            models=places.models,
            apply=Applying(
                live=self._live,
                engine=self._engine,
                model=self._model,
                services=self._services,
                hearing=self._hearing,
                stt=self._stt_spec,
                change_limits=self._processes.change_limits,
            ),
            log=self._log,
            contain=self._contain,
        )
        self._departure = Departure(
            engine=self._engine,
            switchboard=self._switchboard,
            processes=self._processes,
            services=self._services,
            folders=self._folders,
            environment=self._notifier.environment,
            again=places.arguments,
        )

    def _make_control(self) -> None:
        self._control = Control(
            care=self._upkeep.journal,
            clip_fault=self._upkeep.clips.fault,
            engine=self._engine,
            interrupts=self._interrupts,
            trouble=self._storage.trouble,
            feed=self._feed,
            views=self._make_views(),
            live=self._live,
            reload=self._reload_asked,
            hear_out=self._switchboard.hear_out,
            stop=lambda: self._end(0),
            hand_over=self._hand_over_asked,
            refused=self._metrics.refused.add,
            contain=self._contain,
        )

    def _make_services(self) -> None:
        """Make the children that are not workers, and the client of the STT service."""
        places = self._places
        self._stt_spec = stt_spec.stt_service(self._live.settings, places.models)
        wanted = (self._model.spec, self._stt_spec)
        self._hearing = Hearing(
            live=self._live,
            clips=places.clips,
            post=self._post,
            progress=lambda session, message, text: self._feed.delta(
                session, encode(Noted(message, 0, text))
            ),
        )
        self._services = Services(
            [spec for spec in wanted if spec is not None],
            endpoint=places.services,
            logs=places.logs,
            report=self._service_changed,
            clip_told=self._hearing.clip_told,
            check=self._folders.check,
            contain=self._contain,
        )
        self._hearing.open(self._services)

    def _make_views(self) -> Views:
        parts = Parts(
            places=self._places,
            live=self._live,
            clock=self._clock,
            journal=self._journal,
            storage=self._storage,
            folders=self._folders,
            processes=self._processes,
            model=self._model,
            hearing=self._hearing,
            health=self._health,
            metrics=self._metrics,
            environment=self._environment,
            services=self._services.rows,
            echoes=lambda: self._switchboard.echoes,
            waits_for=self._ending.waits_for,
        )
        return make_views(parts)

    async def run(self) -> int:
        """Run from load to exit status."""
        await self._open()
        try:
            status = await self._ended
            if status == _HANDING_OVER:
                # Before the last check of requests to this image: a stop is seen here or by the next image.
                await signals.hold_back()
                handover = await self._departure.gather(PROCESSES_END_SECONDS)
                if self._is_stopping:
                    return 0  # kept workers end with this process, and the next start resumes their turns
                self.leaving = handover
            return status
        finally:
            await self._close()

    async def _open(self) -> None:
        self._folders.take(self._handed.folders if self._handed else None)
        (loop := asyncio.get_running_loop()).set_default_executor(threads.executor())
        await asyncio.to_thread(self._workspaces.take_over)
        loop.set_exception_handler(self._broke)
        signals.listen(self._asked_to_stop, lambda: self._reload_asked(lambda answer: None))
        self._switchboard.open(self._engine)
        handed = self._handed
        survivors = await self._processes.open(handed.processes if handed else None)
        for worker in handed.workers if handed else ():
            self._switchboard.recall(*worker)
        sessions = sessions_of([each.workspace for each in survivors], self._journal.read)
        left = tuple(each.leftover(sessions.get(each.workspace)) for each in survivors)
        kept = (handed.kept, handed.incarnations) if handed else ((), 0)
        self._engine.post(events.Recovered(*kept, left), self._recovered)
        self._model.open()

    def _recovered(self, answer: Answer) -> None:
        """Open the control socket: the recovery is decided and committed."""
        # First: a client may query the services as soon as it can connect.
        self._services.open(self._handed.model if self._handed else None)
        clients = Server(self._places.control, self._control.request_arrived, left=self._feed.forget)
        self._clients = clients
        self._feed.open(clients)
        self._control.open(clients)
        self._switchboard.ask_recalled()
        self._take_pulse()
        self._health.open()
        self._upkeep.open()
        self._notifier.ready()
        self._watch.open()
        self._log.wrote = log_file.LogFile(self._places.logs / log_file.NAME).wrote
        self._log.write("service.ready", epoch=self._journal.epoch, cell=self._processes.cell_name)
        if not self._notifier.is_heard:
            print(welcome(self._places, self._live.settings), file=sys.stderr, flush=True)

    def _hand_over_asked(self, reply: Reply) -> None:
        def failed(fault: Fault) -> None:
            reply(Refused(fault.error, fault.hint))

        # The loop holds its tasks only weakly.
        self._asking = self._contain.task("request", self._departure.ask(reply, self._leave), failed)

    def _take_pulse(self) -> None:
        # First: after an exception here, processes are still asked again.
        asyncio.get_running_loop().call_later(_PULSE_SECONDS, self._take_pulse)
        self._switchboard.take_pulse()

    def _connected(self, *ends: Any) -> None:
        self._switchboard.connected(*ends)

    def _post(self, event: events.Event) -> None:
        self._engine.post(event)
        if isinstance(event, events.WorkerDied):
            self._interrupts.worker_died(event)

    def _service_changed(self, changed: ServiceChanged) -> None:
        self._log.write("service.changed", service=changed.service, state=changed.state)
        if changed.service == stt_spec.NAME:
            self._hearing.service_changed(changed)
        elif changed.service == MODEL:
            self._model.service_changed(changed)

    def _asked_to_stop(self) -> None:
        self._is_stopping = True
        self._ending.begin()
        if self._engine.trouble is not None:
            self._end(0)  # what could not be written was not acknowledged
        asked = events.StopAsked()
        self._switchboard.hear_out(lambda: self._engine.post(asked, lambda answer: self._end(0)))

    def _reload_asked(self, reply: Reply, confirmed: bool = False) -> None:
        def done(answer: Any) -> None:
            self._notifier.ready()
            reply(answer)

        self._notifier.reloading(monotonic())
        self._reload.ask(done, confirmed)

    def _unwritable(self) -> None:
        """A stop does not wait for the failed write: its content was not acknowledged."""
        if self._is_stopping:
            self._end(0)

    def _broke(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception that nothing else contains: of a callback, or of a task."""
        error = context.get("exception")
        self._contain.caught("loop", error)
        if "future" in context and error is not None:
            self._fatal(error)

    def _fatal(self, error: BaseException) -> None:
        """Memory is ahead of disk, or the engine broke in the middle of a step: end the process."""
        if isinstance(error, JournalError):
            self._log.write("journal.failed", error=str(error))
        self._end(1)

    def _end(self, status: int) -> None:
        if not self._ended.done():
            self._ending.begin()
            self._ended.set_result(status)

    def _leave(self) -> None:
        """Bounded like a stop: what is not handed over in time is resumed by the next start."""
        if not self._ended.done():
            self._notifier.alive("changing to the next version")
            self._ending.wind()
            self._ended.set_result(_HANDING_OVER)

    async def _close(self) -> None:
        self._log.write("service.stopping")
        self._ending.tell()
        for part in (self._watch, self._upkeep, self._health):
            part.close()
        ends = (room.close(PROCESSES_END_SECONDS) for room in (self._processes, self._services))
        await asyncio.gather(*ends)
        self._switchboard.close()
        if self._clients is not None:
            self._clients.close(_FLUSH_SECONDS)
        if self.leaving is None:
            if not self._places.processes.exists():
                remove_stand_in(self._places.runtime)  # while the journal's lock keeps others from using it
            self._journal.close()
        self._log.write("service.stopped")
