"""The wiring; it decides nothing. The order of a start: lock, load, sweep, recover, doors, READY."""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from ipc.codec import encode
from ipc.endpoints import Places, make_private
from ipc.messages import Delta, ModelEndpoint, Noted
from ipc.sockets import Wire
from supervisor.briefing import Briefing
from supervisor.care import Care
from supervisor.clips import ClipStore
from supervisor.clock import Clock
from supervisor.control import Control
from supervisor.core import events
from supervisor.core.effects import Answer
from supervisor.core.model import ModelState, Policy, State
from supervisor.engine import Engine
from supervisor.engine import Processes as Workers
from supervisor.feed import Feed
from supervisor.hearing import Hearing
from supervisor.journal.errors import JournalUnwritable
from supervisor.journal.journal import Journal
from supervisor.log import Log
from supervisor.notify import Notifier
from supervisor.processes.cells import Limits
from supervisor.processes.host import Processes
from supervisor.services import speech
from supervisor.services.embedded import embedded_model
from supervisor.services.services import Services
from supervisor.settings import Settings, cautions, model_endpoint
from supervisor.switchboard import Identities, Switchboard
from supervisor.views import Host, Reading, Views

# Together under a second: a person who presses Ctrl-C is waiting.
_WORKERS_END_SECONDS = 0.4
_SERVICES_END_SECONDS = 0.4
_PULSE_SECONDS = 1.0
# Variables whose names end so hold secrets, by everybody's habit.
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")


class ProcessRoom(Workers, Identities, Protocol):
    """Where workers live. The real one is Processes; a benchmark may play the workers itself."""

    @property
    def cell_name(self) -> str: ...
    @property
    def cell_description(self) -> str: ...
    def readings(self) -> Mapping[int, Reading]: ...
    async def open(self) -> None: ...
    async def close(self, deadline_seconds: float) -> None: ...


