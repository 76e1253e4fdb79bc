"""The real process room without a supervisor: workers are started and say that they are ready, no more."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from ipc.channel import Channel, connected_pair
from ipc.codec import Decoder
from ipc.messages import FromWorker, Ready
from ipc.places import Places, find_places, make_private
from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.processes.cells import Limits
from supervisor.processes.worker_processes import Processes
from supervisor.processes.zygote_client import Program
from supervisor.workers.link import UNSENT_BYTES_MAX
from tests.waiting import DEADLINE_SECONDS, soon

_decoder: Decoder[FromWorker] = Decoder(FromWorker)


class Host:
    """Starts one worker at a time."""

    def __init__(self, places: Places, program: Program) -> None:
        self.places = places
        self._events: asyncio.Queue[WorkerStarted | WorkerDied | WorkerStuck] = asyncio.Queue()
        self._ready = asyncio.Event()
        self._incarnation = 0
        # The limits a worker has by default, as far as they take time to set.
        limits = Limits(processes_max=256, files_max=4096)
        self.processes = Processes(
            epoch=1,
            places=places,
            cell="auto",
            limits=limits,
            report=self._events.put_nowait,
            program=program,
            connected=self._connected,
        )
        self._lines: list[Channel] = []

    async def open(self) -> None:
        make_private(self.places.runtime)
        await self.processes.open()
        await soon(lambda: self.processes.state == "ready")

    async def start(self) -> WorkerStarted:
        """Returns when its Ready has arrived."""
        self._incarnation += 1
        self._ready.clear()
        self.processes.start(0, self._incarnation)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._ready.wait()
            started = await self._events.get()
        assert isinstance(started, WorkerStarted), started
        return started

    async def ready(self, begin: Callable[[], None]) -> None:
        """Waits for the Ready of a worker that somebody else starts."""
        self._ready.clear()
        begin()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._ready.wait()

    async def kill(self) -> None:
        self.processes.kill(self._incarnation)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._events.get()

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """The ends of lines for a worker that is started otherwise."""
        frames, its_frames = connected_pair(str(self.places.runtime))
        pulse, its_pulse = connected_pair(str(self.places.runtime))
        self._connected(0, 0, frames, pulse)
        return its_frames, its_pulse

    def _connected(self, seat: int, incarnation: int, frames: socket.socket, pulse: socket.socket) -> None:
        for line in self._lines:
            line.close()
        self._lines = [
            Channel(frames, self._heard, lambda reason: None, UNSENT_BYTES_MAX),
            Channel(pulse, lambda parts: None, lambda reason: None, UNSENT_BYTES_MAX),
        ]

    def _heard(self, parts: list[bytes]) -> None:
        if isinstance(_decoder.decode(parts[1]), Ready):
            self._ready.set()


@contextlib.asynccontextmanager
async def opened(home: Path, program: Program | None = None) -> AsyncIterator[Host]:
    make_private(home)
    host = Host(find_places(str(home)), program or Program())
    try:
        await host.open()
        yield host
    finally:
        await host.processes.close(DEADLINE_SECONDS)
