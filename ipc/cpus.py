"""The CPUs that this process may use: its affinity, cut by every quota of a control group above it."""

import os
from pathlib import Path

from ipc import cgroups

# For GOMP_SPINCOUNT, before a library with OpenMP is imported: how often a thread that waits for another
# looks before it sleeps. The threads of a model meet hundreds of times per token, and on a busy host one of
# them is often not running: with libgomp's own 300,000 looks, a millisecond, the others keep the CPU that it
# needs, and an answer takes thirty times as long. With these, five microseconds, an idle host is as fast.
OPENMP_SPINS = "1000"


def available_cpus(root: Path = cgroups.ROOT, membership: Path = cgroups.MEMBERSHIP) -> float:
    """Return CPUs, also fractions: a quota of one and a half is worth three seats at two per CPU."""
    quotas = (_quota(folder) for folder in cgroups.folders("cpu", root, membership))
    return min([float(len(os.sched_getaffinity(0))), *(quota for quota in quotas if quota)])


def seats_for(per_cpu: float) -> int:
    """Return the busy seats at `per_cpu` seats per CPU; at least one."""
    return max(1, round(per_cpu * available_cpus()))


def _quota(folder: Path) -> float | None:
    """Return the CPUs a group may use: `cpu.max` in version 2, two files in version 1; None for no limit."""
    try:
        allowed, period = map(int, (folder / "cpu.max").read_text().split())
    except (OSError, ValueError):  # a group without a limit writes a word in place of the number
        found = (cgroups.number(folder / f"cpu.cfs_{part}_us") for part in ("quota", "period"))
        allowed, period = (each or 0 for each in found)
    return allowed / period if allowed > 0 and period > 0 else None
