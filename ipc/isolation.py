"""The known attacks on a cell in harmless forms: their targets, and the result of each.

`hermesctl doctor --isolation` sends a Targets, as JSON, to the session `isolation:AGENT`. The turn that
answers it runs the attacks inside a cell of that agent (worker/attacks) and ends with a Trial, as JSON. An
attack changes nothing that outlives it: it connects and disconnects, opens and closes, sends signal 0, or
runs in a child process when its effect would persist.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from ipc.bounds import FilePath, Name, Number
from ipc.message_parts import Part

# The session of a trial is this and the name of the agent; its turns call no model.
SESSIONS = "isolation:"
# The kind of agent of such a session. hermes.toml cannot name it.
KIND = "isolation"

# Held: the attack was tried and refused. Open: it succeeded. Absent: it has no target on this host. Broken:
# it could not be tried, so its result is unknown.
Verdict = Literal["held", "open", "absent", "broken"]
Paths = Annotated[tuple[FilePath, ...], Meta(max_length=64)]


def tried_agent(session: str) -> str:
    """Returns the agent whose cells this session tries; empty for every other session."""
    return session.removeprefix(SESSIONS) if session.startswith(SESSIONS) else ""


class Spot(Part, frozen=True):
    """A file or folder of the host. Device and inode tell it from another file at the same path in a cell."""

    path: FilePath
    device: Number
    inode: Number


class Running(Part, frozen=True):
    """A process outside the cell.

    Its start time tells it from another process with the same pid in a cell.
    """

    pid: Number
    started: Number


Spots = Annotated[tuple[Spot, ...], Meta(max_length=64)]


class Targets(Part, frozen=True):
    """The targets of one trial. An empty target is not tried.

    A client knows the first ones, or sets them up for the trial; the supervisor and the worker add those from
    `agents` on.
    """

    systemd: Paths = ()
    buses: Paths = ()
    containers: Paths = ()
    key_agents: Paths = ()
    displays: Paths = ()
    terminals: Paths = ()
    unix: Paths = ()
    abstract: Name = ""
    runtime: FilePath = ""
    control: Paths = ()
    port: Number = 0
    model: FilePath = ""
    outside: Annotated[tuple[Running, ...], Meta(max_length=64)] = ()
    state: Spots = ()
    settings: Spots = ()
    workspaces: Spots = ()
    parents: Spots = ()
    home: Spots = ()
    host_file: Spots = ()
    # --- added on the way ---
    agents: tuple[Name, ...] = ()
    keys: Paths = ()
    variables: tuple[Name, ...] = ()
    cell: Name = ""
    network: Name = ""
    memory_bytes_max: Number = 0
    processes_max: Number = 0
    files_max: Number = 0
    worker: Number = 0
    # The addresses of the journal's database: the path of a socket, or HOST:PORT.
    databases: Paths = ()
    role: Name = ""
    database: Name = ""


class Result(Part, frozen=True):
    """The result of one attack; `seen` describes the observation in a few words."""

    name: Name
    verdict: Verdict
    seen: Annotated[str, Meta(max_length=300)] = ""


class Trial(Part, frozen=True):
    """All results, and the settings of the cell. `attempt.opened` has its `level`."""

    cell: Name
    network: Name
    results: Annotated[tuple[Result, ...], Meta(max_length=100)]


@dataclass(frozen=True)
class Attack:
    """`row` is the incident that the attack repeats; `matters` is the consequence where it is open."""

    name: str
    row: str
    tried: str
    matters: str


_TABLE = """
systemd | H1 | connect to systemd's private sockets | an agent starts units outside its cell
D-Bus | H2 | connect to the system's and the session's bus | an agent acts as the desktop's user
containers | H2 | connect to docker, podman or containerd | an agent starts containers, often as root
key agents | H2 | connect to ssh-agent and gpg-agent | an agent signs with your keys
display | H2 | connect to X11 and Wayland | an agent reads keys and the screen
tmux | H2 | connect to tmux servers | an agent types into your terminals
Unix sockets | H2 | connect to a socket of this user in a folder | an agent reaches your programs
abstract sockets | H2 | connect to an abstract socket of this user | an agent reaches your programs
loopback | H2 | connect to a TCP port of this host | tools reach the network and local servers
embedded model | H2 | ask the embedded model without its key | other programs use the model
user namespace | H3 | make a user namespace | an agent has all powers in a namespace
mount | H3 | mount a file system | an agent changes what its cell sees
cgroups | H3 | open a file of a cgroup for writing | an agent freezes or ends the supervisor
privileges | H3 | look for capabilities and set-user-ID | an agent gains powers of root
keyrings | H3 | keyctl | kernel keys of the user, and kernel code, can be reached
BPF | H3 | bpf | kernel code that is often faulty can be reached
perf | H3 | perf_event_open | kernel code that is often faulty can be reached
userfaultfd | H3 | userfaultfd | faults of the kernel are easier to exploit
io_uring | H3 | io_uring_setup | kernel code that no filter sees can be reached
worker sockets | H4 | find a socket that leads to the supervisor | tools can load the supervisor
parent folders | H6 | rename a folder above settings and state | an agent puts other settings in their place
interpreter | H7 | write into the interpreter's folders | an agent's code runs in the supervisor
pth file | H7 | write a .pth file into site-packages | an agent's code runs at the next start
program | H7 | write into the program's folders | an agent's code runs in the supervisor
settings | H8 | open hermes.toml | an agent reads or changes the settings
state | H8 | open the journal and the token | an agent reads every conversation
database | H8 | open the journal's database | an agent reads and changes every conversation
keys | H8 | open key files and systemd's credentials | an agent has the model's key
environment | H8 | read secrets in variables of any process | an agent has the keys in them
worker memory | H8 | read the memory of the agent's own worker | tools have the model's key
home folder | H8 | list the home folder | an agent reads and changes your files
host files | H8 | read a file elsewhere on the host | an agent reads files of the host
/proc roots | H9 | reach the state through /proc/PID/root | an agent reads every conversation
second mounts | H9 | reach the state through another mount | an agent reads every conversation
file handles | H9 | open a file by its handle | an agent reads any file of the disk
devices | H10 | open disks and memory, make a device | an agent reads any file of the disk
kernel log | H10 | read /dev/kmsg and syslog | an agent reads what the kernel says
root | H10 | look whose its processes are | an agent is root on this host
other user | E7 | compare their user with the supervisor's | rights of files keep nothing apart
memory | H10 | look for the kernel's limit of memory | half a second passes before too much is noticed
processes | H10 | start more than processes_max | an agent fills the host with processes
open files | H10 | look for the limit of open files | an agent uses up the host's files
memory files | H10 | look for the size of /tmp, /run and /dev/shm | an agent fills memory with files
shared memory | H10 | look for the limit of System V memory | memory stays when a cell is gone
OOM score | H10 | lower oom_score_adj | the kernel ends other programs in its place
keeper | H11 | signal the processes that end the cell | an agent lives on after a kill
signals | E7 | signal the supervisor and others outside | an agent ends the supervisor
tracing | E7 | read the memory of processes outside | an agent reads keys and conversations
control socket | E7 | connect to the control socket | an agent commands the supervisor
other workspaces | H19 | list the folder of all workspaces | an agent reads other sessions' files
"""
ATTACKS = tuple(Attack(*map(str.strip, line.split("|"))) for line in _TABLE.strip().splitlines())
