"""The files that a cell sees: a root built from nothing, to which only what is named is attached.

The zygote builds a view once for each sandbox, in a mount namespace of its own, and keeps that namespace as a
pattern. Every cell starts in a copy of it (`enter`). The parts:

    /usr /bin /lib … /opt       programs and libraries of the host           read-only
    /etc                        an allow-list of the host's, see worker.cell_etc  read-only
    the interpreter, ipc and worker, wherever they lie                       read-only
    [sandbox] read, write       at their own paths; at level `home` the user's home too
    /dev                        six harmless devices; terminals of the cell  per cell
    /proc /tmp /run /dev/shm    fresh and the cell's own                     per cell
    /workspace                  empty until the session's folder is bound

At level `host` the host's whole tree stands there instead, with its own /tmp, /run and /dev. At every level
the hidden folders and files are covered, at whatever paths they can be reached. A path of the host is
resolved to one without symbolic links, opened without following any, and from there on used by its descriptor
only.
"""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ipc.interpreter import OURS
from ipc.service_messages import Boundary, CellSpec, Sandbox
from worker import cell_etc, mounts, syscalls
from worker.mount_table import is_in, mounted, origin, ways_to
from worker.mounts import NO_DEVICES, NO_EXEC, NO_SUID, READ_ONLY

WORKSPACE = "/workspace"
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix/store", "gnu/store")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "dev/fd": "/proc/self/fd",
    "dev/stdin": "/proc/self/fd/0",
    "dev/stdout": "/proc/self/fd/1",
    "dev/stderr": "/proc/self/fd/2",
    "dev/ptmx": "/dev/pts/ptmx",
    "etc/mtab": "/proc/self/mounts",
    "var/run": "/run",
    "var/lock": "/run/lock",
    "var/tmp": "/tmp",
}
_FOLDERS = ("dev/pts", "dev/shm", "proc", "tmp", "run", "var/lib", "var/cache", "var/log", "etc", "workspace")
# Every cell has its own, with these modes; each may use one such part of the cell's memory limit.
_FRESH = {"/tmp": ("1777", 1), "/dev/shm": ("1777", 2), "/run": ("0755", 16), WORKSPACE: ("0755", 1)}
# Covered by the root of the view while it is built; no file in it is needed any more then.
_BUILT_AT = ("/tmp", "/mnt", "/usr")
# The root has empty folders, links and copies of small files of /etc.
_ROOT_OPTIONS = "mode=0755,size=16m,nr_inodes=16k"
_COVER_OPTIONS = "mode=0755,size=64k,nr_inodes=1k"
_NOTHING = "/.nothing"
_RESTRICTED = READ_ONLY | NO_SUID | NO_DEVICES


@dataclass(frozen=True, slots=True)
class Agent:
    """The user of a cell's processes."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class View:
    """A finished pattern for the roots of cells."""

    mounts: int
    home: str
    # The entries of each of these folders in the pattern; a cell has its own folder with the same entries.
    fresh: dict[str, list[str]]
    copies: cell_etc.Copies | None

    def close(self) -> None:
        os.close(self.mounts)
        if self.copies is not None:
            self.copies.close()


def build(spec: CellSpec, boundary: Boundary, agent: Agent) -> View:
    """Raises OSError that names the path that cannot be shown, or the call that the kernel refuses."""
    own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    umask = os.umask(0o022)
    try:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        mounts.separate("/")
        view = _Builder(spec, boundary, agent).build()
    finally:
        os.umask(umask)
        syscalls.setns(own, syscalls.CLONE_NEWNS)
        os.close(own)
    if view.copies is not None:
        view.copies.refresh()
    return view


def enter(view: View, agent: Agent, memory_bytes_max: int) -> None:
    """Moves the calling process into a copy of the view, with file systems of its own.

    It must be in a pid namespace of its own.
    """
    syscalls.setns(view.mounts, syscalls.CLONE_NEWNS)
    syscalls.unshare(syscalls.CLONE_NEWNS)
    # Read-only: through /proc/self/oom_score_adj a process would make others die in its place.
    mounts.mount("proc", "/proc", READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)
    for folder, names in view.fresh.items():
        kept = {f"{folder}/{name}": _clone(f"{folder}/{name}") for name in names}
        mode, part = _FRESH[folder]
        size = f"size={memory_bytes_max // part}," if memory_bytes_max else ""
        options = f"{size}nr_inodes=256k,mode={mode},uid={agent.uid},gid={agent.gid}"
        mounts.mount("tmpfs", folder, NO_SUID | NO_DEVICES, options)
        for path, tree in kept.items():
            _attach(tree, path)
    if view.fresh:
        mounts.mount("devpts", "/dev/pts", NO_SUID | NO_EXEC, "newinstance,ptmxmode=0666,mode=0620")


def home_of(sandbox: Sandbox, boundary: Boundary) -> str:
    """The agent's HOME, in which it starts. A home folder of another user is not used."""
    is_shown = sandbox.level != "workspace" and boundary.home and boundary.user is None
    return boundary.home if is_shown else WORKSPACE


