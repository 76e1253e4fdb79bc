"""Messages between the supervisor and its children other than workers: the services and the zygote."""

from typing import Any, Literal

from ipc.bounds import FilePath, Number, Sentence, Sentences, Status
from ipc.message_parts import Part
from ipc.messages import Beat, Message
from ipc.stt_messages import FromStt

# The exit status of a guard that has ended every cell because the lease of its host was given up.
LEASE_GIVEN_UP = 120

# --- service child <-> supervisor ---------------------------------------------------------------------------


class ServiceStart(Message, frozen=True, tag="start"):
    """First line on a service's standard input. It has keys, which must not be in argv or environ."""

    name: str
    incarnation: int
    endpoint: str
    identity: str
    options: dict[str, Any]
    # The child compares it with its real parent, to detect that the supervisor has died meanwhile.
    parent_pid: int

    def __repr__(self) -> str:
        """Leaves out identity and options, which hold keys: a repr ends up in logs."""
        return f"ServiceStart(name={self.name!r}, incarnation={self.incarnation})"


class ServiceState(Message, frozen=True, tag="state"):
    """The state of the service; `address` once it serves; `hint` when it cannot."""

    state: Literal["starting", "warming", "ready", "failed"]
    detail: Sentence = ""
    hint: Sentence = ""
    address: FilePath = ""


# All that may come in over the socket of the services; clips are for the STT service alone to speak of.
FromService = ServiceState | Beat | FromStt


# --- zygote <-> supervisor (one datagram a message on a private socket pair) --------------------------------


class Sandbox(Part, frozen=True):
    """The view that the cells of one agent have of the host, as hermes.toml asks for it.

    `workspace` shows the system's programs, read-only, and the session's own folder; `home` the home folder
    of the service's user too; `host` the host's files. `read` and `write` are absolute paths in addition.
    `code` are folders with the modules of the agent: read-only, like the worker's own.
    """

    level: Literal["workspace", "home", "host"] = "workspace"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: Literal["host", "none"] = "host"
    code: tuple[str, ...] = ()


class CellSpec(Part, frozen=True):
    """How a worker and its processes are held; `hide` are folders and files that it sees at no level.

    `cgroup` is the existing one, or for a cell of namespaces the prefix of a new one's path.
    """

    kind: Literal["pidns", "cgroup", "sweep"]
    sandbox: Sandbox = Sandbox()
    hide: tuple[str, ...] = ()
    cgroup: str = ""
    memory_bytes_max: int = 0
    processes_max: int = 0
    files_max: int = 0


class User(Part, frozen=True):
    """Numeric ids as the supervisor sees them; inside a cell they are the same."""

    uid: int
    gid: int


class Boundary(Part, frozen=True):
    """Properties that all cells of a supervisor share.

    `user` owns their processes, None for the supervisor's own user. `home` is the home folder of the
    supervisor's user, `workspaces` the folder of the sessions' workspaces. The filter is a seccomp program.
    """

    user: User | None = None
    home: str = ""
    workspaces: str = ""
    cell_filter: bytes = b""


class Prepare(Message, frozen=True, tag="prepare"):
    """First message to a zygote: its cells. The zygote tries one and reports whether it works here."""

    cell: CellSpec
    boundary: Boundary


class Fork(Message, frozen=True, tag="fork"):
    """Make a worker. Its log and its two channels to the supervisor are passed as descriptors.

    So none of the three has to be found by a path in the cell. `frames` and `pulse` are the numbers of the
    channels' descriptors in the worker, which sets them when it receives the order. `tools_filter` is a
    seccomp program for the tools of an agent that get no network. With `has_setup` the worker waits for a
    Setup before it is ready.
    """

    epoch: int
    seat: int
    incarnation: int
    log_path: str
    cell: CellSpec
    tools_filter: bytes = b""
    frames: int = -1
    pulse: int = -1
    has_setup: bool = False


class Bind(Message, frozen=True, tag="bind"):
    """Show a worker the workspace of its session; `folder` is its name in the folder of all workspaces."""

    incarnation: int
    folder: str


ToZygote = Prepare | Fork | Bind


class CellWorks(Message, frozen=True, tag="works"):
    """The cell of Prepare was tried and holds, except as the sentences say; warming up begins."""

    shortcomings: Sentences = ()


class CellFails(Message, frozen=True, tag="fails"):
    """The kernel does not allow the cell of Prepare; the zygote ends."""

    error: Sentence


class NoAgent(Message, frozen=True, tag="noagent"):
    """Its agents cannot be had: the fault and its remedy; the zygote ends."""

    error: Sentence
    hint: Sentence


class Warm(Message, frozen=True, tag="warm"):
    """Everything is imported and one rehearsal turn was run; forks take milliseconds from here on."""

    ms: Number


class Forked(Message, frozen=True, tag="forked"):
    """The cell's first process exists; its pidfd is passed with this datagram.

    `leaf` is its cgroup, if any.
    """

    incarnation: Number
    leaf: FilePath = ""


class Running(Message, frozen=True, tag="running"):
    """Sent by the worker itself when it has its order; its pidfd is passed with this datagram."""

    incarnation: Number


class Bound(Message, frozen=True, tag="bound"):
    """The workspace is mounted, or the reason why it is not."""

    incarnation: Number
    error: Sentence = ""


class ForkFailed(Message, frozen=True, tag="noforked"):
    incarnation: Number
    error: Sentence


class Exited(Message, frozen=True, tag="exited"):
    """A cell's first process was reaped, nothing is left; `status` as os.waitstatus_to_exitcode has it."""

    incarnation: Number
    status: Status


FromZygote = CellWorks | CellFails | NoAgent | Warm | Forked | Running | ForkFailed | Bound | Exited
