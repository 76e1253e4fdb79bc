"""Stuck processes: SIGKILL does not end them yet, because they wait in the kernel for a file or device.

The kernel ends such a process as soon as its wait ends. Until then it has open files, and the operation it
waits for may still be carried out: its seat and its session must not be reused.
"""

from collections.abc import Sequence
from pathlib import Path

from supervisor.processes.cells import Cell, Held
from supervisor.processes.procfs import Status

# Named in the sentence; the others usually wait for the same thing.
_NAMED_MAX = 3
_COUNT_MAX = 1000
_UNSEEN = "it is not proved that nothing of it is left"


def left(cell: Cell, held: Held) -> tuple[int, str]:
    """Return how many processes of a killed cell are left, which they are, and where they wait."""
    found = list(cell.members(held, _COUNT_MAX))
    # The first process of a namespace waits for the others; alone, it is itself stuck.
    others = [status for status in found if status.process != held.keeper] or found
    return (len(others), named(others)) if others else (0, _UNSEEN)


def named(found: Sequence[Status]) -> str:
    """Which they are and what they wait for, in one sentence."""
    first = ", ".join(_described(status.process.pid, status.state) for status in found[:_NAMED_MAX])
    more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return f"{first}{more}"


def _described(pid: int, state: str) -> str:
    name, place = _line(pid, "comm") or "?", _line(pid, "wchan")
    where = f" in {place}" if place not in ("", "0") else ""
    return (
        f"{name} (pid {pid}) waits in the kernel{where}" if state == "D" else f"{name} (pid {pid}, {state})"
    )


def _line(pid: int, name: str) -> str:
    """Return the line in a file of /proc; "" when it is not readable or its process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace").strip()
    except OSError:
        return ""
