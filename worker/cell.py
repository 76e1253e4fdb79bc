"""The inside of a cell: its first process, the keeper, is shut in and outlives all that the cell holds.

In a namespace the worker is its own keeper: together with the first process the kernel ends all others.
Elsewhere the keeper stays above the worker and reaps whatever loses its parent; when the worker ends, it ends
all that is left, then itself.
"""

import os
import resource
import signal
from pathlib import Path
from typing import NoReturn

from ipc.children import CellSpec
from worker import kernel

_WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM})
# A sweep waits this long for a death, then looks again: a list of children may miss some while others die.
_LOOK_AGAIN_SECONDS = 0.02
# The kernel's choice when memory runs out: a worker before the supervisor and before most of the host.
_OOM_SCORE = "800"
# Root can write these though it has no capability: through them it would leave the cell.
_ROOT_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
_CGROUPS = "/sys/fs/cgroup"


def shut_off(spec: CellSpec) -> None:
    """For the zygote of pidns cells, first in its namespaces: hides what no cell may see, once for all."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    _mount_proc()
    shown = [(folder, os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for folder in spec.show]
    # Whoever may write here can end any process of the same user's cgroups.
    for folder in (*spec.hide, _CGROUPS):
        if os.path.isdir(folder) and not _is_below(folder, spec.hide):
            _hide(folder, shown)
    if os.geteuid() == 0 and os.path.ismount("/sys"):
        kernel.make_read_only("/sys")
    for _, descriptor in shown:
        os.close(descriptor)


def fork_keeper(spec: CellSpec, own_namespace: int) -> int:
    """Like os.fork: the child is to be a new cell's keeper. `own_namespace` is the zygote's, for pids."""
    if spec.kind == "cgroup":
        return kernel.fork_into_cgroup(spec.cgroup)
    if spec.kind == "sweep":
        return os.fork()
    kernel.unshare(kernel.CLONE_NEWPID)
    child = -1
    try:
        child = os.fork()
        return child
    finally:
        if child != 0:
            kernel.setns(own_namespace, kernel.CLONE_NEWPID)


def become_keeper(spec: CellSpec, zygote: int) -> None:
    """Shuts the calling process in; what it forks from here on cannot leave. `zygote` is its parent's pid."""
    if spec.kind == "pidns":
        _enter_namespaces()
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        kernel.adopt_orphans()
    _limit(spec)
    kernel.drop_privileges()
    # The kernel ends the others together with the first process of a namespace; elsewhere it must sweep.
    kernel.die_with_parent(signal.SIGKILL if spec.kind == "pidns" else signal.SIGTERM)
    if spec.kind != "pidns" and os.getppid() != zygote:
        os._exit(1)


def fork_worker(spec: CellSpec) -> int:
    """Like os.fork, in a keeper: 0 where it goes on as the worker.

    In a namespace one process less is torn down, and none has to be woken to see the last of the others go.
    """
    return 0 if spec.kind == "pidns" else os.fork()


def become_worker() -> None:
    """What a worker changes about itself."""
    kernel.die_with_parent(signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    home = os.environ.get("HOME", "/")
    os.chdir(home if os.path.isdir(home) else "/")


def keep(child: int) -> NoReturn:
    """Waits until `child` ends or the parent is gone, ends all that is left, then ends as `child` did.

    A child ended by signal N is told as status 128 + N: the first process of a namespace cannot kill itself.
    """
    status: int | None = None
    while status is None:
        if signal.sigwaitinfo(_WATCHED).si_signo == signal.SIGTERM:
            status = 128 + signal.SIGTERM
        else:
            status = _reap().get(child)
    _sweep()
    os._exit(status)


def guard() -> None:
    """Makes the caller a keeper without a cell: for the process above the zygote, before it forks it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    kernel.adopt_orphans()


def unguard() -> None:
    """Undoes in the zygote what it got from the process above it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    kernel.adopt_orphans()


def children() -> list[int]:
    """Every child of the calling thread, also the ended ones that nobody has reaped."""
    return [int(pid) for pid in Path("/proc/thread-self/children").read_text().split()]


def _reap() -> dict[int, int]:
    """Takes every ended child; the exit status of each by pid."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def _sweep() -> None:
    """Kills children until none is left; those of the killed become children of this process.

    A child that nobody has reaped keeps its pid, so no other process can be hit.
    """
    while True:
        _reap()
        left = children()
        if not left:
            return
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_AGAIN_SECONDS)


def _enter_namespaces() -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWNS)
    _mount_proc()
    if uid == 0:
        for path in _ROOT_READ_ONLY:
            if os.path.exists(path):
                kernel.mount(path, path, "", kernel.MS_BIND)
                kernel.make_read_only(path)
    # A second user namespace owns none of the mounts above, so nothing in it can undo them, and the kernel
    # counts its processes apart from those of other cells.
    kernel.unshare(kernel.CLONE_NEWUSER)
    kernel.map_user(uid, gid)


def _limit(spec: CellSpec) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if spec.files_max:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = spec.files_max if hard == resource.RLIM_INFINITY else min(spec.files_max, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Outside a user namespace of its own a cell would be counted together with all else this user runs.
    if spec.processes_max and spec.kind == "pidns":
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = spec.processes_max if hard == resource.RLIM_INFINITY else min(spec.processes_max, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _mount_proc() -> None:
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _hide(folder: str, shown: list[tuple[str, int]]) -> None:
    """Lays an empty read-only folder over `folder`; only what is shown is reached in it, read-only too."""
    kernel.mount("none", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=64k")
    for path, descriptor in shown:
        if _is_below(path, (folder,)):
            os.makedirs(path, exist_ok=True)
            kernel.mount(f"/proc/self/fd/{descriptor}", path, "", kernel.MS_BIND)
            kernel.make_read_only(path)
    kernel.make_read_only(folder)


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path != folder and Path(path).is_relative_to(folder) for folder in folders)
