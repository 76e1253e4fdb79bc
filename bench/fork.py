"""From the order for a worker to its Ready, beside a bare fork of an equally warm process.

The zygote keeps one cell prepared, whose worker lacks only its order; while it is at rest it makes the next.
An order right behind another one finds none, and has to wait for namespaces and a fork.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.goals import Outcome, rounds_asked, tell
from bench.host import Host, opened
from ipc.server import Server
from supervisor.processes import procfs
from tests.waiting import soon
from worker.zygote import PREPARED

TITLE = "A worker from the zygote, beside a bare fork"
ROUNDS = 100
_WARM_UP = 5


class RawForks:
    """A warm process that forks when told to, and the socket its children speak to."""

    def __init__(self, path: Path) -> None:
        self._arrived = asyncio.Event()
        self._identity = b""
        self._socket = Server(str(path), self._heard)
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
        # Sends are made at the end of a round of the loop, which the next line holds up.
        await asyncio.sleep(0)
        assert self._words.read(1) == b"e"
        return spent * 1000

    def close(self) -> None:
        self._socket.close()
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


async def prepared() -> None:
    """Returns when the zygote, a grandchild of this process, is at rest with a prepared worker below it."""
    own = procfs.status(os.getpid())
    assert own is not None
    await soon(lambda: PREPARED in [name_of(found) for found in procfs.descendants(own.process, 1000)])


def name_of(found: procfs.Status) -> str:
    try:
        return Path(f"/proc/{found.process.pid}/comm").read_text().strip()
    except OSError:
        return ""


async def compare(home: Path, rounds: int) -> list[Outcome]:
    at_rest: list[float] = []
    behind: list[float] = []
    limit: list[float] = []
    async with opened(home) as host:
        raw = RawForks(home / "raw.sock")
        for _ in range(rounds + _WARM_UP):
            await prepared()
            at_rest.append(await start_once(host))
            behind.append(await start_once(host))
            await prepared()
            limit.append(await raw.once())
        raw.close()
        cell = host.processes.cell_name
    at_rest, behind, limit = (times[_WARM_UP:] for times in (at_rest, behind, limit))
    return [
        Outcome(f"worker ready, in a {cell} cell", at_rest, limit, "ms", "at most", 2),
        Outcome("the same right behind another", behind, limit, "ms", "at most", None),
    ]


def measure(rounds: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        return uvloop.run(compare(Path(folder), rounds))


if __name__ == "__main__":
    tell(TITLE, measure(rounds_asked(ROUNDS)))
