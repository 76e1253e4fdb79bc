"""The supervisor's own cgroup, a leaf beside those of its cells: the kernel limits only what lies in leaves.

systemd 252 cannot start a service in a leaf of its own (DelegateSubgroup= came later), so it moves itself.
"""

import os
from pathlib import Path

_LEAF = "supervisor"


def own_folder() -> Path | None:
    """The folder in which cells may be made; None where no cgroup2 is mounted."""
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            folder = Path(fields.split()[4]) / own[0].lstrip("/")
            return folder.parent if folder.name == _LEAF else folder
    return None


def settle() -> None:
    """Moves this process into its leaf, if it is alone in a cgroup of ours; to be called before it forks."""
    folder = own_folder()
    try:
        # The root of the tree has no type, and needs no leaf.
        if folder is None or not (folder / "cgroup.type").exists():
            return
        if (folder / "cgroup.procs").read_text().split() == [str(os.getpid())]:
            (folder / _LEAF).mkdir(exist_ok=True)
            (folder / _LEAF / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return  # not ours to arrange: cells work without limits of the kernel
