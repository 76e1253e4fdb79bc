"""A real supervisor whose workers are played by the benchmark itself: `python -m bench.pretend HOME`.

All is as in the service but the process room: nothing is forked. A worker is played by whoever first connects
to its socket (`line_of`), in any process.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import uvloop

from ipc.places import Places, find_places, is_listening, make_private
from supervisor.app import App
from supervisor.config.settings import load
from supervisor.core.events import Event, WorkerAlive, WorkerDied, WorkerStarted
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.core.state import Proof, Who
from supervisor.handoff.carried_workers import HandedProcesses
from supervisor.journal.journal import Journal
from supervisor.processes.survivors import Survivor
from supervisor.processes.usage import TreeUsage
from supervisor.processes.worker_processes import Connected
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
waiting_max = 1000000
[stt]
engine = "off"
[gateway]
listen = "off"
"""


def line_of(places: Places, incarnation: int) -> str:
    """Where the player of this worker connects; it may do so before the worker is asked for."""
    return str(places.runtime / f"worker-{incarnation}.sock")


class PretendProcesses:
    """A process room without processes: everybody starts at once and is always alive."""

    cell_name = "pretend"
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
        self._places = places
        self._report = report
        self._connected = connected
        self._seats: dict[int, int] = {}
        self._listeners: dict[int, socket.socket] = {}
        # The other ends of pulses, which nobody answers: `_live` speaks for everybody.
        self._pulses: dict[int, socket.socket] = {}

    async def open(self, handed: HandedProcesses | None = None) -> tuple[Survivor, ...]:
        self._live()
        return ()

    async def hand_over(self, staying: Collection[int], deadline_seconds: float) -> HandedProcesses:
        return HandedProcesses()

    async def close(self, deadline_seconds: float) -> None:
        self._seats.clear()

    def start(self, seat: int, incarnation: int, agent: str) -> None:
        self._seats[incarnation] = seat
        listener = self._listeners[incarnation] = socket.socket(socket.AF_UNIX)
        listener.bind(line_of(self._places, incarnation))
        listener.listen(1)
        asyncio.get_running_loop().add_reader(listener, self._played, incarnation)
        self._report(WorkerStarted(seat, incarnation, pid=1))

    def bind(self, incarnation: int, workspace: Path, done: Callable[[str], None]) -> None:
        done("")

    def change_limits(self, limits: object) -> None:
        """Nobody is held to any."""

    def change_agents(self) -> None:
        """All of them are alike."""

    def want(self, agent: str) -> None:
        self._report(RuntimeChanged(frozenset({agent}), "warm"))

    def runtime_rows(self) -> list[dict[str, Any]]:
        return []

    def kill(self, incarnation: int, cancel: str = "", since: float | None = None) -> None:
        seat = self._seats.pop(incarnation)
        self._unlisten(incarnation)
        if incarnation in self._pulses:
            self._pulses.pop(incarnation).close()
        proof = Proof(1, True, 0.0, self.cell_name)
        self._report(WorkerDied(seat, incarnation, proof, Reason(EndReason.KILLED)))

    def is_known(self, incarnation: int) -> bool:
        return incarnation in self._seats

    def _played(self, incarnation: int) -> None:
        player, _ = self._listeners[incarnation].accept()
        player.setblocking(False)
        self._unlisten(incarnation)
        pulse, self._pulses[incarnation] = socket.socketpair()
        pulse.setblocking(False)
        self._connected(self._seats[incarnation], incarnation, player, pulse)

    def _unlisten(self, incarnation: int) -> None:
        listener = self._listeners.pop(incarnation, None)
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
            os.unlink(line_of(self._places, incarnation))

    def usages(self) -> Mapping[int, TreeUsage]:
        return {}

    def _live(self) -> None:
        for incarnation, seat in self._seats.items():
            who = Who(self._epoch, seat, incarnation)
            self._report(WorkerAlive(who, "pulse"))
            self._report(WorkerAlive(who, "loop"))
        asyncio.get_running_loop().call_later(_LIFE_SECONDS, self._live)


@contextlib.contextmanager
def pretend_service(
    home: Path, seats: int, spares: int = 0, module: str = "bench.pretend"
) -> Iterator[tuple[Places, int]]:
    """The supervisor in a process of its own; gives its places and pid once it can be spoken to."""
    home.mkdir(exist_ok=True)
    (home / "hermes.toml").write_text(SETTINGS.format(seats=seats, spares=spares))
    places = find_places(str(home))
    with (home / "supervisor.telemetry.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", module, str(home)], stdout=log, stderr=log)
    try:
        until(lambda: is_listening(places.control))
        yield places, process.pid
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


async def live(home: str) -> None:
    places = find_places(home)
    make_private(places.state)
    journal = Journal.open(places.journal, places.lock)
    await App(places, load(places.settings_file), journal, PretendProcesses).run()


if __name__ == "__main__":
    uvloop.run(live(sys.argv[1]))
