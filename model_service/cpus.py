"""The number of CPUs that this process can use: the affinity mask, limited by every cgroup quota above it."""

import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def available_cpus(cgroups: Path = _CGROUPS, membership: Path = Path("/proc/self/cgroup")) -> int:
    """Returns at least one. More threads than this only wait for each other."""
    allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *_quotas(cgroups, membership)]))


def _quotas(cgroups: Path, membership: Path) -> list[int]:
    """Returns the CPUs that each limited group up to the root allows, rounded up."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    own = next((line.removeprefix("0::").strip("/") for line in lines if line.startswith("0::")), "")
    folder = cgroups / own
    found = (
        _quota(place / "cpu.max") for place in (folder, *folder.parents) if place.is_relative_to(cgroups)
    )
    return [quota for quota in found if quota is not None]


def _quota(limit: Path) -> int | None:
    try:
        allowed, period = limit.read_text().split()
        return None if allowed == "max" else -(-int(allowed) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
