"""The lifecycle of a worker: Hello, set-up, Ready, one Assign at a time; beats, and pulses of a thread."""

import asyncio
import os
import threading

from ipc.bounds import sentence
from ipc.codec import Decoder
from ipc.errors import WireError
from ipc.messages import (
    Ack,
    AgentFault,
    Answered,
    Assign,
    Beat,
    Cancel,
    Hello,
    Kept,
    Ready,
    Resend,
    Setup,
    Steer,
    ToWorker,
)
from ipc.service_messages import Fork
from ipc.sockets import Wire
from ipc.zmtp import Sent
from worker import descendants
from worker.agent_setup import Agents
from worker.attempt import Attempt
from worker.cell import go_home
from worker.log import log
from worker.outbox import Outbox

BEAT_SECONDS = 1.0
EXIT_OK = 0
# As in sysexits.h: an internal error, and a peer that violates the protocol.
EXIT_BUG = 70
EXIT_PROTOCOL = 76
# Made before the fork: making it takes as long as connecting does.
_decoder: Decoder[ToWorker] = Decoder(ToWorker)


class Lifecycle:
    """One incarnation, from its first frame to its exit status."""

    def __init__(self, fork: Fork) -> None:
        self._fork = fork
        self._wire = Wire()
        self._agents = Agents()
        self._setting_up: asyncio.Task[None] | None = None
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._echo_begun = threading.Event()
        self._attempt: Attempt | None = None
        self._running: asyncio.Task[None] | None = None
        self._socket = self._wire.line(fork.frames, self._receive)
        self._outbox = Outbox(self._socket.send, self._not_sent)

    async def run(self) -> int:
        """Runs until it is killed, or until the protocol is violated; returns the exit status."""
        fork = self._fork
        descendants.take_in()
        self._outbox.post(Hello(fork.epoch, fork.seat, fork.incarnation, fork.has_setup))
        if not fork.has_setup:
            self._ready()
        # A thread that runs C code only: it answers however long an agent holds the interpreter lock.
        echo = (fork.pulse, self._echo_begun.set)
        threading.Thread(target=self._wire.echo, args=echo, name="echo", daemon=True).start()
        self._beat()
        return await self._end

    def _ready(self) -> None:
        """Sends the first Ready."""
        self._outbox.post(Ready())
        log("worker.ready", seat=self._fork.seat, incarnation=self._fork.incarnation, pid=os.getpid())

    def _set_up(self, setup: Setup) -> None:
        if not self._fork.has_setup or self._setting_up is not None:
            self._finish(EXIT_PROTOCOL, "worker.set_up_unasked")
            return
        self._setting_up = asyncio.create_task(self._set_up_then_ready(setup))

    async def _set_up_then_ready(self, setup: Setup) -> None:
        fault = await self._agents.set_up(setup)
        if fault is not None and fault.cannot_start:
            self._outbox.post(AgentFault(sentence(fault.error), sentence(fault.hint)))
        self._ready()

    def _beat(self) -> None:
        self._outbox.post_fleeting(Beat())
        if self._attempt is not None:
            descendants.reap()
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def _not_sent(self, outcome: Sent) -> None:
        """The outbox holds less than the socket does, so this cannot be a slow supervisor."""
        self._finish(EXIT_BUG, "worker.send_failed", outcome=outcome.value)

    def _receive(self, parts: list[bytes]) -> None:
        try:
            message = _decoder.decode(parts[0])
        except WireError as error:
            self._finish(EXIT_PROTOCOL, "worker.frame_unreadable", fault=type(error).__name__)
            return
        match message:
            case Ack(frame=frame):
                self._outbox.acknowledge(frame)
            case Setup():
                self._set_up(message)
            case Assign():
                self._assign(message)
            case Steer(turn=turn, attempt=attempt):
                running = self._attempt
                if running and (running.assign.turn, running.assign.attempt) == (turn, attempt):
                    running.steer(message)
            case Cancel(turn=turn):
                if self._attempt and self._attempt.assign.turn == turn:
                    self._attempt.cancel()
            case Answered(turn=turn, attempt=attempt):
                running = self._attempt
                if running and (running.assign.turn, running.assign.attempt) == (turn, attempt):
                    running.answered(message)
            case Resend(after=after):
                self._outbox.resend(after)
                running = self._attempt
                self._outbox.post(
                    Kept(running.assign.turn, running.assign.attempt) if running is not None else Kept()
                )

    def _assign(self, assign: Assign) -> None:
        if self._attempt is not None:
            running = self._attempt.assign.turn
            self._finish(EXIT_PROTOCOL, "worker.assigned_twice", running=running, assigned=assign.turn)
            return
        # The echo needs the interpreter lock to begin, and an agent may keep it.
        self._echo_begun.wait()
        go_home()
        log("attempt.opened", turn=assign.turn, attempt=assign.attempt)
        os.environ.update(assign.secrets)
        self._attempt = Attempt(assign, self._outbox)
        self._running = asyncio.create_task(self._serve(self._attempt))
        self._running.add_done_callback(self._served)

    async def _serve(self, attempt: Attempt) -> None:
        await attempt.run(self._answer, descendants.end_all)
        log("attempt.ended", turn=attempt.assign.turn, attempt=attempt.assign.attempt)
        if attempt.has_left_processes:
            # The cell ends with its worker, and the next turn finds another one.
            self._finish(EXIT_BUG, "attempt.left_processes", turn=attempt.assign.turn)
            return
        if attempt.has_left_threads:
            # They may act at any time: the session's next turn gets another process.
            await self._outbox.emptied()
            self._finish(EXIT_OK, "attempt.left_threads", turn=attempt.assign.turn)
            return
        await self._outbox.room()
        # Free before Ready is sent: the next Assign may follow at once.
        self._attempt = None
        self._outbox.post(Ready())

    async def _answer(self, attempt: Attempt) -> str:
        agent = await self._agents.agent(attempt.assign.agent)
        return await agent.answer(attempt)

    def _served(self, running: asyncio.Task[None]) -> None:
        if running.cancelled():
            self._finish(EXIT_BUG, "attempt.cancelled")
        elif error := running.exception():
            self._finish(EXIT_BUG, "attempt.broke", error=type(error).__name__)

    def _finish(self, status: int, verb: str, **why: object) -> None:
        if not self._end.done():
            log(verb, **why)
            self._end.set_result(status)
