"""The folders: their disk, how fast it makes things durable, and who may look into them."""

import os
import shutil
import stat
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good
from hermesctl.render import size

_ROOM_LEAST, _ROOM_ENOUGH = 100 * 1024 * 1024, 1024 * 1024 * 1024
_SYNCS = 15
_BLOCK_BYTES = 4096
# A commit waits for one of these; a person notices a tenth of a second.
_SYNC_MS_MAX = 50.0
_FLEETING = ("tmpfs", "ramfs")
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")


def room(around: Surroundings) -> Finding:
    folder = _nearest(around.places.state)
    free = shutil.disk_usage(folder).free
    fact = f"{size(free)} free for {around.places.state}"
    if free < _ROOM_LEAST:
        return bad("disk", fact, "free disk space: without any, nothing is accepted")
    if free < _ROOM_ENOUGH:
        return care("disk", fact, "free disk space, or keep less: [journal] size_max and [stt] clips_max")
    return good("disk", fact)


def reserve(around: Surroundings) -> Finding:
    """Disk space reserved for closing turns when the disk is full."""
    places = around.places
    has_reserve = places.reserve.exists() if around.status is None else around.status.get("reserve")
    if has_reserve:
        return good("reserve", f"{places.reserve} exists, for a full disk")
    if around.status is None:
        return good("reserve", "is made at the next start")
    return bad("reserve", f"{places.reserve} is used up: no message is accepted", "free space on its disk")


def file_system(around: Surroundings) -> Finding:
    kind = _file_system(_nearest(around.places.state))
    if kind in _FLEETING:
        return care(
            "file system", f"{kind}: all is lost at the next boot", "choose a folder on a disk: --home"
        )
    if kind in _REMOTE:
        return care("file system", f"{kind}: locks and syncs may not hold", "choose a local folder: --home")
    return good("file system", kind)


def sync_speed(around: Surroundings) -> Finding:
    folder = around.places.state
    if not folder.exists():
        return good("sync", f"{folder} is not made yet")
    try:
        spent_ms = _sync_ms(folder)
    except OSError as error:
        return bad(
            "sync", f"{folder} is not writable: {error.strerror}", "fix its permissions, its disk, or --home"
        )
    fact = f"{spent_ms:.1f} ms until something is durable"
    if spent_ms > _SYNC_MS_MAX:
        return care("sync", fact, "use a faster disk for --home: every message waits this long")
    return good("sync", fact)


def rights(around: Surroundings) -> Finding:
    faults = list(_faults(around))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return bad("rights", faults[0][0] + more, faults[0][1])
    return good("rights", "folders and files are this user's alone")


def _faults(around: Surroundings) -> Iterator[tuple[str, str]]:
    """Returns (fault, hint) of every folder and file of ours that others may open."""
    places = around.places
    folders = (places.state, places.runtime, places.logs, places.clips)
    files = (places.journal, places.state / "token", Path(places.control))
    for path, wanted in (*((folder, 0o700) for folder in folders), *((file, 0o600) for file in files)):
        try:
            found = path.stat()
        except OSError:
            continue
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid != os.geteuid():
            yield f"{path} belongs to another user", f"sudo chown -R {os.geteuid()} {path}"
        elif mode & ~wanted & 0o077:
            yield f"{path} has mode {mode:04o}: others may look into it", f"chmod {wanted:o} {path}"
    settings = places.settings_file
    if settings.exists() and settings.stat().st_mode & 0o022:
        yield f"{settings} can be written by others", f"chmod go-w {settings}"


def _sync_ms(folder: Path) -> float:
    spent = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            file.write(b"\0" * _BLOCK_BYTES)
            file.flush()
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spent)


def _nearest(folder: Path) -> Path:
    """The folder, or the first above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _file_system(folder: Path) -> str:
    """Returns the type of the mounted file system."""
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if fields.split()[2] == wanted:
            return kind.split()[0]
    return "unknown"