@dataclass(frozen=True, slots=True)
class _Shown:
    """A file or folder of the host, at a path without symbolic links."""

    path: str
    attributes: int


class _Builder:
    """Works in a new mount namespace; afterwards that namespace is the view."""

    def __init__(self, spec: CellSpec, boundary: Boundary, agent: Agent) -> None:
        self._sandbox = spec.sandbox
        self._agent = agent
        self._is_other_user = boundary.user is not None
        self._home = home_of(spec.sandbox, boundary)
        table = mounted()
        # A process that may write to a cgroup can end or freeze its processes.
        cgroups = [each.at for each in table if each.kind in ("cgroup", "cgroup2")]
        hidden = [os.path.realpath(path) for path in (*spec.hide, *cgroups, "/sys/fs/cgroup")]
        self._hidden = {path: origin(path, table) for path in hidden if os.path.exists(path)}
        self._links: dict[str, str] = {}
        self._own = [
            self._show(path, _RESTRICTED) for path in (*programs(spec.sandbox.level), *spec.sandbox.code)
        ]
        # Folders that an agent of another user cannot enter are useless to it, except for its own programs.
        own = self._own if boundary.user is not None else []
        closed = {folder for each in own for folder in _closed_above(each.path)}
        self._closed = {each for each in closed if not any(is_in(each, path) for path in self._hidden)}
        self._covers: list[str] = []
        named = [each for each in self._named(boundary) if not _is_in_any(each.path, self._own)]
        self._shown = _without_repetition([*named, *self._own], self._closed)

    def build(self) -> View:
        trees = {shown: self._clone(shown) for shown in self._shown if os.path.exists(shown.path)}
        devices = {} if self._is_host else {name: _clone(f"/dev/{name}") for name in _DEVICES}
        place = next(path for path in _BUILT_AT if os.path.isdir(path))
        mounts.mount("tmpfs", place, NO_SUID | NO_DEVICES, _ROOT_OPTIONS)
        os.chdir(place)
        covered = {}
        for shown, tree in sorted(trees.items(), key=lambda item: item[0].path):
            self._open_way(shown.path)
            if any(is_in(shown.path, path) for path in self._hidden):
                covered[shown] = tree
            else:
                _attach(tree, shown.path)
        for name, device in devices.items():
            _attach(device, f"/dev/{name}")
        self._furnish()
        mounts.become_root()
        self._cover(covered)
        copies = None if self._is_host else self._start_etc()
        _make_read_only("/")
        own = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        return View(own, self._home, self._fresh(), copies)

    @property
    def _is_host(self) -> bool:
        return self._sandbox.level == "host"

    def _named(self, boundary: Boundary) -> list[_Shown]:
        """Everything except the worker's own programs."""
        free = NO_SUID | NO_DEVICES
        if self._is_host:
            tops = [entry.path for entry in os.scandir("/") if entry.name != "proc"]
            found = [self._show(path, NO_SUID | (READ_ONLY if path == "/sys" else 0)) for path in tops]
        else:
            system = [f"/{name}" for name in _SYSTEM if os.path.exists(f"/{name}")]
            found = [self._show(path, _RESTRICTED) for path in (*system, *cell_etc.folders())]
        if self._sandbox.level == "home" and boundary.home:
            found.append(self._show(boundary.home, free))
        found += [self._show(path, _RESTRICTED) for path in self._asked(self._sandbox.read)]
        found += [self._show(path, free) for path in self._asked(self._sandbox.write)]
        return found

    def _asked(self, paths: Iterable[str]) -> list[str]:
        """Returns the existing ones of the paths in the settings; a path into a hidden folder is an error."""
        writable = [path for path in self._sandbox.write if os.path.exists(path)]
        asked = [path for path in paths if os.path.exists(path)]
        for path in asked:
            real = os.path.realpath(path)
            if any(is_in(real, hidden) for hidden in self._hidden):
                raise OSError(0, f"[sandbox] {path} is a place that no cell may see: remove it")
            # An agent that may write there could have put a link in the way.
            for folder in writable:
                if path != folder and is_in(path, folder) and not is_in(real, os.path.realpath(folder)):
                    raise OSError(0, f"[sandbox] {path} leads out of {folder} through a link: remove it")
        return asked

    def _show(self, path: str, attributes: int) -> _Shown:
        """Shows it at its real path; the path by which it was named becomes a link."""
        real = os.path.realpath(path)
        if real != path:
            self._links[path] = real
        return _Shown(real, attributes)

    def _clone(self, shown: _Shown) -> int:
        tree = _clone(shown.path)
        mounts.restrict(tree, shown.attributes)
        return tree

    def _furnish(self) -> None:
        for folder in _FOLDERS:
            os.makedirs(folder, exist_ok=True)
        for path, target in (*_LINKS.items(), *sorted(self._links.items())):
            place = path.lstrip("/")
            if not os.path.lexists(place):
                # Below a link of the host, that link already leads there.
                with suppress(OSError):
                    os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
                    os.symlink(os.path.relpath(target, f"/{os.path.dirname(place)}"), place)
        # Of the zygote's pid namespace; without it the kernel allows no cell to mount one.
        mounts.mount("proc", "proc", NO_SUID | NO_DEVICES | NO_EXEC)

    def _open_way(self, path: str) -> None:
        """Puts empty folders over the closed folders above a path that is attached next."""
        for folder in sorted(each for each in self._closed if is_in(path, each) and path != each):
            self._closed.remove(folder)
            place = folder.lstrip("/")
            if os.path.lexists(place):
                _cover(place)
                self._covers.append(folder)

    def _cover(self, covered: dict[_Shown, int]) -> None:
        """Puts empty files and folders over all hidden ones, then attaches the exceptions."""
        table = mounted()
        own = {each.path for each in self._own}
        covers = sorted({way for hidden in self._hidden.values() for way in ways_to(hidden, table)} - own)
        _pin({*covers, *own}, {each.at for each in table})
        for path in covers:
            # A path below another one is gone by now.
            if os.path.lexists(path):
                _cover(path)
                self._covers.append(path)
        for each, tree in covered.items():
            _attach(tree, each.path)
        for path in self._covers:
            _make_read_only(path)

    def _fresh(self) -> dict[str, list[str]]:
        """A folder that the settings show is the host's."""
        if self._is_host:
            return {}
        return {folder: os.listdir(folder) for folder in _FRESH if not os.path.ismount(folder)}

    def _start_etc(self) -> cell_etc.Copies:
        folder = os.open("/etc", os.O_PATH | os.O_CLOEXEC)
        cell_etc.write_users(folder, self._agent.name, self._agent.uid, self._agent.gid, self._home)
        if self._is_other_user:
            cell_etc.trust_repositories(folder)
        copies = cell_etc.Copies(mounts.clone(folder, below=False))
        os.close(folder)
        return copies


