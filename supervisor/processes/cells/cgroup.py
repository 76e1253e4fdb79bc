"""A cell as a cgroup of its own: one write ends all in it, and the kernel says when it is empty."""

import asyncio
import contextlib
import os
from pathlib import Path

from ipc.children import CellSpec
from supervisor.processes.cells.cell import CellUnavailable, Held, Limits

# The cgroup in which the supervisor itself sits, beside those of its workers.
_OWN_LEAF = "supervisor"
_PREFIX = "hermes-worker-"
_CONTROLLERS = ("memory", "pids")
_LOOK_AGAIN_SECONDS = 0.001


class CgroupCell:
    """The proof is `populated 0`, and the zygote's word that nothing which had left the cgroup lives on."""

    name = "cgroup"

    def __init__(self, hide: tuple[str, ...], show: tuple[str, ...], limits: Limits) -> None:
        self.limits = limits
        self._folder = _own_folder()
        self._settle()
        self._remove_empty()
        folder = self._make(0)
        if not (folder / "cgroup.kill").exists():
            self.clear(0)
            raise CellUnavailable("this kernel has no cgroup.kill", "use Linux 5.14 or later")
        limited = "with limits" if (folder / "memory.max").exists() else "without limits"
        self.description = (
            f"a cgroup of its own ({limited}): nothing survives a kill, but a worker can signal and read "
            "what this user can, the supervisor's files too"
        )

    def spec(self, incarnation: int) -> CellSpec:
        return CellSpec(
            kind="cgroup",
            cgroup=str(self._make(incarnation)),
            memory_bytes_max=self.limits.memory_bytes_max,
            processes_max=self.limits.processes_max,
            files_max=self.limits.files_max,
        )

    def strike(self, held: Held) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._path(held.incarnation) / "cgroup.kill").write_text("1")

    async def finish(self, held: Held) -> None:
        events = self._path(held.incarnation) / "cgroup.events"
        # The kernel's notice of a change comes as an urgent condition, which the loop cannot wait for.
        while "populated 0" not in events.read_text():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        await held.gone.wait()
        await held.reaped.wait()

    def clear(self, incarnation: int) -> None:
        with contextlib.suppress(OSError):
            self._path(incarnation).rmdir()

    def _path(self, incarnation: int) -> Path:
        return self._folder / f"{_PREFIX}{os.getpid()}-{incarnation}"

    def _remove_empty(self) -> None:
        """Folders of killed supervisors; the kernel refuses to remove one that still holds a process."""
        for folder in self._folder.glob(f"{_PREFIX}*-*"):
            if not Path("/proc", folder.name.removeprefix(_PREFIX).partition("-")[0]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _make(self, incarnation: int) -> Path:
        folder = self._path(incarnation)
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise CellUnavailable(
                f"cannot make a cgroup in {self._folder}: {error.strerror}",
                "set Delegate=yes in the systemd unit",
            ) from None
        for name, most in (
            ("memory.max", self.limits.memory_bytes_max),
            # The keeper is one more.
            ("pids.max", self.limits.processes_max + 1 if self.limits.processes_max else 0),
        ):
            if most and (folder / name).exists():
                (folder / name).write_text(str(most))
        return folder

    def _settle(self) -> None:
        """Moves the supervisor to a leaf if it is alone: only then can the cgroups beside it have limits."""
        if (self._folder / _OWN_LEAF).is_dir() or not (self._folder / "cgroup.type").exists():
            return self._control()
        try:
            if (self._folder / "cgroup.procs").read_text().split() == [str(os.getpid())]:
                (self._folder / _OWN_LEAF).mkdir()
                (self._folder / _OWN_LEAF / "cgroup.procs").write_text(str(os.getpid()))
                self._control()
        except OSError:
            # Not ours to arrange: the cell works without controllers.
            pass
        return None

    def _control(self) -> None:
        there = (self._folder / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in there)
        if wanted:
            with contextlib.suppress(OSError):
                (self._folder / "cgroup.subtree_control").write_text(wanted)


def _own_folder() -> Path:
    """The folder of this process's cgroup, or the one above when it already sits in its leaf."""
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if own and kind.startswith("cgroup2 "):
            folder = Path(fields.split()[4]) / own[0].lstrip("/")
            return folder.parent if folder.name == _OWN_LEAF else folder
    raise CellUnavailable("no cgroup2 is mounted here", "mount it at /sys/fs/cgroup")
