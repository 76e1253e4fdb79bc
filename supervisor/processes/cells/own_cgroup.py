"""The cgroup that was delegated to the supervisor: a leaf of it for the supervisor, one for each cell.

The kernel limits only what lies in leaves. systemd 252 cannot start a service in a leaf of its own
(DelegateSubgroup= came later), so the supervisor moves itself.
"""

import contextlib
import os
from pathlib import Path

_OWN = "supervisor"
_PREFIX = "hermes-worker-"
_CONTROLLERS = ("memory", "pids")


def own_folder() -> Path | None:
    """The folder in which cells may be made; None where no cgroup2 is mounted."""
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            folder = Path(fields.split()[4]) / own[0].lstrip("/")
            return folder.parent if folder.name == _OWN else folder
    return None


def settle() -> bool:
    """Moves this process into its leaf, if it is alone in a cgroup of ours; to be called before it forks.

    Whether it is in its leaf now.
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
        return False  # not ours to arrange: cells work without limits of the kernel


def hand_down(folder: Path) -> None:
    """Limits for the cells, where this cgroup may hand them on; without them cells work too."""
    with contextlib.suppress(OSError):
        there = (folder / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in there)
        if wanted:
            (folder / "cgroup.subtree_control").write_text(wanted)


def prefix() -> str:
    """What the names of this supervisor's cells begin with."""
    return f"{_PREFIX}{os.getpid()}-"


def remove_empty(folder: Path) -> None:
    """Those of killed supervisors; the kernel refuses to remove one that still holds a process."""
    for each in folder.glob(f"{_PREFIX}*-*"):
        if not Path("/proc", each.name.removeprefix(_PREFIX).partition("-")[0]).exists():
            with contextlib.suppress(OSError):
                each.rmdir()


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(path)


def was_out_of_memory(path: str) -> bool:
    """Whether the kernel has ended something in this cgroup because it was full."""
    try:
        events = Path(path, "memory.events").read_text().split()
    except OSError:
        return False
    return "oom_kill" in events and events[events.index("oom_kill") + 1] != "0"
