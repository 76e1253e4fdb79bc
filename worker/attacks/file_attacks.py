"""Files that a cell should not see or change: secrets, the program's own code, the home and the host."""

import errno
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ipc import interpreter
from ipc.isolation import Spot, Targets
from worker.attacks import raw_calls
from worker.attacks.outcome import Outcome, absent, any_of, held, is_there, opened
from worker.mount_table import mounted

# By convention, variables with these suffixes hold secrets.
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS")
# In addition to every block device. Others may have effects when they are opened, as watchdogs and tapes do.
_DEVICES = ("/dev/mem", "/dev/port", "/dev/kvm", "/dev/fuse")
_LOOP0 = os.makedev(7, 0)
_NODES_MAX = 2000
_SIZE_BUFFER = 10  # of syslog(2): the size of the kernel's log


def settings(targets: Targets) -> Outcome:
    return _any_spot(targets.settings)


def state(targets: Targets) -> Outcome:
    return _any_spot(targets.state)


def home(targets: Targets) -> Outcome:
    return _any_spot(targets.home)


def host_file(targets: Targets) -> Outcome:
    return _any_spot(targets.host_file)


def workspaces(targets: Targets) -> Outcome:
    return _any_spot(targets.workspaces)


def keys(targets: Targets) -> Outcome:
    return any_of(targets.keys, _read_something, "the settings name no key file")


def environment(targets: Targets) -> Outcome:
    """Reads the names of variables of every process that allows it, this one too; not the values."""
    for pid in _processes():
        try:
            found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for name in (variable.partition(b"=")[0].decode(errors="replace") for variable in found):
            if name in targets.variables or name.upper().endswith(_SECRET_ENDINGS):
                return opened(f"{name[:80]} of process {pid}")
    return held("no variable of a secret's name in sight")


def proc_roots(targets: Targets) -> Outcome:
    """Other processes may see what this one does not, and /proc leads into their view."""
    for pid in _processes():
        for link in ("root", "cwd"):
            for spot in _secret(targets):
                if is_there(spot, f"/proc/{pid}/{link}{spot.path}"):
                    return opened(f"/proc/{pid}/{link}{spot.path}")
    return held("no process in sight leads there")


def second_mounts(targets: Targets) -> Outcome:
    """Every mount may show a folder above a secret: the rest of its path then leads to it."""
    for each in mounted():
        for spot in _secret(targets):
            parts = Path(spot.path).parts[1:]
            for first in range(len(parts) + 1):
                path = str(Path(each.at, *parts[first:]))
                if path != spot.path and is_there(spot, path):
                    return opened(path)
    return held("no mount in sight leads there")


def file_handles(targets: Targets) -> Outcome:
    """Uses an invalid handle: a process that may use handles gets ESTALE."""
    return raw_calls.refused("open_by_handle_at", -100, raw_calls.words(8, 0, 0, 0), 0)


def parents(targets: Targets) -> Outcome:
    """On the way to settings and state, each folder whose own parent is the host's."""
    ways = {folder for spot in (*targets.settings, *targets.state) for folder in Path(spot.path).parents}
    above = {spot.path for spot in targets.parents if is_there(spot)}
    found = sorted(str(folder) for folder in ways if str(folder.parent) in above)
    return any_of(found, _replace, "") if found else held("none of them is in sight")


def interpreters(targets: Targets) -> Outcome:
    found = {sys.prefix, sys.base_prefix, str(Path(os.__file__).parent), str(Path(sys.executable).parent)}
    return any_of(sorted(found), _create, "")


def pth_file(targets: Targets) -> Outcome:
    """Creates an empty one and removes it at once: an interpreter that starts meanwhile reads nothing."""
    found = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    found += [str(path) for path in Path(sys.prefix).glob("lib/python*/site-packages")]
    return any_of(sorted(set(found)), lambda folder: _create(folder, ".pth"), "there are no packages")


def program(targets: Targets) -> Outcome:
    found = [str(interpreter.PACKAGES / name) for name in interpreter.OURS]
    return any_of([path for path in found if os.path.isdir(path)], _create, "")


def devices(targets: Targets) -> Outcome:
    found = any_of(_nodes(), lambda path: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)), "")
    return found if found.verdict == "open" else _made_device()


def kernel_log(targets: Targets) -> Outcome:
    found = any_of(("/dev/kmsg",), lambda path: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)), "")
    return found if found.verdict == "open" else raw_calls.refused("syslog", _SIZE_BUFFER, 0, 0)


def _any_spot(spots: tuple[Spot, ...]) -> Outcome:
    """Open if one of these very files or folders can be opened at its path."""
    if not spots:
        return absent("there is no such file yet")
    seen = [spot.path for spot in spots if is_there(spot)]
    return any_of(seen, _read, "") if seen else held(f"{spots[0].path} is not in sight")


def _secret(targets: Targets) -> tuple[Spot, ...]:
    return (*targets.state, *targets.settings, *targets.workspaces)


def _read(path: str) -> None:
    if os.path.isdir(path):
        os.listdir(path)
    else:
        os.close(os.open(path, os.O_RDONLY))


def _read_something(path: str) -> None:
    """Hidden folders are covered by empty ones, so an empty folder counts as hidden."""
    if os.path.isdir(path) and not os.listdir(path):
        raise OSError(0, "it is empty here")
    _read(path)


def _create(folder: str, ending: str = "") -> None:
    path = os.path.join(folder, f".hermes-isolation-{secrets.token_hex(8)}{ending}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)


def _replace(folder: str) -> None:
    """Renames it to a non-empty folder, which is the last check to fail: any other error came before that."""
    with tempfile.TemporaryDirectory(prefix=".hermes-isolation-", dir=os.path.dirname(folder)) as other:
        Path(other, "file").touch()
        try:
            os.rename(folder, other)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _nodes() -> Iterable[str]:
    """Disks and other devices that give access to all memory."""
    yield from _DEVICES
    seen = 0
    for folder, _, names in os.walk("/dev"):
        for path in (os.path.join(folder, name) for name in names):
            seen += 1
            if seen > _NODES_MAX:
                return
            if os.path.exists(path) and stat.S_ISBLK(os.lstat(path).st_mode):
                yield path


def _made_device() -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "device")
        try:
            os.mknod(path, stat.S_IFBLK | 0o600, _LOOP0)
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except OSError as error:
            return held(f"none can be opened or made: {error.strerror}")
    return opened("a device that was made here")


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
