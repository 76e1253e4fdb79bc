"""A supervisor to be killed: holds two workers that spin in C beside a daemon, says so, and waits."""

import asyncio
import os
import sys

from ipc.places import find_places
from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.processes.cells import Limits
from supervisor.processes.worker_processes import Processes
from tests.processes.stage import STAND_IN
from tests.processes.stand_in import give

# In the home folder: what the workers do.
SCRIPT = "script.py"
# Begins the line that is printed instead of any other where the host has no cell of this kind.
UNAVAILABLE = "unavailable: "


async def main(home: str, kind: str) -> None:
    events: asyncio.Queue[WorkerStarted | WorkerDied | WorkerStuck] = asyncio.Queue()
    places = find_places(home)
    script = (places.state / SCRIPT).read_text()
    processes = Processes(
        epoch=1,
        places=places,
        cell=kind,
        limits=Limits(),
        report=events.put_nowait,
        connected=lambda seat, incarnation, *ends: give(script, *ends),
        program=STAND_IN,
    )
    await processes.open()
    if processes.state == "unavailable":
        print(f"{UNAVAILABLE}{processes.state_detail}", flush=True)
        return
    print("cell", processes.cell_name, processes.cell_description, flush=True)
    for seat in (0, 1):
        processes.start(seat, seat + 1)
        print(await events.get(), flush=True)
    print("serving", os.getpid(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
