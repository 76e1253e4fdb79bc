"""Reads the usage of all workers periodically, and kills those that exceed their memory limit."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from supervisor.processes.exit_reason import too_large
from supervisor.processes.usage import Meter, TreeUsage, Watched, read
from supervisor.processes.worker_process import Phase, Worker

_READING_SECONDS = 0.5


class Watch:
    """`workers` is the live table of Processes, by incarnation."""

    def __init__(self, workers: Mapping[int, Worker], kill: Callable[[int], None]) -> None:
        self._workers = workers
        self._kill = kill
        self._task: asyncio.Task[None] | None = None
        self._usages: dict[int, TreeUsage] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def usages(self) -> dict[int, TreeUsage]:
        """Return the usage of every live worker that was read since it started."""
        return {key: self._usages[key] for key in self._workers.keys() & self._usages}

    async def _run(self) -> None:
        meter = Meter()
        while True:
            watched = {
                worker.incarnation: Watched(
                    partial(worker.spawner.cell.members, worker.held), worker.pid, worker.begun_at
                )
                for worker in self._workers.values()
                if worker.held is not None and worker.phase is Phase.HELD
            }
            logs = [worker.log for worker in self._workers.values()]
            self._usages = await asyncio.to_thread(read, meter, watched, logs)
            self._end_the_too_large()
            await asyncio.sleep(_READING_SECONDS)

    def _end_the_too_large(self) -> None:
        """Enforce the memory limit where the kernel does not."""
        for incarnation, usage in self.usages().items():
            worker = self._workers[incarnation]
            if 0 < worker.memory_bytes_max < usage.memory_bytes and worker.kill_asked_at is None:
                worker.kill_reason = too_large(worker.memory_bytes_max)
                self._kill(incarnation)
