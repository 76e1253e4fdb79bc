"""Commands of another user, started by a test that is root, with this interpreter within that user's reach.

An interpreter may lie below a folder that root alone can enter: a version manager in root's home. A program
that root starts as the user runs then, and fails when it starts itself again. So the command gets a mount
namespace of its own, in which the way to the interpreter and to these files is open.
"""

import os
import pwd
import shlex
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
# An account that every system has and that owns nothing.
NOBODY = pwd.getpwnam("nobody")
# Packages that run nothing of ours when they are imported: what fails in our code is no reason to skip.
_READ = "import msgspec, zmq, supervisor, worker, tests"
_AGAIN = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-B', '-c', {_READ!r}]))"


def as_user(uid: int, gid: int) -> list[str]:
    """Returns what to write before a command that root starts as that user."""
    if uid == os.geteuid():
        return []
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    if not (steps := _opening()):
        return become
    return ["unshare", "--mount", "sh", "-c", f'{steps} && exec "$@"', "sh", *become]


@cache
def can_run_this(uid: int, gid: int) -> bool:
    """Whether that user may execute this interpreter, also from itself, and read these files."""
    if uid != os.geteuid() and os.geteuid() != 0:
        return False
    try:
        trying = [*as_user(uid, gid), sys.executable, "-B", "-c", _AGAIN]
        return subprocess.run(trying, cwd=ROOT, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@cache
def _opening() -> str:
    """Returns shell commands that open the way to folders that others cannot reach; empty if all can be."""
    if not (closed := closed_ways()):
        return ""
    # An open folder covers what lies in the closed one, so the wanted ones are kept elsewhere meanwhile.
    steps = ["mount -t tmpfs tmpfs /mnt"]
    kept = {shlex.quote(str(folder)): f"/mnt/{number}" for number, folder in enumerate(closed)}
    steps += [f"mkdir {place} && mount --bind {folder} {place}" for folder, place in kept.items()]
    covered = sorted({shlex.quote(str(way)) for way in closed.values()})
    steps += [f"mount -t tmpfs -o mode=755 tmpfs {way}" for way in covered]
    steps += [f"mkdir -p {folder} && mount --move {place} {folder}" for folder, place in kept.items()]
    return " && ".join([*steps, "umount /mnt"])


def closed_ways() -> dict[Path, Path]:
    """The folders that others cannot reach, each with the first one on the way that they cannot enter."""
    wanted = {Path(folder).resolve() for folder in (sys.base_prefix, sys.prefix, ROOT)}
    return {folder: way for folder in sorted(wanted) if (way := _closed(folder)) is not None}


def _closed(folder: Path) -> Path | None:
    return next((way for way in reversed(folder.parents) if not way.stat().st_mode & stat.S_IXOTH), None)
