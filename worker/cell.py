"""The inside of a cell: its first process, the keeper, is enclosed and outlives all others in the cell.

In a namespace the worker is its own keeper: together with the first process the kernel ends all others.
Elsewhere the keeper stays above the worker and reaps every process that loses its parent; when the worker
ends, it ends all that is left, then itself.
"""

import contextlib
import os
import resource
import signal
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ipc.service_messages import LEASE_GIVEN_UP, Boundary, CellSpec
from worker import cell_cgroup, mounts, output_files, syscalls
from worker.cell_etc import GIT_OF_AGENTS
from worker.cell_view import WORKSPACE, Agent, View, enter, programs
from worker.lease_watch import SIGNAL as LEASE_SIGNAL
from worker.lease_watch import LeaseWatch

_WATCHED = frozenset({signal.SIGCHLD, signal.SIGTERM})
# A sweep waits this long for a death, then scans again: a list of children may miss some while others die.
_LOOK_AGAIN_SECONDS = 0.02
# The kernel's choice when memory runs out: a worker before the supervisor and before most of the host.
_OOM_SCORE = "800"
_SEED_BYTES = 32
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_IPC_SETTINGS = "/proc/sys/kernel"
# Limits that the kernel has per user, and so for the supervisor and all cells together: a user namespace may
# have less, all cells this part of it and each cell that part.
_WATCHES = {"max_user_instances": "max_inotify_instances", "max_user_watches": "max_inotify_watches"}
_WATCHES_OF_ALL, _WATCHES_OF_ONE = (3, 4), (1, 4)
# Message queues of 16 KiB; semaphores in a set, of all sets, in one operation, and sets.
_IPC_LIMITS = {"msgmni": "64", "sem": "250 32000 100 128"}


@dataclass(frozen=True, slots=True)
class CellSetup:
    """The parts that a new cell is made with. `view` and the filter are empty without namespaces."""

    spec: CellSpec
    boundary: Boundary
    agent: Agent
    view: View | None = None


def set_up_workshop() -> None:
    """Prepares the zygote of pidns cells: a mount namespace of its own, in which views are built."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    mounts.separate("/", wholly=False)
    mounts.mount("proc", "/proc", mounts.NO_SUID | mounts.NO_DEVICES | mounts.NO_EXEC)
    _limit_watches("/proc/sys", _WATCHES_OF_ALL)


def fork_keeper(spec: CellSpec, own_namespace: int, leaf: str = "") -> int:
    """Like os.fork: the child becomes the keeper of a new cell.

    `own_namespace` is the zygote's pid namespace; `leaf` the cgroup of a cell that is a namespace, if it has
    one.
    """
    if spec.kind == "cgroup":
        return syscalls.fork_into_cgroup(spec.cgroup)
    if spec.kind == "sweep":
        return os.fork()
    syscalls.unshare(syscalls.CLONE_NEWPID)
    child = -1
    try:
        child = syscalls.fork_into_cgroup(leaf) if leaf else os.fork()
        return child
    finally:
        if child != 0:
            syscalls.setns(own_namespace, syscalls.CLONE_NEWPID)


def become_keeper(setup: CellSetup, zygote: int) -> None:
    """Encloses the calling process; its descendants cannot leave. `zygote` is its parent's pid."""
    spec = setup.spec
    # Without a namespace the zygote refuses to be inspected, and so does what it forks.
    syscalls.refuse_inspection(False)
    # Through the zygote's /proc: that of the cell is read-only.
    Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    if setup.view is not None:
        _enter_namespaces(setup, setup.view)
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        syscalls.adopt_orphans()
    _limit(spec)
    # A keeper that stays above a worker of another user needs the right to kill it.
    if setup.view is not None or setup.boundary.user is None:
        syscalls.drop_privileges()
    # The kernel ends the others together with the first process of a namespace; elsewhere the keeper must
    # sweep.
    syscalls.die_with_parent(signal.SIGKILL if spec.kind == "pidns" else signal.SIGTERM)
    if spec.kind != "pidns" and os.getppid() != zygote:
        os._exit(1)


def fork_worker(spec: CellSpec) -> int:
    """Like os.fork, in a keeper: returns 0 in the process that becomes the worker.

    In a namespace the keeper itself becomes the worker: one process less ends, and none has to wake up to
    reap the others.
    """
    return 0 if spec.kind == "pidns" else os.fork()


