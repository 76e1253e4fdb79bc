"""Many interrupts and dead workers leave nothing behind in the supervisor: everything is counted."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from supervisor.host.threads import LOOKS_MAX
from tests.acceptance.sight import descendants, worker_of, zygote_of
from tests.service import Service
from tests.waiting import until

# The first ones make what is made once: threads, connections, caches.
_FIRST, _FURTHER = 20, 100


def resources(service: Service) -> dict[str, int]:
    """Counts while no turn runs."""
    assert service.process is not None
    own = Path(f"/proc/{service.process.pid}")
    return {
        "descriptors": len(os.listdir(own / "fd")),
        "descriptors of the zygote": len(os.listdir(f"/proc/{zygote_of(service)}/fd")),
        "processes": len(descendants(service.process.pid)),
        "files at the sockets": len(list(service.places.runtime.rglob("*"))),
        "workers": len(service.show("workers")),
    }


def threads(service: Service) -> int:
    """Those that look at the host are made when they are needed, up to their number."""
    assert service.process is not None
    return len(os.listdir(f"/proc/{service.process.pid}/task"))


def settled(service: Service) -> dict[str, int]:
    """The counts once all workers are idle and the next cell is prepared."""
    others = 4  # the supervisor, the guard, the zygote and the prepared cell

    def is_settled() -> bool:
        rows, found = service.show("workers"), resources(service)
        return all(row["state"] == "idle" for row in rows) and found["processes"] == len(rows) + others

    until(is_settled)
    return resources(service)


def is_over(service: Service, session: str) -> bool:
    """Asked on the one connection of the test: a listener would be counted with what is left behind."""
    (turn,) = service.show("turns", session=session)
    return turn["state"] in ("failed", "interrupted")


def cut_short(service: Service, count: int, start: int) -> None:
    """So many turns, in turn interrupted and deprived of their worker."""
    for number in range(start, start + count):
        session = f"s{number}"
        service.say(session, "[[silent]] go")
        worker = worker_of(service, session)
        if number % 2:
            os.kill(worker, signal.SIGKILL)
        else:
            service.interrupt(session)
        until(lambda session=session: is_over(service, session))  # type: ignore[misc]


def test_interrupts_and_deaths_of_workers_leave_nothing_behind(make_service: Callable[..., Service]) -> None:
    service = make_service(workers="count = 1\nspares = 1", turns="attempts_max = 1")
    cut_short(service, _FIRST, 0)
    before, before_threads = settled(service), threads(service)
    cut_short(service, _FURTHER, _FIRST)
    # A thread that looks at the host has a file open for a moment.
    until(lambda: settled(service) == before)
    assert threads(service) <= before_threads + LOOKS_MAX
