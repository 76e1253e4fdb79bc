"""A process room of puppets: workers that live inside the supervisor's process and die with it.

A puppet speaks the real protocol over the real socket. It does what the first message of its turn says, verb
by verb: `say`, `tool`, `open` (a tool call without an end), `hold` (asks and holds for the answer), `steer`
(waits to be steered), `wait` (for ever), `ask` (once), `die` (in the first attempt), `perish` (in every
attempt), `finish`, `fail`; and once it has finished, `linger` (is not ready for another turn before some
puppet rings) and `ring`.
"""

import asyncio
import socket
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from ipc.channel import connected_pair
from ipc.codec import Decoder
from ipc.messages import (
    Ack,
    Answered,
    Asked,
    Assign,
    Delta,
    Failed,
    Finished,
    Hello,
    Ready,
    Steer,
    Steered,
    ToolFinished,
    ToolStarted,
    ToWorker,
    Usage,
)
from ipc.places import Places
from ipc.sockets import Wire
from supervisor.core.events import Event, WorkerDied, WorkerStarted
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.core.state import Proof
from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.processes.survivors import Survivor
from supervisor.processes.usage import TreeUsage
from supervisor.processes.worker_processes import Connected
from worker.outbox import Outbox


class PuppetPool:
    """Starts and kills at once; whoever asks for a proof gets one."""

    cell_name = "puppets"
    cell_description = "no process is held"

    def __init__(
        self,
        *,
        epoch: int,
        places: Places,
        report: Callable[[Event], None],
        connected: Connected,
        **_: object,
    ) -> None:
        self._epoch = epoch
        self._runtime = str(places.runtime)
        self._report = report
        self._connected = connected
        self._wire = Wire()
        self._puppets: dict[int, tuple[int, Puppet]] = {}

    async def open(self, handed: HandedProcesses | None = None) -> tuple[Survivor, ...]:
        """There is nothing to prepare, and nothing is left."""
        return ()

    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses:
        return HandedProcesses()

    async def close(self, deadline_seconds: float) -> None:
        self._wire.close()

    def start(self, seat: int, incarnation: int, agent: str) -> None:
        hello = Hello(self._epoch, seat, incarnation)
        frames, its_frames = connected_pair(self._runtime)
        pulse, its_pulse = connected_pair(self._runtime)
        self._connected(seat, incarnation, frames, pulse)
        puppet = Puppet(
            self._wire, its_frames.detach(), hello, lambda: self._end(incarnation, "it died by itself")
        )
        # A puppet has no pulse: the line for it is open, and nobody answers there.
        puppet.pulse = its_pulse
        self._puppets[incarnation] = (seat, puppet)
        self._report(WorkerStarted(seat, incarnation, pid=incarnation))
        puppet.begin()

    def bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None:
        done("")

    def change_limits(self, limits: object) -> None:
        """Puppets have none."""

    def change_agents(self) -> None:
        """All of them are alike."""

    def want(self, agent: str) -> None:
        self._report(RuntimeChanged(frozenset({agent}), "warm"))

    def runtime_rows(self) -> list[dict[str, Any]]:
        return []

    def kill(self, incarnation: int, cancel: str = "", since: float | None = None) -> None:
        self._end(incarnation, "killed")

    def is_known(self, incarnation: int) -> bool:
        return incarnation in self._puppets

    def usages(self) -> Mapping[int, TreeUsage]:
        return {}

    def _end(self, incarnation: int, words: str) -> None:
        found = self._puppets.pop(incarnation, None)
        if found is not None:
            seat, puppet = found
            puppet.end()
            proof = Proof(1, True, 0.1, self.cell_name)
            self._report(WorkerDied(seat, incarnation, proof, Reason(EndReason.EXITED, words)))


