"""The memory of a process tree according to /proc, including memory that no process has mapped.

The mapped memory of a process is its proportional share (PSS), of which a part is shared memory. Files in a
tmpfs and anonymous files (memfd) hold memory that need not be mapped. So the shared memory of a tree is its
mapped part, or the size of such files if that is larger: this never exceeds what the tree holds.

psutil reports PSS too, but neither the shared memory in it nor such files.
"""

import os
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_BLOCK_BYTES = 512
_MEMFD = "/memfd:"
# File systems of a cell that hold their files in memory.
_TMPFS = ("tmp", "dev/shm", "run")
# Limit of descriptors examined in one tree.
_DESCRIPTORS_MAX = 100_000


def memory_bytes(pids: list[int]) -> int:
    """Return the memory of all these processes together; unreadable values count as 0."""
    shares = [_shares(pid) for pid in pids]
    mapped, shared = sum(share[0] for share in shares), sum(share[1] for share in shares)
    return mapped - shared + max(shared, _anonymous_files(pids) + _own_tmpfs(pids))


def _shares(pid: int) -> tuple[int, int]:
    """Return the proportional share and the shared memory in it; else all that is resident."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        fields = [line.split() for line in lines[1:]]
        values = {field[0]: int(field[1]) * 1024 for field in fields}
        return values["Pss:"], values.get("Pss_Shmem:", 0)
    except (OSError, KeyError, ValueError, IndexError):
        pass
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES, 0
    except (OSError, IndexError):
        return 0, 0


def _anonymous_files(pids: list[int]) -> int:
    """Return the size of files without a name; each counts once, however many processes have it open."""
    found: dict[tuple[int, int], int] = {}
    left = _DESCRIPTORS_MAX
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names[:left]:
            try:
                if os.readlink(f"{folder}/{name}").startswith(_MEMFD):
                    file = os.stat(f"{folder}/{name}")
                    found[file.st_dev, file.st_ino] = file.st_blocks * _BLOCK_BYTES
            except OSError:
                continue
        left -= len(names[:left])
    return sum(found.values())


def _own_tmpfs(pids: list[int]) -> int:
    """Return the size of a cell's own tmpfs file systems: those that differ from the host's at that path."""
    for pid in pids:
        try:
            top = os.path.join("/proc", str(pid), "root")
            own = [f"{top}/{name}" for name in _TMPFS if _device(f"{top}/{name}") != _device(f"/{name}")]
            return sum(_used_bytes(path) for path in own)
        except OSError:
            continue  # not accessible for this user, or ended
    return 0


def _device(path: str) -> int:
    return os.stat(path).st_dev


def _used_bytes(path: str) -> int:
    found = os.statvfs(path)
    return (found.f_blocks - found.f_bfree) * found.f_frsize