class App:
    """One life of the supervisor."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        journal: Journal,
        make_processes: Callable[..., ProcessRoom] = Processes,
    ) -> None:
        self._places = places
        self._settings = settings
        self._journal = journal
        self._make_processes = make_processes
        state = journal.load(policy(settings))
        contents = (session.turn.content_at for session in state.sessions.values() if session.turn)
        self._clock = Clock(not_before=max((journal.read.newest_at(), *contents)))
        self._log = Log(self._clock)
        self._notifier = Notifier()
        self._is_stopping = False
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._embedded = None if settings.model else embedded_model(places.models)
        self._endpoint = model_endpoint(settings)
        self._wire = Wire()
        self._wire_up(state)

    def _wire_up(self, state: State) -> None:
        places = self._places
        self._processes = self._make_processes(
            epoch=self._journal.epoch,
            places=places,
            cell=self._settings.workers.cell,
            limits=limits(self._settings),
            environment=worker_environment(self._settings, os.environ),
            report=self._worker_changed,
        )
        self._make_services()
        self._feed = Feed(self._journal.read, self._spoken)
        briefing = Briefing(self._journal.read, self._settings, lambda: self._endpoint)
        self._switchboard = Switchboard(identities=self._processes, feed=self._feed, brief=briefing)
        self._engine = Engine(
            state,
            clock=self._clock,
            journal=self._journal,
            processes=self._processes,
            switchboard=self._switchboard,
            hearing=self._hearing,
            feed=self._feed,
            log=self._log,
            passing=self._passing,
            fatal=self._fatal,
        )
        self._care = Care(
            journal=self._journal,
            path=places.journal,
            keeping=self._settings.journal,
            clock=self._clock,
            log=self._log,
        )
        self._clips = ClipStore(
            folder=places.clips,
            stt=self._settings.stt,
            known=self._journal.read,
            in_use=lambda: clips_in_use(state),
            clock=self._clock,
            log=self._log,
        )
        self._control = Control(
            care=self._care,
            clips_folder=places.clips,
            engine=self._engine,
            feed=self._feed,
            views=self._make_views(state),
            settings=self._settings,
            stop=lambda: self._end(0),
        )

    def _make_services(self) -> None:
        """The children that are not workers, and the ears that speak with one of them."""
        places = self._places
        wanted = (
            self._embedded.spec if self._embedded else None,
            speech.stt_service(self._settings, places.models),
        )
        self._hearing = Hearing(
            stt=self._settings.stt,
            clips=places.clips,
            post=lambda event: self._engine.post(event),
            progress=self._heard_so_far,
        )
        self._services = Services(
            [spec for spec in wanted if spec is not None],
            wire=self._wire,
            endpoint=places.services,
            logs=places.logs,
            report=self._service_changed,
            other=self._hearing.frame_arrived,
        )
        self._hearing.open(self._services)

    def _make_views(self, state: State) -> Views:
        host = Host(
            version=own_version(),
            home=str(self._places.state),
            started_at=self._clock.now(),
            cell=lambda: self._processes.cell_description,
            model=self._model_name,
            cautions=cautions(self._settings),
            trouble=lambda: self._engine.trouble,
            voice=self._voice_hint,
            busy_mode=lambda session: self._settings.for_session(session).busy,
        )
        return Views(
            state=state,
            clock=self._clock,
            tables=self._journal.read,
            readings=self._processes.readings,
            services=self._services.rows,
            host=host,
        )

    async def run(self) -> int:
        """From load to exit status."""
        await self._open()
        try:
            return await self._ended
        finally:
            await self._close()

    async def _open(self) -> None:
        make_private(self._places.runtime)
        make_private(self._places.workers)
        make_private(self._places.clips)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._broke)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop)
        frames = self._wire.router(self._places.frames, self._switchboard.frame_arrived, handover=True)
        pulse = self._wire.router(self._places.pulse, self._switchboard.pulse_arrived)
        self._switchboard.open(self._engine, frames, pulse)
        await self._processes.open()
        self._engine.post(events.Recovered(), self._recovered)
        if self._endpoint is not None:
            self._engine.post(events.ModelChanged(ModelState.READY))

    def _recovered(self, answer: Answer) -> None:
        """Only now may anybody speak to us: whatever the last life left is settled and committed."""
        socket = self._wire.router(self._places.control, self._control.request_arrived)
        self._feed.open(socket)
        self._control.open(socket)
        self._opening = asyncio.ensure_future(self._services.open())
        self._take_pulse()
        self._care.open()
        self._clips.open()
        self._notifier.ready()
        self._log.write("service.ready", epoch=self._journal.epoch, cell=self._processes.cell_name)
        print(_welcome(self._places, self._settings), file=sys.stderr, flush=True)

    def _take_pulse(self) -> None:
        self._switchboard.take_pulse()
        asyncio.get_running_loop().call_later(_PULSE_SECONDS, self._take_pulse)

    def _worker_changed(self, event: events.WorkerStarted | events.WorkerDied) -> None:
        self._engine.post(event)

    def _service_changed(self, changed: events.ServiceChanged) -> None:
        """What the embedded model's state means for turns."""
        self._log.write("service.changed", service=changed.service, state=changed.state)
        if changed.service == speech.NAME:
            self._hearing.service_changed(changed)
        if self._embedded is None or changed.service != self._embedded.spec.name:
            return
        if changed.state == "ready":
            embedded = self._embedded
            self._endpoint = ModelEndpoint(changed.address, embedded.name, embedded.api_key)
            self._engine.post(events.ModelChanged(ModelState.READY))
            print("the embedded model is ready", file=sys.stderr, flush=True)
        elif changed.state == "failed":
            self._engine.post(events.ModelChanged(ModelState.FAILED, changed.detail, changed.hint))
        elif self._engine.state.model.state is not ModelState.FAILED:
            # A failed one is tried again and again; until it serves, its fault is the better answer.
            self._engine.post(events.ModelChanged(ModelState.WAITING))

    def _heard_so_far(self, session: str, message: str, text: str) -> None:
        self._feed.delta(session, encode(Noted(message, 0, text)))

    def _voice_hint(self) -> str:
        """Who never speaks need not hear of it; who has weights or has spoken must."""
        fault = self._hearing.fault
        has_weights = (self._places.models / self._settings.stt.model).exists()
        if fault is None or not (self._hearing.was_used or has_weights):
            return ""
        return f"voice is not understood: {fault[0]}; {fault[1]}"

    def _model_name(self) -> str:
        state = self._engine.state.model.state.value
        if self._embedded:
            return f"embedded {self._embedded.name} (a demonstration), {state}"
        return f"{self._endpoint.name} at {self._endpoint.base_url}" if self._endpoint else state

    def _spoken(self, session_name: str) -> Delta | None:
        """What the running attempt of a session has said so far, for a client that joins in the middle."""
        session = self._engine.state.sessions.get(session_name)
        turn = session.turn if session else None
        attempt = turn.attempt if turn else None
        if turn is None or attempt is None or attempt.verdict is not None:
            return None
        said = attempt.said + self._switchboard.said(attempt.who)
        return Delta(session_name, turn.id, attempt.number, 0, said) if said else None

    def _asked_to_stop(self) -> None:
        self._is_stopping = True
        if self._engine.trouble is not None:
            self._end(0)  # what could not be written was promised to nobody
        self._engine.post(events.StopAsked(), lambda answer: self._end(0))

    def _passing(self, error: BaseException) -> tuple[str, str] | None:
        """A disk that is full or refuses now may take the same records later."""
        if not isinstance(error, JournalUnwritable):
            return None
        if self._engine.trouble is None:
            self._log.write("journal.waits", error=error.fault)
        if self._is_stopping:
            self._end(0)
        return error.fault, error.hint

    def _broke(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A bug in a callback would leave a service that answers and does nothing: better the next life."""
        error = context.get("exception")
        trace = traceback.format_tb(error.__traceback__) if error else []
        print("".join(trace), context["message"], type(error).__name__, file=sys.stderr, flush=True)
        self._end(1)

    def _fatal(self, error: BaseException) -> None:
        """The journal could not be written: memory is ahead of disk, so this life ends."""
        self._log.write("journal.failed", error=str(error))
        self._end(1)

    def _end(self, status: int) -> None:
        if not self._ended.done():
            self._notifier.stopping()
            self._ended.set_result(status)

    async def _close(self) -> None:
        self._log.write("service.stopping")
        self._care.close()
        self._clips.close()
        ending = (self._processes.close(_WORKERS_END_SECONDS), self._services.close(_SERVICES_END_SECONDS))
        await asyncio.gather(*ending)
        self._wire.close()
        self._journal.close()
        self._log.write("service.stopped")


def clips_in_use(state: State) -> set[str]:
    """The clips whose words are still to come."""
    waiting = (message for session in state.sessions.values() for message in session.waiting)
    return {message.clip for message in waiting if message.is_transcribing}


def policy(settings: Settings) -> Policy:
    """The settings the rules depend on."""
    turns = settings.turns
    return Policy(
        busy_seats=settings.workers.seats,
        spares=settings.workers.spares,
        turns_per_worker_max=settings.workers.turns_max,
        attempts_max=turns.attempts_max,
        waiting_max=turns.waiting_max,
        resume=turns.resume,
        freshness_seconds=turns.freshness_seconds,
        deadline_seconds=turns.deadline_seconds,
        silence_seconds=turns.silence_seconds,
        echo=settings.stt.echo,
    )


def limits(settings: Settings) -> Limits:
    """What one worker's cell may take."""
    workers = settings.workers
    return Limits(workers.memory_bytes_max, workers.processes_max, workers.files_max)


def worker_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """What workers inherit: all but secrets. The model's key reaches them with the turn, not through here."""
    keys = {settings.stt.api_key_env, settings.model.api_key_env if settings.model else None}
    return {
        name: value
        for name, value in environment.items()
        if name not in keys and not name.upper().endswith(_SECRET_ENDINGS)
    }


def own_version() -> str:
    try:
        return version("hermes-supervisor")
    except PackageNotFoundError:
        return "0.1.0+source"


def _welcome(places: Places, settings: Settings) -> str:
    """What to type next, for whoever started this in a terminal."""
    command = Path(sys.executable).with_name("hermesctl")
    hermesctl = str(command) if command.exists() else f"{sys.executable} -m hermesctl"
    # Everything under one folder means that it was named, and must be named again elsewhere.
    if places.config == places.state:
        hermesctl += f" --home {places.state}"
    model = settings.model.name if settings.model else "the embedded model, which takes a moment to load"
    return (
        f"\nhermes supervisor is ready ({model}). In another terminal:\n\n"
        f'  {hermesctl} send demo "What is the capital of France?"\n'
        f"  {hermesctl} status\n\nCtrl-C stops it.\n"
    )