def programs(level: str) -> set[str]:
    """Returns the files of this interpreter and of the worker's packages.

    Where the host's folders are shown, the supervisor's packages may be in one of them: read-only, too.
    """
    packages = Path(__file__).resolve().parents[1]
    ours = ("ipc", "worker") if level == "workspace" else OURS
    libraries = {path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")}
    found = {sys.prefix, sys.base_prefix, *(str(packages / name) for name in ours), *libraries}
    return {path for path in found if os.path.isdir(path) and path != "/"}


def _without_repetition(wanted: list[_Shown], closed: set[str]) -> list[_Shown]:
    """Drops paths that a folder above shows in the same way; the last mention of a path counts.

    A path in a closed folder is not shown by a folder above it.
    """
    by_path = {shown.path: shown for shown in wanted}
    kept: list[_Shown] = []
    for shown in sorted(by_path.values(), key=lambda each: each.path):
        above = [each for each in kept if is_in(shown.path, each.path)]
        is_closed = above and any(
            is_in(shown.path, path) and shown.path != path and is_in(path, above[-1].path) for path in closed
        )
        if not above or is_closed or above[-1].attributes & READ_ONLY != shown.attributes & READ_ONLY:
            kept.append(shown)
    return kept


def _closed_above(path: str) -> set[str]:
    """Returns the folders above that only their owner may enter."""
    parts = path.split("/")[1:-1]
    folders = ["/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))]
    return {each for each in folders if not os.stat(each).st_mode & stat.S_IXOTH}


def _is_in_any(path: str, folders: list[_Shown]) -> bool:
    return any(is_in(path, folder.path) for folder in folders)


def _clone(path: str) -> int:
    found = mounts.find(path)
    try:
        return mounts.clone(found)
    finally:
        os.close(found)


def _attach(tree: int, path: str) -> None:
    """Attaches at a path of the new root, which is the working directory."""
    place = path.lstrip("/")
    if not os.path.lexists(place):
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        if os.path.isdir(tree):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    mounts.attach(tree, place)


def _pin(paths: set[str], mounted_at: set[str]) -> None:
    """Mounts every writable folder above these paths on itself: the kernel then refuses to rename it.

    A mount covers a folder, not its name: an agent that may write to a folder above could rename the way to
    it and make another one there, with other settings in it, for the host to find.
    """
    above = {str(folder) for path in paths for folder in Path(path).parents}
    for folder in sorted(above - mounted_at - {"/"}):
        if os.path.isdir(folder) and not os.statvfs(folder).f_flag & os.ST_RDONLY and _is_of_host(folder):
            mounts.attach(_clone(folder), folder)


def _is_of_host(path: str) -> bool:
    """False for a folder of the view's own root, which becomes read-only."""
    return os.stat(path).st_dev != os.stat("/").st_dev


def _cover(path: str) -> None:
    """Mounts an empty folder or file over it."""
    if os.path.isdir(path):
        mounts.mount("tmpfs", path, NO_SUID | NO_DEVICES | NO_EXEC, _COVER_OPTIONS)
    else:
        if not os.path.lexists(_NOTHING):
            os.close(os.open(_NOTHING, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o000))
        mounts.attach(_clone(_NOTHING), path)


def _make_read_only(path: str) -> None:
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        mounts.restrict(found, READ_ONLY, below=False)
    finally:
        os.close(found)
