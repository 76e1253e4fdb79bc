"""A host whose two workers fork until they are refused; prints how many each of them could make."""

import asyncio
import os
import shutil
import sys
from dataclasses import replace

from ipc.places import find_places
from supervisor.core.events import WorkerDied, WorkerStarted, WorkerStuck
from supervisor.processes.cells import Limits
from supervisor.processes.worker_processes import Processes
from tests.processes.lone_supervisor import UNAVAILABLE
from tests.processes.stage import STAND_IN, until
from tests.processes.stand_in import give

_FORKS = """
import os, signal
made = 0
try:
    while made < 1000:
        if os.fork() == 0:
            signal.pause()
        made += 1
except BlockingIOError:
    print("refused after", made, flush=True)
"""


def _interpreter() -> str:
    """This one may lie in a folder that is closed to the user; the system's of the same version will do."""
    same = shutil.which(f"python3.{sys.version_info.minor}")
    return sys.executable if os.access(sys.executable, os.X_OK) or same is None else same


async def main(home: str, processes_max: int) -> None:
    events: asyncio.Queue[WorkerStarted | WorkerDied | WorkerStuck] = asyncio.Queue()
    places = find_places(home)
    processes = Processes(
        epoch=1,
        places=places,
        cell="pidns",
        limits=Limits(processes_max=processes_max),
        report=events.put_nowait,
        connected=lambda seat, incarnation, *ends: give(_FORKS, *ends),
        program=replace(STAND_IN, python=_interpreter(), path=tuple(filter(None, sys.path))),
        environment=os.environ,
    )
    await processes.open()
    if processes.state == "unavailable":
        print(f"{UNAVAILABLE}{processes.state_detail}", flush=True)
        await processes.close(4.0)
        return
    try:
        for seat in (0, 1):
            processes.start(seat, seat + 1)
            await events.get()
            log = places.logs / f"worker-{seat}.log"
            await until(lambda log=log: "refused" in log.read_text(), "a refusal")  # type: ignore[misc]
            print(log.read_text().strip(), flush=True)
    finally:
        await processes.close(4.0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
