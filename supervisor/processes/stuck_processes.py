"""Processes that a kill does not end yet: they wait in the kernel, for a file system or a device.

The kernel ends such a process as soon as what it waits for answers or is given up. Until then it has open
files, and whatever it waits for may still be carried out: nothing else may take its place.
"""

from pathlib import Path

from supervisor.processes.cells import Cell, Held

# Named in the sentence; a hundred of them wait for the same thing.
_NAMED_MAX = 3
_COUNT_MAX = 1000
_UNSEEN = "nobody has said yet that nothing is left"


def left(cell: Cell, held: Held) -> tuple[int, str]:
    """How many processes of a killed cell are left, and which they are and what they wait for."""
    found = list(cell.members(held, _COUNT_MAX))
    # The first process of a namespace waits for the others; alone, it is what is stuck itself.
    others = [status for status in found if status.process != held.keeper] or found
    if not others:
        return 0, _UNSEEN
    named = ", ".join(_described(status.process.pid, status.state) for status in others[:_NAMED_MAX])
    more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
    return len(others), f"{named}{more}"


def _described(pid: int, state: str) -> str:
    name, place = _line(pid, "comm") or "?", _line(pid, "wchan")
    where = f" in {place}" if place not in ("", "0") else ""
    return (
        f"{name} (pid {pid}) waits in the kernel{where}" if state == "D" else f"{name} (pid {pid}, {state})"
    )


def _line(pid: int, name: str) -> str:
    """A file of /proc that holds one line; who may not read it, or comes too late, gets nothing."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace").strip()
    except OSError:
        return ""