class Puppet:
    """One worker, without an agent."""

    # For all puppets of this process. Those that linger wait for the first; to make the second takes long.
    _rung = asyncio.Event()
    _decoder: Decoder[ToWorker] = Decoder(ToWorker)

    pulse: socket.socket

    def __init__(self, wire: Wire, line: int, hello: Hello, die: Callable[[], None]) -> None:
        self._hello = hello
        self._die = die
        self._socket = wire.line(line, self._receive)
        self._outbox = Outbox(self._socket.send, failed=lambda sent: None)
        self._steers: asyncio.Queue[Steer] = asyncio.Queue()
        self._answers: asyncio.Queue[Answered] = asyncio.Queue()
        self._running: asyncio.Task[None] | None = None
        self._acts: dict[str, Any] = {
            "say": self._say,
            "tool": self._tool,
            "open": self._open,
            "ask": self._ask,
            "hold": self._hold,
            "steer": self._be_steered,
            "wait": self._wait,
            "die": self._die_once,
            "perish": self._perish,
            "fail": self._fail,
            "finish": self._finish,
            "linger": self._linger,
            "ring": self._ring,
        }

    def begin(self) -> None:
        self._outbox.post(self._hello)
        self._outbox.post(Ready())

    def end(self) -> None:
        self._socket.close()
        self.pulse.close()
        if self._running is not None:
            self._running.cancel()

    def _receive(self, parts: list[bytes]) -> None:
        match self._decoder.decode(parts[0]):
            case Ack(frame=frame):
                self._outbox.acknowledge(frame)
            case Assign() as assign:
                # Now, not when the task begins: a Steer may follow at once.
                self._steers, self._answers = asyncio.Queue(), asyncio.Queue()
                self._running = asyncio.get_running_loop().create_task(self._play(assign))
            case Steer() as steer:
                self._steers.put_nowait(steer)
            case Answered() as answered:
                self._answers.put_nowait(answered)

    async def _play(self, assign: Assign) -> None:
        self._said = ""
        for number, verb in enumerate(assign.messages[0].text.split()):
            if await self._acts[verb](assign, number):
                break
        self._outbox.post(Ready())

    async def _say(self, assign: Assign, number: int) -> None:
        text = f"words {number} of attempt {assign.attempt}. "
        offset = assign.offset + len(self._said)
        self._outbox.post(Delta(assign.session, assign.turn, assign.attempt, offset, text))
        self._said += text

    async def _tool(self, assign: Assign, number: int) -> None:
        await self._open(assign, number)
        self._outbox.post(ToolFinished(assign.turn, assign.attempt, f"call-{number}", True, 1, "it is done"))

    async def _open(self, assign: Assign, number: int) -> None:
        frame = self._outbox.post(
            ToolStarted(
                turn=assign.turn,
                attempt=assign.attempt,
                call=f"call-{number}",
                name="shell",
                summary="true",
                arguments="{}",
                repeat="unsafe",
                offset=len(self._said),
                usage=Usage(number + 1, 1),
            )
        )
        await self._outbox.acknowledged(frame)

    async def _ask(self, assign: Assign, number: int) -> bool:
        """Asks and ends the attempt, unless an earlier one has its answer."""
        call = f"call-{number}"
        if any(tool.call == call and tool.result for tried in assign.tried for tool in tried.tools):
            return False
        await self._open(assign, number)
        self._outbox.post(Asked(assign.turn, assign.attempt, call, "clarify", "Which one?", ("a", "b")))
        return True

    async def _hold(self, assign: Assign, number: int) -> None:
        """Asks and holds for the answer, unless the turn has it."""
        if not assign.answers:
            self._outbox.post(Asked(assign.turn, assign.attempt, "", "approve", "May I?", ("yes", "no"), 1))
            answered = await self._answers.get()
            assert (answered.hold, answered.text) == (1, "yes")

    async def _be_steered(self, assign: Assign, number: int) -> None:
        """Unless an earlier attempt was."""
        if len(assign.messages) == 1:
            steer = await self._steers.get()
            self._outbox.post(Steered(assign.turn, assign.attempt, steer.message))

    async def _wait(self, assign: Assign, number: int) -> None:
        await asyncio.Event().wait()

    async def _die_once(self, assign: Assign, number: int) -> None:
        if assign.attempt == 1:
            await self._perish(assign, number)

    async def _perish(self, assign: Assign, number: int) -> None:
        self._die()
        await self._wait(assign, number)

    async def _fail(self, assign: Assign, number: int) -> None:
        self._outbox.post(Failed(assign.turn, assign.attempt, "it did not work", "try something else"))

    async def _finish(self, assign: Assign, number: int) -> None:
        self._finished = self._outbox.post(Finished(assign.turn, assign.attempt, self._said or "done"))

    async def _linger(self, assign: Assign, number: int) -> None:
        await self._rung.wait()

    async def _ring(self, assign: Assign, number: int) -> None:
        await self._outbox.acknowledged(self._finished)
        self._rung.set()
