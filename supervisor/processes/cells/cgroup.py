"""A cell as a cgroup: one write kills everything in it, and the kernel reports when it is empty."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ipc.service_messages import CellSpec, Sandbox
from supervisor.processes import procfs
from supervisor.processes.cells import own_cgroup
from supervisor.processes.cells.contract import CellUnavailable, Held, Limits
from supervisor.processes.procfs import Status

_LOOK_AGAIN_SECONDS = 0.001
# Where there is no cgroup2.
_NOWHERE = Path("/nonexistent")
_DESCRIPTION = (
    "a cgroup of its own, chosen in hermes.toml: a kill ends what it holds, but agents read and write what "
    "this user can, the supervisor's files too"
)


class CgroupCell:
    """The proof is `populated 0`, plus the zygote's report that no process that left the cgroup is alive."""

    name = "cgroup"
    has_view = False

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._folder = own_cgroup.own_folder() or _NOWHERE
        self.description = _DESCRIPTION

    def set_up(self) -> None:
        if self._folder == _NOWHERE:
            raise CellUnavailable("no cgroup2 is mounted here", "mount it at /sys/fs/cgroup")
        own_cgroup.settle()
        own_cgroup.hand_down(self._folder)
        own_cgroup.remove_empty(self._folder)
        folder = self._make(0)
        if not (folder / "cgroup.kill").exists():
            self.clear(0)
            raise CellUnavailable("this kernel has no cgroup.kill", "use Linux 5.14 or later")
        if not (folder / "memory.max").exists():
            self.description = f"{_DESCRIPTION}; the kernel does not limit its memory here"

    def spec(self, incarnation: int, sandbox: Sandbox, hide: tuple[str, ...]) -> CellSpec:
        return CellSpec(
            kind="cgroup",
            sandbox=sandbox,
            hide=hide,
            cgroup=str(self._make(incarnation)),
            memory_bytes_max=self.limits.memory_bytes_max,
            processes_max=self.limits.processes_max,
            files_max=self.limits.files_max,
        )

    def members(self, held: Held, at_most: int) -> Iterator[Status]:
        return procfs.descendants(held.keeper, at_most)

    def strike(self, held: Held, seen: Sequence[Status]) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._path(held.incarnation) / "cgroup.kill").write_text("1")

    async def finish(self, held: Held) -> None:
        events = self._path(held.incarnation) / "cgroup.events"
        # The kernel signals a change as an urgent condition, which the loop cannot wait for.
        while "populated 0" not in events.read_text():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        await held.gone.wait()
        await held.reaped.wait()

    def clear(self, incarnation: int) -> None:
        with contextlib.suppress(OSError):
            self._path(incarnation).rmdir()

    def _path(self, incarnation: int) -> Path:
        return self._folder / f"{own_cgroup.prefix()}{incarnation}"

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
            # The keeper is an additional process.
            ("pids.max", self.limits.processes_max + 1 if self.limits.processes_max else 0),
        ):
            if most and (folder / name).exists():
                (folder / name).write_text(str(most))
        return folder
