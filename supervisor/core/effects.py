"""Effects as data, performed only after the records of the same decision are committed."""

from dataclasses import dataclass, field
from typing import Literal

from supervisor.core.reasons import Reason
from supervisor.core.records import Record
from supervisor.core.state import Message, Who


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start a process in a seat, in a cell with the sandbox of `agent`."""

    seat: int
    incarnation: int
    agent: str


@dataclass(frozen=True, slots=True)
class WarmRuntime:
    """Have the runtime of an agent ready to start workers; the result returns as RuntimeChanged."""

    agent: str


@dataclass(frozen=True, slots=True)
class KillWorker:
    """End the worker's whole cell; the result returns as WorkerDied. `turn` is the one that ends with it."""

    seat: int
    incarnation: int
    why: Reason
    turn: str = ""


@dataclass(frozen=True, slots=True)
class EndGrace:
    """Interrupt a worker again that is being ended: if its agent may cancel by itself first, that is over."""

    who: Who


@dataclass(frozen=True, slots=True)
class BindWorker:
    """Give a worker the workspace of its session, before its first turn and until it ends."""

    who: Who
    session: str


@dataclass(frozen=True, slots=True)
class AssignTurn:
    """Assign a turn to a worker, with the session's history from the journal."""

    who: Who
    session: str
    turn: str
    attempt: int
    agent: str
    messages: tuple[Message, ...]
    offset: int = 0  # characters of earlier attempts: its text continues there
    # Of its agent's endpoints: those that are away, and the one of them that it probes.
    away: tuple[str, ...] = ()
    probe: str = ""


@dataclass(frozen=True, slots=True)
class SteerTurn:
    who: Who
    turn: str
    attempt: int
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerTurn:
    """Deliver an answer to the attempt that holds for it; `hold` is the number it gave its question."""

    who: Who
    turn: str
    attempt: int
    question: str
    hold: int
    text: str


@dataclass(frozen=True, slots=True)
class Transcribe:
    """Have a clip transcribed; the result returns as Transcribed or NotTranscribed."""

    session: str
    message: str
    clip: str


@dataclass(frozen=True, slots=True)
class ForgetClip:
    """The transcript of this message is no longer needed."""

    message: str


Effect = (
    StartWorker
    | WarmRuntime
    | KillWorker
    | EndGrace
    | BindWorker
    | AssignTurn
    | SteerTurn
    | AnswerTurn
    | Transcribe
    | ForgetClip
)


# Answers have the names of the messages that carry them to clients.


@dataclass(frozen=True, slots=True)
class Accepted:
    """Answer to a sender: the message is remembered at `seq`; `again` when it was known already.

    `note` is what the sender should know about the wait ahead.
    """

    message: str
    seq: int
    again: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """Answer: carried out; the turns it touched, and a word when there was nothing to do."""

    turns: tuple[str, ...] = ()
    note: str = ""


RefusalCode = Literal["invalid", "unknown", "conflict", "full", "unavailable", "denied", "internal"]


@dataclass(frozen=True, slots=True)
class Refused:
    """Answer: nothing was changed; the fault and the remedy."""

    error: str
    hint: str
    retry_after_seconds: float | None = None
    code: RefusalCode = field(kw_only=True)


Answer = Accepted | Done | Refused


@dataclass(frozen=True, slots=True)
class Decision:
    """Commit the records, then perform the effects and give the answer."""

    records: tuple[Record, ...]
    effects: tuple[Effect, ...]
    answer: Answer | None
