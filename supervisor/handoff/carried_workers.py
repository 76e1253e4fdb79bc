"""Workers, as one image of the supervisor hands them to the next: descriptors and fences.

Descriptors keep their numbers across `execve`; the processes stay children of the same process.
"""

from ipc.message_parts import Part
from ipc.service_messages import Sandbox


class HandedZygote(Part, frozen=True):
    """The zygote of running workers: its guard's pid, and the supervisor's end of the socket pair."""

    cell: str
    guard: int
    pair: int


class HandedWorker(Part, frozen=True):
    """A worker in the middle of a turn, and the keeper of its cell."""

    seat: int
    incarnation: int
    log: str
    begun_at: float
    pid: int
    keeper: int
    keeper_started: int
    keeper_pidfd: int
    # The guard of the zygote that started it.
    guard: int
    memory_bytes_max: int
    sandbox: Sandbox = Sandbox()
    leaf: str = ""
    workspace: str = ""


class HandedProcesses(Part, frozen=True):
    zygotes: tuple[HandedZygote, ...] = ()
    workers: tuple[HandedWorker, ...] = ()
