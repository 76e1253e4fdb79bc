"""The supervisor's side of the wire, played by a test: real sockets and a real worker process."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ipc.channel import Channel, connected_pair
from ipc.codec import Decoder, encode
from ipc.messages import (
    Ack,
    AgentSpec,
    Assign,
    Delta,
    Failed,
    Finished,
    FromWorker,
    Message,
    ModelEndpoint,
    PastAnswer,
    PastAttempt,
    PastTurn,
    Ready,
    TurnMessage,
)
from ipc.service_messages import CellSpec, Fork
from ipc.zmtp import Sent
from supervisor.workers.link import UNSENT_BYTES_MAX
from tests import warm

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60
_Found = TypeVar("_Found")


def assign(
    base_url: str,
    text: str = "hello",
    *,
    turn: str = "s/1",
    attempt: int = 1,
    kind: str = "builtin",
    history: tuple[PastTurn, ...] = (),
    tried: tuple[PastAttempt, ...] = (),
    answers: tuple[PastAnswer, ...] = (),
) -> Assign:
    return Assign(
        session="s",
        turn=turn,
        attempt=attempt,
        messages=(TurnMessage("m_1", text),),
        agent=AgentSpec("default", kind),
        model=ModelEndpoint(base_url, "fake"),
        history=history,
        tried=tried,
        answers=answers,
    )


class Peer:
    """Receives and keeps every frame; acknowledges those that `acknowledges` says yes to."""

    def __init__(self, folder: Path, acknowledges: Callable[[FromWorker], bool]) -> None:
        frames, its_frames = connected_pair(str(folder))
        pulse, its_pulse = connected_pair(str(folder))
        self._its_ends = (its_frames, its_pulse)
        self.fork = Fork(
            epoch=7,
            seat=3,
            incarnation=41,
            log_path="",
            cell=CellSpec("sweep"),
            frames=its_frames.fileno(),
            pulse=its_pulse.fileno(),
        )
        self.frames: list[FromWorker] = []
        self.numbers: list[int] = []
        self.echoes: list[bytes] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._acknowledges = acknowledges
        self._decoder: Decoder[FromWorker] = Decoder(FromWorker)
        self._arrived = asyncio.Event()
        self._frames = Channel(frames, self._receive, lambda reason: None, UNSENT_BYTES_MAX)
        self._pulse = Channel(pulse, self._receive_echo, lambda reason: None, UNSENT_BYTES_MAX)

    async def start(self, module: str, start: "type[subprocess.Popen[bytes]]") -> None:
        process = self.process = start(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(self.fork.frames, self.fork.pulse),
            start_new_session=True,
        )
        for end in self._its_ends:
            end.close()
        assert process.stdin is not None
        with process.stdin as orders:
            orders.write(encode(self.fork))
        # Or `communicate` would close it once more.
        process.stdin = None
        await self.until(lambda: self.of(Ready))

    async def exit(self) -> tuple[int, str]:
        """The worker's exit status and log, once it has gone by itself."""
        assert self.process is not None
        _, log = await asyncio.to_thread(self.process.communicate, timeout=PATIENCE_SECONDS)
        return self.process.returncode, log.decode()

    async def end(self) -> str:
        """Breaks the protocol, upon which the worker goes; gives its log."""
        self.send_bytes(b"")
        _, log = await self.exit()
        return log

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            # With what it forked: a child that lives on would hold the pipe open.
            os.killpg(self.process.pid, signal.SIGKILL)
            await asyncio.to_thread(self.process.communicate)
        for end in self._its_ends:
            end.close()
        self._frames.close()
        self._pulse.close()

    def send(self, message: Message) -> None:
        assert self._frames.send([encode(message)]) is Sent.SENT

    def send_bytes(self, content: bytes) -> None:
        assert self._frames.send([content]) is Sent.SENT

    def acknowledge(self) -> None:
        """All that has come, whatever `acknowledges` says."""
        self.send(Ack(self.numbers[-1]))

    def ping(self, content: bytes) -> Sent:
        return self._pulse.send([content])

    async def until(self, found: Callable[[], _Found]) -> _Found:
        """What `found` gives, as soon as it gives something."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (result := found()):
                self._arrived.clear()
                await self._arrived.wait()
        return result

    async def run(self, work: Assign) -> Finished | Failed:
        """Has a turn answered, and waits for the worker to be free again."""
        readies, ends = len(self.of(Ready)), len(self.of(Finished, Failed))
        self.send(work)
        await self.until(lambda: len(self.of(Ready)) > readies)
        (end,) = self.of(Finished, Failed)[ends:]
        assert isinstance(end, Finished | Failed)
        return end

    def of(self, *kinds: type[Message]) -> list[FromWorker]:
        return [frame for frame in self.frames if isinstance(frame, kinds)]

    def spoken(self, turn: str) -> str:
        """All that was said in a turn; its offsets must leave no gap and tell nothing twice."""
        text = ""
        for frame in self.frames:
            if isinstance(frame, Delta) and frame.turn == turn:
                assert frame.offset == len(text)
                assert frame.text
                text += frame.text
        return text

    def _receive(self, parts: list[bytes]) -> None:
        number, content = parts
        frame = self._decoder.decode(content)
        self.frames.append(frame)
        self.numbers.append(int.from_bytes(number, "big"))
        self._arrived.set()
        if self._acknowledges(frame):
            self.send(Ack(self.numbers[-1]))

    def _receive_echo(self, parts: list[bytes]) -> None:
        self.echoes.append(parts[0])
        self._arrived.set()


@asynccontextmanager
async def worker(
    folder: Path,
    acknowledges: Callable[[FromWorker], bool] = lambda _: True,
    module: str = "tests.worker.one_worker",
    start: "type[subprocess.Popen[bytes]]" = warm.Popen,
) -> AsyncIterator[Peer]:
    """A worker that has said it is ready, killed at the end."""
    peer = Peer(folder, acknowledges)
    try:
        await peer.start(module, start)
        yield peer
    finally:
        await peer.stop()