def become_worker(setup: CellSetup) -> None:
    """Applies the worker's own restrictions, last of all: afterwards it can change no more."""
    if setup.view is None and setup.boundary.user is not None:
        syscalls.give_up_regaining()
        syscalls.become_user(setup.agent.uid, setup.agent.gid)
        syscalls.drop_privileges()
    syscalls.die_with_parent(signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    # OpenSSL knows a fork by its new pid; zygote and worker are both number 1 of their namespaces, so every
    # worker would draw the same numbers, for the keys of its connections too.
    ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
    if setup.view is not None:
        os.environ["HOME"] = setup.view.home
        output_files.keep_in(WORKSPACE)
        os.environ.pop("TMPDIR", None)
        if os.path.exists(GIT_OF_AGENTS):
            os.environ["GIT_CONFIG_SYSTEM"] = GIT_OF_AGENTS
    elif setup.boundary.user is not None:
        os.environ["HOME"] = "/"
    if setup.view is not None or setup.boundary.user is not None:
        os.environ["USER"] = os.environ["LOGNAME"] = setup.agent.name
    if syscalls.landlock_version() >= syscalls.LANDLOCK_WITH_SCOPES:
        syscalls.scope_sockets_and_signals()
    if setup.boundary.cell_filter:
        syscalls.filter_calls(setup.boundary.cell_filter)
    go_home()


def go_home() -> None:
    """Called again when the session's workspace is bound: a process stays in a folder that a mount covers."""
    home = os.environ.get("HOME", "/")
    os.chdir(home if os.path.isdir(home) else "/")


def check_programs(setup: CellSetup) -> None:
    """In a complete cell: raises OSError when the agent's user cannot read the programs of the worker."""
    for path in sorted(programs(setup.spec.sandbox.level)):
        if not os.access(path, os.R_OK | os.X_OK):
            uid = setup.agent.uid
            raise OSError(0, f"agents run as uid {uid}, which cannot read {path}: run `chmod -R a+rX {path}`")


def shortcomings(setup: CellSetup, leaf: str) -> list[str]:
    """In a complete cell: returns the limits that this kernel cannot enforce, in sentences."""
    found = []
    if syscalls.landlock_version() < syscalls.LANDLOCK_WITH_SCOPES:
        reached = "abstract Unix sockets" + ("" if setup.view is not None else " and processes of this user")
        found.append(f"{reached} can be reached from inside: that needs Landlock of Linux 6.12")
    if setup.view is None:
        return found
    for path in setup.spec.sandbox.write:
        if not os.access(path, os.W_OK):
            found.append(f"[sandbox] write names {path}, which uid {setup.agent.uid} may not write to")
    if Path(_IPC_SETTINGS, "msgmni").read_text().strip() != _IPC_LIMITS["msgmni"]:
        found.append(
            "shared memory of System V is not limited: that needs Linux 6.9 and root's service, or a cgroup"
        )
    if setup.spec.memory_bytes_max and not cell_cgroup.limits_memory(leaf):
        found.append(
            "its memory is measured twice a second and not limited by the kernel: that needs a delegated "
            "cgroup with the memory controller, see `hermesctl install`"
        )
    return found


def keep(child: int, lease: LeaseWatch | None = None) -> NoReturn:
    """Waits until `child` ends or the parent is gone, ends all that is left, then ends as `child` did.

    A child that signal N ended is reported as status 128 + N: the first process of a namespace cannot kill
    itself. With a lease, all ends when that is given up.
    """
    watched = _WATCHED if lease is None else _WATCHED | {LEASE_SIGNAL}
    status: int | None = None
    while status is None:
        if lease is not None and lease.is_over():
            status = LEASE_GIVEN_UP
        elif (number := signal.sigwaitinfo(watched).si_signo) == signal.SIGTERM:
            status = 128 + signal.SIGTERM
        elif number == signal.SIGCHLD:
            status = _reap().get(child)
    _sweep()
    os._exit(status)


def guard() -> None:
    """Makes the caller a keeper without a cell: for the process above the zygote, before it forks it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    syscalls.adopt_orphans()


def unguard() -> None:
    """Undoes in the zygote the settings inherited from the process above it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    syscalls.adopt_orphans()


def children() -> list[int]:
    """Returns every child of the calling thread, unreaped ones too."""
    return [int(pid) for pid in Path("/proc/thread-self/children").read_text().split()]


def _reap() -> dict[int, int]:
    """Reaps every ended child; returns the exit status of each by pid."""
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

    An unreaped child keeps its pid, so no other process can be hit.
    """
    while True:
        _reap()
        left = children()
        if not left:
            return
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK_AGAIN_SECONDS)


def _enter_namespaces(setup: CellSetup, view: View) -> None:
    agent = setup.agent
    # The /proc of the cell will be read-only.
    own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    settings = os.open("/proc/sys", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    syscalls.unshare(syscalls.CLONE_NEWIPC)
    _limit_shared_memory(setup.spec.memory_bytes_max)
    enter(view, agent, setup.spec.memory_bytes_max)
    if setup.boundary.user is not None:
        syscalls.become_user(agent.uid, agent.gid)
    # A second user namespace owns none of the mounts above, so nothing in it can undo them, and the kernel
    # counts its processes apart from those of other cells.
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    syscalls.map_user(agent.uid, agent.gid, own)
    _limit_watches(f"/proc/self/fd/{settings}", _WATCHES_OF_ONE)
    os.close(settings)
    os.close(own)


def _limit_watches(settings: str, part: tuple[int, int]) -> None:
    """In a new user namespace; `settings` is a writable /proc/sys."""
    for of_host, of_namespace in _WATCHES.items():
        # A kernel without inotify has neither.
        with contextlib.suppress(FileNotFoundError):
            most = int(Path(settings, "fs/inotify", of_host).read_text()) * part[0] // part[1]
            Path(settings, "user", of_namespace).write_text(str(most))


def _limit_shared_memory(bytes_max: int) -> None:
    """Limits the cell's own IPC namespace: segments live without a process, so nothing else counts them."""
    wanted = _IPC_LIMITS | ({"shmall": str(bytes_max // _PAGE_BYTES)} if bytes_max else {})
    for name, value in wanted.items():
        # Before Linux 6.9 only root may; `shortcomings` reports what is missing then.
        with contextlib.suppress(PermissionError):
            Path(_IPC_SETTINGS, name).write_text(value)


def _limit(spec: CellSpec) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if spec.files_max:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = spec.files_max if hard == resource.RLIM_INFINITY else min(spec.files_max, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # Outside a user namespace of its own the cell would be counted together with all other processes of this
    # user.
    if spec.processes_max and spec.kind == "pidns":
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = spec.processes_max if hard == resource.RLIM_INFINITY else min(spec.processes_max, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
