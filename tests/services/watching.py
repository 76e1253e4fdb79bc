"""A Services under test with its reports written down, and waiting for one of them instead of sleeping."""

import asyncio
import os
import select
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ipc.stt_messages import FromStt
from supervisor.services import RestartPolicy, ServiceChanged, Services, ServiceSpec
from tests.no_containment import uncontained

# A ceiling for one wait on a busy machine, not an expectation.
PATIENCE_SECONDS = 60.0
QUICK = RestartPolicy(first_seconds=0.05, max_seconds=0.2, steady_seconds=600.0, failed_after=3)


def pretend(behaviour: str, **limits: Any) -> ServiceSpec:
    limits = {"start_deadline_seconds": PATIENCE_SECONDS, "restart": QUICK, **limits}
    options = {"behaviour": behaviour, "api_key": "a-secret-of-mine"}
    return ServiceSpec(behaviour, "tests.services.pretend_service", options, **limits)


class Watched:
    """Running services and all they have reported."""

    def __init__(self) -> None:
        self.reports: list[ServiceChanged] = []
        self.told: list[tuple[str, FromStt]] = []
        self.services: Services
        self.endpoint = ""
        self._news = asyncio.Event()

    def report(self, changed: ServiceChanged) -> None:
        self.reports.append(changed)
        self._news.set()

    def clip_told(self, service: str, message: FromStt) -> bool:
        self.told.append((service, message))
        self._news.set()
        return True

    def states(self) -> list[str]:
        return [changed.state for changed in self.reports]

    def row(self) -> dict[str, Any]:
        (row,) = self.services.rows()
        return row

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def seen(self, state: str, times: int = 1) -> ServiceChanged:
        """The report that brought a state for the given time."""
        await self.until(lambda: self.states().count(state) >= times)
        return [changed for changed in self.reports if changed.state == state][times - 1]


@asynccontextmanager
async def running(*specs: ServiceSpec, has_clips: bool = False) -> AsyncIterator[Watched]:
    watched = Watched()
    with tempfile.TemporaryDirectory() as folder:
        further: dict[str, Any] = {"clip_told": watched.clip_told} if has_clips else {}
        watched.endpoint = f"{folder}/services.sock"
        watched.services = Services(
            specs,
            endpoint=watched.endpoint,
            logs=Path(folder) / "logs",
            report=watched.report,
            **further,
            contain=uncontained(),
        )
        watched.services.open()
        try:
            yield watched
        finally:
            await watched.services.close(10.0)
            assert [row["pid"] for row in watched.services.rows()] == [None] * len(specs)


def has_ended(pid: int, within_seconds: float = 0.0) -> bool:
    """Whether the process is dead by then, buried or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within_seconds)[0])
    finally:
        os.close(descriptor)
