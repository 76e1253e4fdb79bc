"""What a running service holds, counted from outside while nothing is under way."""

import os
from collections.abc import Mapping
from pathlib import Path

from supervisor.core.obsolete_timers import KEPT_MIN
from supervisor.host.threads import LOOKS_MAX
from tests.acceptance.sight import descendants, memory_of, zygote_of
from tests.service import Service

_MIB = 1024 * 1024
# By how much a count may differ from an earlier one of the same service; all others not at all.
ROOM = {
    # Those that look at the host are made when they are needed, and have a file open for a moment.
    "threads": LOOKS_MAX,
    # Timers of what has ended are removed when their number has doubled.
    "timers": 2 * KEPT_MIN,
    # Caches and fragments of the heap; a leak of a KiB for each of some hundred turns is less than this.
    "memory in MiB": 16,
}


def resources(service: Service) -> dict[str, int]:
    """The connection of the test that asks is counted, too: it is the same each time."""
    assert service.process is not None
    own, places = Path(f"/proc/{service.process.pid}"), service.places
    gauges = {row["name"]: row["samples"] for row in service.show("metrics")}
    return {
        "descriptors": len(os.listdir(own / "fd")),
        "descriptors of the zygote": len(os.listdir(f"/proc/{zygote_of(service)}/fd")),
        "threads": len(os.listdir(own / "task")),
        "processes": len(descendants(service.process.pid)),
        "workers": len(service.show("workers")),
        "links": int(gauges["hermes_links"][0]["value"]),
        "subscriptions": int(gauges["hermes_subscriptions"][0]["value"]),
        "timers": int(gauges["hermes_timers"][0]["value"]),
        "memory in MiB": memory_of(service) // _MIB,
        "files at the sockets": len(list(places.runtime.rglob("*"))),
        "unfinished files": sum(map(_is_unfinished, places.state.rglob("*"))),
        "clips": len(list(places.clips.glob("[!.]*"))) if places.clips.exists() else 0,
    }


def _is_unfinished(path: Path) -> bool:
    """Written under such a name until it is whole."""
    return path.name.startswith(".") or path.suffix in (".new", ".part", ".tmp")


def grown(before: Mapping[str, int], after: Mapping[str, int], room: Mapping[str, int]) -> dict[str, str]:
    """What is more than it was, beyond its room."""
    return {
        what: f"{before[what]} → {count}"
        for what, count in after.items()
        if count > before[what] + room.get(what, 0)
    }
