"""Events: the inputs of `decide`. Frames of workers carry their fence."""

from dataclasses import dataclass

from supervisor.core.client_events import AnswerArrived as AnswerArrived
from supervisor.core.client_events import BeginAsked as BeginAsked
from supervisor.core.client_events import DropAsked as DropAsked
from supervisor.core.client_events import EventsSeen as EventsSeen
from supervisor.core.client_events import InterruptAsked as InterruptAsked
from supervisor.core.client_events import Known as Known
from supervisor.core.client_events import NotTranscribed as NotTranscribed
from supervisor.core.client_events import ResumeAsked as ResumeAsked
from supervisor.core.client_events import TextArrived as TextArrived
from supervisor.core.client_events import Transcribed as Transcribed
from supervisor.core.client_events import VoiceArrived as VoiceArrived
from supervisor.core.policy import Policy
from supervisor.core.reasons import Reason
from supervisor.core.runtime_state import RuntimeChanged
from supervisor.core.state import Kept, ModelState, Orphan, Proof, Who


@dataclass(frozen=True, slots=True)
class Recovered:
    """The journal was loaded; what an earlier life left running is swept away, but for `kept` and `left`."""

    kept: tuple[Kept, ...] = ()  # after a restart in place, workers that go on
    incarnations: int = 0  # then, the last number that was given
    left: tuple[Orphan, ...] = ()  # what cannot be ended yet


@dataclass(frozen=True, slots=True)
class SessionsTaken:
    """These sessions of another host belong to this one now, and were loaded from the journal."""

    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionsToGive:
    """Another host, by the number of its life, has free seats for these sessions."""

    sessions: tuple[str, ...]
    life: int


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The process exists, in a cell whose sandbox has this level; it is not ready yet."""

    seat: int
    incarnation: int
    pid: int
    level: str = ""


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The process has ended, and all of its cell if the proof says so; if not, another one follows."""

    seat: int
    incarnation: int
    proof: Proof
    reason: Reason


@dataclass(frozen=True, slots=True)
class WorkerStuck:
    """A killed cell is not empty in time: number and state of the processes left; WorkerDied follows."""

    seat: int
    incarnation: int
    processes: int
    words: str


@dataclass(frozen=True, slots=True)
class WorkerReady:
    who: Who


@dataclass(frozen=True, slots=True)
class WorkerAlive:
    """A sign of life: `pulse` comes from a thread of the process, `loop` from its event loop."""

    who: Who
    kind: str


@dataclass(frozen=True, slots=True)
class WorkerKept:
    """A worker reports to the new image of the supervisor which turn it runs, if any."""

    who: Who
    turn: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WorkerUnreachable:
    """The worker is of no use any more: no frame reaches it, or it does what no worker does."""

    who: Who
    reason: Reason


@dataclass(frozen=True, slots=True)
class TextStreamed:
    who: Who
    turn: str
    attempt: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    who: Who
    turn: str
    attempt: int
    call: str
    name: str
    summary: str
    arguments: str
    repeat: str
    offset: int
    # Of the attempt so far.
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    model: str = ""  # that gave the last reply


@dataclass(frozen=True, slots=True)
class ToolFinished:
    who: Who
    turn: str
    attempt: int
    call: str
    ok: bool
    ms: int
    result: str
    exit: int | None = None
    signal: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """The attempt reported progress to subscribers; it is not durable."""

    who: Who
    turn: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Steered:
    who: Who
    turn: str
    attempt: int
    message: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The attempt asks a person, about its tool call `call` if that is not empty.

    It has ended and gives its seat back, unless it holds for the answer: then `hold` is the number of this
    question among those of the attempt, from 1.
    """

    who: Who
    turn: str
    attempt: int
    call: str
    kind: str
    text: str
    choices: tuple[str, ...]
    hold: int = 0
    # Of the attempt so far.
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    model: str = ""  # that gave the last reply


@dataclass(frozen=True, slots=True)
class Finished:
    who: Who
    turn: str
    attempt: int
    text: str
    input_tokens: int
    output_tokens: int
    cost: int = 0
    finish: str = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """`again`: another attempt could succeed. `outage`: `endpoint` is away, for `wait_seconds` or more."""

    who: Who
    turn: str
    attempt: int
    error: str
    hint: str
    again: bool
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    outage: bool = False
    wait_seconds: int = 0
    endpoint: str = ""
    model: str = ""  # that gave the last reply


@dataclass(frozen=True, slots=True)
class ModelAway:
    """An endpoint of the running attempt was unavailable; the attempt goes on with the next one."""

    who: Who
    turn: str
    attempt: int
    endpoint: str
    error: str
    hint: str
    wait_seconds: int = 0


@dataclass(frozen=True, slots=True)
class ModelChanged:
    state: ModelState
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Begin no new turns."""


@dataclass(frozen=True, slots=True)
class UndrainAsked:
    """Begin turns again."""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """The settings were reloaded."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class RenewalAsked:
    """The settings of these agents' workers, None for all, have changed: running workers are replaced."""

    agents: frozenset[str] | None = None
    at_once: bool = False  # they have another runtime: none of them gets a turn


@dataclass(frozen=True, slots=True)
class ScaleAsked:
    """The number of turns that may run at once, until this epoch ends."""

    seats: int


@dataclass(frozen=True, slots=True)
class HostRead:
    """Free resources of the host, as far as the kernel reports them: pressures in percent of ten seconds."""

    memory_free_bytes: int | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    cpu_pressure: float | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Stop in order: running turns are left for the next start, and not counted as lost."""


@dataclass(frozen=True, slots=True)
class HandOverAsked:
    """The supervisor is about to replace its image; running turns continue meanwhile."""


@dataclass(frozen=True, slots=True)
class StoodStill:
    """The host did not let the supervisor work: a full disk, a stopped process, an overloaded machine."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed; a deadline may be due."""


Frame = TextStreamed | ToolStarted | ToolFinished | Noted | Steered | Finished | Failed
_OfPeople = (
    TextArrived
    | VoiceArrived
    | BeginAsked
    | InterruptAsked
    | DropAsked
    | ResumeAsked
    | EventsSeen
    | AnswerArrived
)
_OfWorkers = (
    WorkerStarted | WorkerDied | WorkerStuck | WorkerReady | WorkerAlive | WorkerKept | WorkerUnreachable
)
_OfServices = Transcribed | NotTranscribed | ModelChanged | RuntimeChanged
_OfSettings = DrainAsked | UndrainAsked | PolicyChanged | RenewalAsked | ScaleAsked
_OfHost = Recovered | HostRead | StopAsked | HandOverAsked | StoodStill | Ticked
_OfHosts = SessionsTaken | SessionsToGive
Event = _OfPeople | Frame | Asked | ModelAway | _OfWorkers | _OfServices | _OfSettings | _OfHost | _OfHosts
