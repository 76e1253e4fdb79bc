"""A real supervisor whose workers are played by the benchmark itself: `python -m bench.pretend HOME`.

All is as in the service but the process room: nothing is forked, and who a worker is can be known beforehand.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import uvloop

from ipc.endpoints import Places, find_places, is_listening, make_private
from supervisor.app import App
from supervisor.core.events import Event, WorkerAlive, WorkerDied, WorkerStarted
from supervisor.core.model import Proof, Who
from supervisor.journal.journal import Journal
from supervisor.processes.handed import HandedProcesses
from supervisor.processes.readings import Reading
from supervisor.settings import load
from tests.waiting import DEADLINE_SECONDS, until

# Well within the time after which a silent worker is killed.
_LIFE_SECONDS = 3.0
SETTINGS = """
[model]
base_url = "http://127.0.0.1:9/v1"
name = "nobody asks it"
[workers]
count = {seats}
spares = {spares}
turns_max = 1000000
[turns]
queue_max = 1000000
[stt]
engine = "off"
"""


def identity_of(incarnation: int) -> str:
    return f"pretend-{incarnation}"


class PretendProcesses:
    """A process room without processes: everybody starts at once and is always alive."""

    cell_name = "pretend"
    cell_description = "no process is held"

    def __init__(self, *, epoch: int, report: Callable[[Event], None], **_: object) -> None:
        self._epoch = epoch
        self._report = report
        self._seats: dict[int, int] = {}
        self._found: dict[bytes, tuple[int, int]] = {}
        self._identities: dict[int, bytes] = {}

    async def open(self, handed: HandedProcesses | None = None) -> None:
        self._live()

    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses:
        return HandedProcesses()

    async def close(self, deadline_seconds: float) -> None:
        self._seats.clear()

    def start(self, seat: int, incarnation: int, agent: str) -> None:
        identity = identity_of(incarnation).encode()
        self._seats[incarnation] = seat
        self._found[identity] = (seat, incarnation)
        self._identities[incarnation] = identity
        self._report(WorkerStarted(seat, incarnation, pid=1))

    def bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None:
        done("")

    def change_limits(self, limits: object) -> None:
        """Nobody is held to any."""

    def kill(self, incarnation: int) -> None:
        seat = self._seats.pop(incarnation)
        del self._found[self._identities.pop(incarnation)]
        self._report(WorkerDied(seat, incarnation, Proof(1, True, 0.0, self.cell_name), "killed"))

    def find(self, identity: bytes) -> tuple[int, int] | None:
        return self._found.get(identity)

    def identity(self, incarnation: int) -> bytes | None:
        return self._identities.get(incarnation)

    def readings(self) -> Mapping[int, Reading]:
        return {}

    def _live(self) -> None:
        for incarnation, seat in self._seats.items():
            who = Who(self._epoch, seat, incarnation)
            self._report(WorkerAlive(who, "pulse"))
            self._report(WorkerAlive(who, "loop"))
        asyncio.get_running_loop().call_later(_LIFE_SECONDS, self._live)


@contextlib.contextmanager
def pretend_service(home: Path, seats: int, spares: int = 0) -> Iterator[tuple[Places, int]]:
    """The supervisor in a process of its own; gives its places and pid once it can be spoken to."""
    home.mkdir(exist_ok=True)
    (home / "hermes.toml").write_text(SETTINGS.format(seats=seats, spares=spares))
    places = find_places(str(home))
    with (home / "supervisor.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "bench.pretend", str(home)], stdout=log, stderr=log)
    try:
        until(lambda: is_listening(places.control))
        yield places, process.pid
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


async def _live(home: str) -> None:
    places = find_places(home)
    make_private(places.state)
    journal = Journal.open(places.journal, places.lock)
    await App(places, load(places.settings_file), journal, PretendProcesses).run()


if __name__ == "__main__":
    uvloop.run(_live(sys.argv[1]))
