"""One run of the supervisor, from the loaded journal to its exit status.

The order of a start: the lock is taken (entry.py), the journal loaded, orphans swept, the recovery decided
and committed, the control socket opened, READY. Nothing is answered before the recovery is durable. A run
ends by a stop, by an error that leaves memory ahead of the journal, or by a handoff to the next image.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ipc.messages import Refused
from ipc.places import Places, remove_stand_in
from ipc.server import Server
from ipc.time_budgets import PROCESSES_END_SECONDS
from supervisor.clients.changes import Reply
from supervisor.clock import monotonic
from supervisor.config.derived import policy
from supervisor.config.settings import Settings
from supervisor.containment import Fault, trace_of
from supervisor.core import events
from supervisor.core.effects import Answer
from supervisor.handoff.handover import Handover
from supervisor.host import signals, threads
from supervisor.host.banner import welcome
from supervisor.journal.asking import asked
from supervisor.journal.errors import JournalError
from supervisor.journal.opening import ChosenJournal
from supervisor.process_pool import ProcessPool
from supervisor.processes.worker_processes import Processes
from supervisor.telemetry import log_file
from supervisor.wiring import Parts
from supervisor.workers.workspaces import sessions_of

# Time to send the last answers to connected clients.
_FLUSH_SECONDS = 0.1
_PULSE_SECONDS = 1.0
# No exit status: the next image of this process continues.
_HANDING_OVER = -1


class App:
    """One run; its parts are in `parts`."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        journal: ChosenJournal,
        make_processes: Callable[..., ProcessPool] = Processes,
        handed: Handover | None = None,
    ) -> None:
        """`handed` is the handover of an earlier image of this process."""
        self.leaving: Handover | None = None
        self._handed = handed
        self._journal = journal
        self._policy = policy(settings)
        model_key = handed.model_key if handed else ""
        self._make_parts = partial(Parts, places, settings, journal, self, make_processes, model_key)
        self._parts: Parts
        self._ended: asyncio.Future[int]
        self._is_stopping = False

    async def run(self) -> int:
        """Run from load to exit status."""
        self._ended = asyncio.get_running_loop().create_future()
        await self._start()
        try:
            status = await self._ended
            if status == _HANDING_OVER:
                # Before the last check of requests to this image: a stop is seen here or by the next image.
                await signals.hold_back()
                handover = await self._parts.departure.gather(PROCESSES_END_SECONDS)
                if self._is_stopping:
                    return 0  # kept workers end with this process, and the next start resumes their turns
                self.leaving = handover
            return status
        finally:
            await self._close()

    async def _start(self) -> None:
        """Load the journal, sweep, and post the recovery; the sockets are opened when it is committed."""
        journal, handed = self._journal, self._handed
        state = await asked(journal.asking, lambda: journal.load(self._policy))
        parts = self._make_parts(state, await asked(journal.asking, journal.read.newest_at))
        self._parts = parts
        loop = asyncio.get_running_loop()
        loop.set_default_executor(threads.executor())
        loop.set_exception_handler(self._broke)
        parts.folders.take(handed.folders if handed else None)
        await asyncio.to_thread(parts.workspaces.take_over)
        signals.listen(self._asked_to_stop, lambda: self.reload_asked(lambda answer: None))
        parts.router.open(parts.engine, parts.processes)
        # Ends the orphans of an earlier run, but for workers that were handed over.
        survivors = await parts.processes.open(handed.processes if handed else None)
        for worker in handed.workers if handed else ():
            parts.router.recall(*worker)
        journal.refuse_loop()
        workspaces = [each.workspace for each in survivors]
        sessions = await asked(journal.asking, lambda: sessions_of(workspaces, journal.read))
        left = tuple(each.orphan(sessions.get(each.workspace)) for each in survivors)
        kept = (handed.kept, handed.incarnations) if handed else ((), 0)
        parts.engine.post(events.Recovered(*kept, left), self._recovered)
        parts.model.open()

    def _recovered(self, answer: Answer) -> None:
        """Open the control socket: the recovery is decided and committed."""
        parts = self._parts
        # First: a client may query the services as soon as it can connect.
        parts.services.open(self._handed.all_services if self._handed else ())
        sessions = parts.state.sessions
        parts.subscriptions.open(parts.streamed, lambda name: sessions[name].seq if name in sessions else 0)
        if parts.sharing is not None:
            parts.sharing.open()
        # The control socket last: a client that can connect to it finds the other one open too.
        for path, control in (
            (parts.places.gateway, parts.gateway_control),
            (parts.places.control, parts.control),
        ):
            server = Server(path, control.request_arrived, left=control.client_left)
            control.open(server)
            parts.client_sockets.add(server)
        parts.router.ask_recalled()
        self._take_pulse()
        parts.health.open()
        parts.upkeep.open()
        parts.open_owners()
        parts.notifier.ready()
        parts.watch.open()
        parts.log.wrote = log_file.LogFile(parts.places.logs / log_file.NAME).wrote
        parts.log.write("service.ready", epoch=parts.journal.epoch, cell=parts.processes.cell_name)
        if not parts.notifier.is_heard:
            print(welcome(parts.places, parts.live.settings), file=sys.stderr, flush=True)

    def _take_pulse(self) -> None:
        # First: after an exception here, processes are still asked again.
        asyncio.get_running_loop().call_later(_PULSE_SECONDS, self._take_pulse)
        self._parts.router.take_pulse()

    def end(self, status: int) -> None:
        if not self._ended.done():
            self._parts.shutdown.begin()
            self._ended.set_result(status)

    def fatal(self, error: BaseException) -> None:
        """Memory is ahead of disk, or the engine broke in the middle of a step: end the process."""
        if isinstance(error, JournalError):
            self._parts.log.write("journal.failed", error=str(error), trace=trace_of(error.__cause__))
        self.end(1)

    def unwritable(self) -> None:
        """A stop does not wait for the failed write: its content was not acknowledged."""
        if self._is_stopping:
            self.end(0)

    def reload_asked(self, reply: Reply, confirmed: bool = False) -> None:
        def done(answer: Any) -> None:
            self._parts.notifier.ready()
            reply(answer)

        self._parts.notifier.reloading(monotonic())
        self._parts.reload.ask(done, confirmed)

    def hand_over_asked(self, reply: Reply) -> None:
        def failed(fault: Fault) -> None:
            reply(Refused(fault.error, fault.hint, code="internal"))

        ask = self._parts.departure.ask(reply, self._leave)
        # The loop holds its tasks only weakly.
        self._asking = self._parts.contain.task("request", ask, failed)

    def _asked_to_stop(self) -> None:
        parts = self._parts
        self._is_stopping = True
        parts.shutdown.begin()
        if parts.engine.trouble is not None:
            self.end(0)  # what could not be written was not acknowledged
        asked = events.StopAsked()
        parts.router.after_frames(lambda: parts.engine.post(asked, lambda answer: self.end(0)))

    def _broke(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an exception that nothing else contains: of a callback, or of a task."""
        error = context.get("exception")
        self._parts.contain.caught("loop", error)
        if "future" in context and error is not None:
            self.fatal(error)

    def _leave(self) -> None:
        """Bounded like a stop: what is not handed over in time is resumed by the next start."""
        if not self._ended.done():
            self._parts.notifier.alive("changing to the next version")
            self._parts.shutdown.wind()
            self._ended.set_result(_HANDING_OVER)

    async def _close(self) -> None:
        parts = self._parts
        parts.log.write("service.stopping")
        parts.shutdown.tell()
        for part in (parts.watch, parts.upkeep, parts.health):
            part.close()
        ends = (each.close(PROCESSES_END_SECONDS) for each in (parts.processes, parts.services))
        await asyncio.gather(*ends)
        parts.router.close()
        parts.client_sockets.close(_FLUSH_SECONDS)
        if self.leaving is None:
            if not parts.places.processes.exists():
                remove_stand_in(parts.places.runtime)  # while the journal's lock excludes other supervisors
            parts.journal.close()
        parts.log.write("service.stopped")
