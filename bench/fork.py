"""From the order for a worker to its Ready, beside a bare fork of an equally warm process.

Ours makes a cell on the way: a keeper, namespaces of its own, limits, and a second fork for the worker.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.goals import Outcome, rounds_asked, tell
from bench.host import Host, opened
from ipc.sockets import LoopSocket, Wire

TITLE = "A worker from the zygote, beside a bare fork"
ROUNDS = 100
_WARM_UP = 5


class RawForks:
    """A warm process that forks when told to, and the socket its children speak to."""

    def __init__(self, wire: Wire, path: Path) -> None:
        self._arrived = asyncio.Event()
        self._identity = b""
        self._socket: LoopSocket = wire.router(str(path), self._heard)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.limits", "fork", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._words = self._process.stdin, self._process.stdout
        assert self._words.read(1) == b"w"

    async def once(self) -> float:
        self._arrived.clear()
        began = time.perf_counter()
        self._orders.write(b"f")
        await self._arrived.wait()
        spent = time.perf_counter() - began
        self._socket.send([self._identity, b"end"])
        assert self._words.read(1) == b"e"
        return spent * 1000

    def close(self) -> None:
        self._orders.close()
        self._words.close()
        self._process.wait()

    def _heard(self, parts: list[bytes]) -> None:
        self._identity = parts[0]
        self._arrived.set()


async def start_once(host: Host) -> float:
    began = time.perf_counter()
    await host.start()
    spent = time.perf_counter() - began
    await host.kill()
    return spent * 1000


async def compare(home: Path, rounds: int) -> list[Outcome]:
    wire = Wire()
    times: tuple[list[float], list[float]] = ([], [])
    async with opened(home, wire) as host:
        raw = RawForks(wire, home / "raw.sock")
        for _ in range(rounds + _WARM_UP):
            times[0].append(await start_once(host))
            times[1].append(await raw.once())
        raw.close()
        cell = host.processes.cell_name
    wire.close()
    ours, limit = times[0][_WARM_UP:], times[1][_WARM_UP:]
    return [Outcome(f"worker ready, in a {cell} cell", ours, limit, "ms", "at most", 2)]


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        return uvloop.run(compare(Path(folder), rounds))


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
