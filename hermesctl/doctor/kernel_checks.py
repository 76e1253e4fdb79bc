"""Kernel features of this user: each one is tried in a process of its own, not read from a list."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from hermesctl.doctor.finding import Finding, Surroundings, bad, care, good

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_PR_SET_CHILD_SUBREAPER = 36
# Switches that disable namespaces for ordinary users, and the value that does.
_NAMESPACE_SWITCHES = (
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "10000"),
)
_FAULT_BYTES_MAX = 1024
# The first kernel that ends a whole cgroup at once.
_CGROUP_KILL = (5, 14)
# Controllers that limit the resources of a worker. If version 1 has them, version 2 has not.
_CONTROLLERS = ("memory", "pids")
_DELEGATED = "hermesctl install runs it with Delegate=yes"
_UNIFIED = "boot with systemd.unified_cgroup_hierarchy=1, or give the container a cgroup v2"


def kernel(around: Surroundings) -> Finding:
    release = os.uname().release
    if _numbers(release) < _CGROUP_KILL:
        return care(
            "kernel", f"Linux {release}", "use Linux 5.14 or later: it can end a whole cgroup at once"
        )
    return good("kernel", f"Linux {release}")


def namespaces(around: Surroundings) -> Finding:
    fault = _tried(_enter_namespaces)
    if not fault:
        return good("namespaces", "user, pid and mount namespaces can be made")
    for name, off, on in _NAMESPACE_SWITCHES:
        if _sysctl(name) == off:
            return care("namespaces", f"cannot be made: {name} is {off}", f"sudo sysctl -w {name}={on}")
    return care("namespaces", f"cannot be made: {fault}", "allow them to this user, or to this container")


def cgroup(around: Surroundings) -> Finding:
    return judged_cgroup(_own_cgroup(), os.uname().release)


def judged_cgroup(folder: Path | None, release: str) -> Finding:
    """`folder` is the cgroup of this process; None where no hierarchy of version 2 is mounted."""
    if folder is None:
        return care("cgroup", "no cgroup v2 is mounted", _UNIFIED)
    if not os.access(folder, os.W_OK):
        return care("cgroup", f"{folder} is not writable", _DELEGATED)
    missing = [name for name in _CONTROLLERS if name not in _words(folder / "cgroup.controllers")]
    if missing:
        # The root of the hierarchy has all controllers, except those that version 1 uses.
        is_root = not (folder / "cgroup.type").exists()
        fact = f"{folder} has no controller for {' and '.join(missing)}"
        return care("cgroup", fact, _UNIFIED if is_root else _DELEGATED)
    if _numbers(release) < _CGROUP_KILL:
        return care("cgroup", "this kernel has no cgroup.kill", "use Linux 5.14 or later")
    return good("cgroup", "v2, writable, with cgroup.kill")


def pidfd(around: Surroundings) -> Finding:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return bad("pidfd", f"pidfd_open does not work: {error.strerror}", "use Linux 5.3 or later")
    return good("pidfd", "processes can be held by descriptor")


def subreaper(around: Surroundings) -> Finding:
    if fault := _tried(_become_subreaper):
        return bad("subreaper", f"orphans cannot be adopted: {fault}", "use Linux 3.4 or later")
    return good("subreaper", "orphans can be adopted")


def cell(around: Surroundings) -> Finding:
    found = around.checkup.get("cell") or {}
    if "description" not in found:
        fault = found.get("fault") or "the kind of cell is unknown"
        return bad("cell", f"no agent starts: {fault}", found.get("hint") or "hermesctl run shows why")
    shortcomings = found.get("shortcomings") or []
    fact = "; ".join([f"{found['kind']}: {found['description']}", *shortcomings])
    if found["kind"] != "pidns":
        return care("cell", fact, 'set [workers] cell = "auto": then agents see nothing of the supervisor')
    return care("cell", fact, "use a newer kernel") if shortcomings else good("cell", fact)


def _tried(act: Callable[[], None]) -> str:
    """Returns the error that a child process gets; empty when the call is allowed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except OSError as error:
            os.write(writing, (error.strerror or str(error)).encode())
        os._exit(0)
    os.close(writing)
    fault = os.read(reading, _FAULT_BYTES_MAX).decode(errors="replace")
    os.close(reading)
    os.waitpid(pid, 0)
    return fault


def _enter_namespaces() -> None:
    _call("unshare", _CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNS)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if os.getpid() == 1 else 1)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(0, "the first process in it is not the first")


def _become_subreaper() -> None:
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _numbers(release: str) -> tuple[int, ...]:
    """5.14.0-70.el9 as (5, 14)."""
    return tuple(int(part) for part in release.replace("-", ".").split(".")[:2] if part.isdigit())


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return ""


def _own_cgroup() -> Path | None:
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            return Path(fields.split()[4]) / own[0].lstrip("/")
    return None
