"""What happened: everything that can be told to `decide`. Frames of workers carry their fence."""

from dataclasses import dataclass

from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, Kept, ModelState, Proof, Who


@dataclass(frozen=True, slots=True)
class Recovered:
    """The journal was loaded and what an earlier life left running has been swept away.

    After a restart in place `kept` are the workers that were not; `incarnations` is the last number given.
    """

    kept: tuple[Kept, ...] = ()
    incarnations: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """A message that the journal has already: where it stands in the feed, and its text if it was typed."""

    seq: int
    text: str | None


@dataclass(frozen=True, slots=True)
class TextArrived:
    """Somebody said something. `known` is set when the journal already has a message of this id.

    `retries` names the turn whose words these are: they were said before and answer no question of today.
    """

    session: str
    message: str
    key: str
    text: str
    busy: BusyMode
    expect_turn: str | None = None
    known: Known | None = None
    retries: str = ""


@dataclass(frozen=True, slots=True)
class VoiceArrived:
    """Somebody spoke; the clip is stored. Otherwise as TextArrived."""

    session: str
    message: str
    key: str
    clip: str
    busy: BusyMode
    expect_turn: str | None = None
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class Transcribed:
    """The words of a clip are known."""

    session: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class NotTranscribed:
    """There are no words in a clip, or none can be had."""

    session: str
    message: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class InterruptAsked:
    """Stop what runs in a session; `expect_turn` makes a late one harmless."""

    session: str
    by: str
    expect_turn: str | None = None
    drop: bool = False


@dataclass(frozen=True, slots=True)
class DropAsked:
    """Drop one waiting message, or all of them when `message` is None."""

    session: str
    message: str | None
    by: str


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Let go what an interrupt held."""

    session: str


@dataclass(frozen=True, slots=True)
class EventsSeen:
    """A named client has read a session's feed up to `seq`.

    What the journal knows of it: where the cursor stands (0 when it is new), how many the session has.
    """

    session: str
    cursor: str
    seq: int
    stands_at: int = 0
    cursors: int = 0


@dataclass(frozen=True, slots=True)
class AnswerArrived:
    """A human answers a question by its id."""

    session: str
    question: str
    text: str
    by: str


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The process exists, in a cell whose sandbox has this level; it is not ready yet."""

    seat: int
    incarnation: int
    pid: int
    level: str = ""


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The process and everything in its cell is gone, as the proof says."""

    seat: int
    incarnation: int
    proof: Proof
    words: str


@dataclass(frozen=True, slots=True)
class WorkerStuck:
    """A killed cell has not become empty in time: so many processes are left, and why; WorkerDied follows."""

    seat: int
    incarnation: int
    processes: int
    words: str


@dataclass(frozen=True, slots=True)
class WorkerReady:
    who: Who


@dataclass(frozen=True, slots=True)
class WorkerAlive:
    """A sign of life: `pulse` comes from the process without its interpreter, `loop` from its event loop."""

    who: Who
    kind: str


@dataclass(frozen=True, slots=True)
class WorkerKept:
    """A worker answers the new image of the supervisor: what it runs, or no turn at all."""

    who: Who
    turn: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WorkerUnreachable:
    """A frame could not be sent to the worker."""

    who: Who
    reason: str


@dataclass(frozen=True, slots=True)
class Spoke:
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
    # What the attempt has cost so far.
    input_tokens: int = 0
    output_tokens: int = 0


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
    """The attempt told its watchers something: progress, and nothing to remember."""

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
    """The attempt needs a human to answer its tool call `call`; it has ended and gives its seat back."""

    who: Who
    turn: str
    attempt: int
    call: str
    kind: str
    text: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    who: Who
    turn: str
    attempt: int
    text: str
    input_tokens: int
    output_tokens: int
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt gave up; `again` says that another attempt could do better.

    With `outage` it could not ask its model, which wants to be left alone for `wait_seconds`.
    """

    who: Who
    turn: str
    attempt: int
    error: str
    hint: str
    again: bool
    input_tokens: int = 0
    output_tokens: int = 0
    outage: bool = False
    wait_seconds: int = 0


@dataclass(frozen=True, slots=True)
class ModelChanged:
    state: ModelState
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ServiceChanged:
    """A service child has a new state; `app` turns the model's into ModelChanged."""

    service: str
    state: str
    address: str
    detail: str
    hint: str


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Take no new turns."""


@dataclass(frozen=True, slots=True)
class UndrainAsked:
    """Take turns again."""


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """The settings were read again."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class RenewalAsked:
    """What workers of these agents are made with has changed: those that live are to be replaced.

    None means all agents.
    """

    agents: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ScaleAsked:
    """So many turns may run at once from now on, for as long as this life lasts."""

    seats: int


@dataclass(frozen=True, slots=True)
class HostRead:
    """What the host has left, as far as the kernel tells: pressures in percent of the last ten seconds."""

    memory_free_bytes: int | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    cpu_pressure: float | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The service ends in order: what runs is left for the next start and not counted as a loss."""


@dataclass(frozen=True, slots=True)
class HandOverAsked:
    """The supervisor is about to replace its own image; what runs goes on meanwhile."""


@dataclass(frozen=True, slots=True)
class StoodStill:
    """The host itself could not act for so long: a full disk, a stopped process, a starved machine."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed; a deadline may be due."""


Frame = Spoke | ToolStarted | ToolFinished | Noted | Steered | Finished | Failed
Event = (
    Recovered
    | TextArrived
    | VoiceArrived
    | Transcribed
    | NotTranscribed
    | InterruptAsked
    | DropAsked
    | ResumeAsked
    | EventsSeen
    | AnswerArrived
    | Asked
    | WorkerStarted
    | WorkerDied
    | WorkerStuck
    | WorkerReady
    | WorkerAlive
    | WorkerKept
    | WorkerUnreachable
    | Frame
    | ModelChanged
    | DrainAsked
    | UndrainAsked
    | PolicyChanged
    | RenewalAsked
    | ScaleAsked
    | HostRead
    | StopAsked
    | HandOverAsked
    | StoodStill
    | Ticked
)
