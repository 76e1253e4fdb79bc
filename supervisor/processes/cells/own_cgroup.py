"""The cgroup delegated to the supervisor: one leaf for the supervisor, one for each cell.

The kernel applies limits only to leaves. systemd 252 cannot start a service in a leaf of its own
(DelegateSubgroup= came later), so the supervisor moves itself.
"""

import contextlib
import os
from pathlib import Path

_OWN = "supervisor"
_PREFIX = "hermes-worker-"
_CONTROLLERS = ("memory", "pids")


def own_folder() -> Path | None:
    """Return the folder in which cells may be made; None where no cgroup2 is mounted."""
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            folder = Path(fields.split()[4]) / own[0].lstrip("/")
            return folder.parent if folder.name == _OWN else folder
    return None


def settle() -> bool:
    """Move this process into its leaf, if it is alone in a delegated cgroup; call it before any fork.

    Return whether it is in its leaf now.
    """
    folder = own_folder()
    try:
        # The root of the tree has no type, and needs no leaf.
        if folder is None or not (folder / "cgroup.type").exists():
            return False
        if (folder / "cgroup.procs").read_text().split() == [str(os.getpid())]:
            (folder / _OWN).mkdir(exist_ok=True)
            (folder / _OWN / "cgroup.procs").write_text(str(os.getpid()))
        return str(os.getpid()) in (folder / _OWN / "cgroup.procs").read_text().split()
    except OSError:
        return False  # not delegated: cells work without limits of the kernel


def hand_down(folder: Path) -> None:
    """Delegate controllers to the cells, where this cgroup may; cells work without them too."""
    with contextlib.suppress(OSError):
        there = (folder / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in there)
        if wanted:
            (folder / "cgroup.subtree_control").write_text(wanted)


def prefix() -> str:
    """Return the prefix of the cell names of this supervisor."""
    return f"{_PREFIX}{os.getpid()}-"


def remove_empty(folder: Path) -> None:
    """Remove cgroups of killed supervisors; the kernel refuses to remove one that holds a process."""
    for each in folder.glob(f"{_PREFIX}*-*"):
        if not Path("/proc", each.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            with contextlib.suppress(OSError):
                each.rmdir()


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(path)


def was_out_of_memory(path: str) -> bool:
    """Return whether the kernel has killed a process in this cgroup for lack of memory."""
    try:
        events = Path(path, "memory.events").read_text().split()
    except OSError:
        return False
    return "oom_kill" in events and events[events.index("oom_kill") + 1] != "0"
