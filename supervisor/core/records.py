"""Records: one per durable change. One with a seq is also an event of its session."""

from dataclasses import dataclass
from typing import Any, ClassVar

from supervisor.core.policy import DEFAULT_AGENT
from supervisor.core.reasons import Reason
from supervisor.core.state import Proof, Verdict, Who


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The common part. `type` is the name of the event; a record that is no event has none, and seq 0."""

    type: ClassVar[str] = ""
    session: str
    at: float
    seq: int = 0

    def fields(self) -> dict[str, Any]:
        """Return the fields of the event beyond seq, session, type and at."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAccepted(Record):
    type: ClassVar[str] = "message.accepted"
    message: str
    key: str
    kind: str
    text: str
    busy: str
    clip: str = ""
    by: str = ""
    agent: str = ""
    instructions: str = ""

    def fields(self) -> dict[str, Any]:
        told = {"message": self.message, "kind": self.kind, "busy": self.busy, "text": self.text}
        return told | {name: value for name, value in (("by", self.by), ("agent", self.agent)) if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBegun(Record):
    """The first event of a session that has a history from the start; `turns` are its turns, as JSON."""

    type: ClassVar[str] = "session.begun"
    key: str
    origin: str
    through: int
    turns: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        return {"from": self.origin, "through": self.through, "turns": len(self.turns)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptReady(Record):
    """The transcript of a clip, published before anything is done with it."""

    type: ClassVar[str] = "transcript.ready"
    message: str
    text: str
    echo: bool = True  # whether clients are to show it

    def fields(self) -> dict[str, Any]:
        return {"message": self.message, "text": self.text, "echo": self.echo}


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptFailed(Record):
    """The message ends here, with its reason; the clip is kept."""

    type: ClassVar[str] = "transcript.failed"
    message: str
    reason: str
    hint: str

    def fields(self) -> dict[str, Any]:
        return {"message": self.message, "reason": self.reason, "hint": self.hint}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDropped(Record):
    """A waiting message was dropped before any turn answered it."""

    type: ClassVar[str] = "message.dropped"
    message: str
    by: str

    def fields(self) -> dict[str, Any]:
        return {"message": self.message, "by": self.by}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeld(Record):
    """Waiting messages stay until the next message or a resume."""

    type: ClassVar[str] = "session.held"
    waiting: int

    def fields(self) -> dict[str, Any]:
        return {"waiting": self.waiting}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReleased(Record):
    type: ClassVar[str] = "session.released"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGiven(Record):
    """The session belongs to another host from now on, by the number of its life."""

    to_life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorMoved(Record):
    """A named client has acknowledged up to `seen`; before, up to `before`."""

    cursor: str
    seen: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOpened(Record):
    type: ClassVar[str] = "turn.opened"
    turn: str
    number: int
    messages: tuple[str, ...]
    agent: str = DEFAULT_AGENT

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "messages": list(self.messages), "agent": self.agent}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnJoined(Record):
    """Messages that came before the turn began, and are answered by it."""

    type: ClassVar[str] = "turn.joined"
    turn: str
    messages: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "messages": list(self.messages)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOpened(Record):
    type: ClassVar[str] = "attempt.opened"
    turn: str
    attempt: int
    who: Who
    pid: int
    level: str = ""

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "attempt": self.attempt, "worker": self.who.seat, "pid": self.pid}
        return told | {"level": self.level}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStreamed(Record):
    """Streamed text, in order; subscribers have received it as deltas already."""

    turn: str
    attempt: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStopped(Record):
    """The attempt no longer counts; its turn closes by the verdict as soon as its processes are gone."""

    turn: str
    attempt: int
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStuck(Record):
    """It was killed, and the kernel cannot end all of its processes yet: its turn stays open until then."""

    type: ClassVar[str] = "attempt.stuck"
    turn: str
    attempt: int
    processes: int
    words: str

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "attempt": self.attempt, "processes": self.processes}
        return told | {"words": self.words}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLost(Record):
    """The attempt ended before its turn did. `losses` counts the losses that weigh against the turn.

    `offset` counts the characters of all attempts: the next one continues there.
    """

    type: ClassVar[str] = "attempt.lost"
    turn: str
    attempt: int
    reason: Reason
    losses: int
    offset: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "attempt": self.attempt, "reason": str(self.reason), "offset": self.offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(Record):
    type: ClassVar[str] = "tool.started"
    turn: str
    attempt: int
    call: str
    name: str
    summary: str
    arguments: str
    repeat: str
    offset: int
    input_tokens: int = 0  # of the attempt until now
    output_tokens: int = 0
    cost: int = 0

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "call": self.call, "name": self.name, "summary": self.summary}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished(Record):
    type: ClassVar[str] = "tool.finished"
    turn: str
    attempt: int
    call: str
    name: str
    ok: bool
    ms: int
    result: str
    exit: int | None = None  # of a command that ended by itself
    signal: str = ""  # the name of the signal that ended it otherwise

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "call": self.call, "name": self.name, "ok": self.ok, "ms": self.ms}
        return told | {"exit": self.exit, "signal": self.signal}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSteered(Record):
    type: ClassVar[str] = "turn.steered"
    turn: str
    attempt: int
    message: str

    def fields(self) -> dict[str, Any]:
        return {"turn": self.turn, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked(Record):
    """The turn waits for a person. `attempt` is the one that asked, or the lost one it is about.

    With `hold` the attempt goes on and holds for the answer; otherwise it has ended. `resumes`: the
    supervisor asks whether to resume. `offset` counts the characters of the answer before the question.
    """

    type: ClassVar[str] = "question.asked"
    turn: str
    attempt: int
    question: str
    number: int
    kind: str
    text: str
    choices: tuple[str, ...]
    call: str
    resumes: bool = False
    hold: int = 0
    offset: int = 0
    input_tokens: int = 0  # of the attempt until now
    output_tokens: int = 0
    cost: int = 0

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "question": self.question, "kind": self.kind}
        asked = {"text": self.text, "choices": list(self.choices), "offset": self.offset}
        return told | asked | ({"holds": True} if self.hold else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered(Record):
    """The turn continues. `message` is the message that was the answer, if it was one.

    `is_held`: the attempt that asked goes on with the answer. Otherwise `result` is the end of the tool call
    that the question was about. `offset` counts the characters of the turn's text before it continues.
    """

    type: ClassVar[str] = "question.answered"
    turn: str
    attempt: int
    question: str
    kind: str
    text: str
    choices: tuple[str, ...]
    call: str
    by: str
    message: str = ""
    is_held: bool = False
    result: str = ""
    is_denied: bool = False
    offset: int = 0

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "question": self.question, "kind": self.kind}
        answer = {"text": self.text, "choices": list(self.choices), "by": self.by, "offset": self.offset}
        return told | answer | ({"message": self.message} if self.message else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone(Record):
    type: ClassVar[str] = "turn.done"
    turn: str
    attempt: int
    text: str
    input_tokens: int
    output_tokens: int
    cost: int = 0  # in millionths of the currency of the prices
    finish: str = "stop"  # why the model ended its answer
    earlier_length: int = 0  # characters of the text that come from earlier attempts
    model: str = ""  # that gave the last reply

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "text": self.text, "usage": _usage(self), "finish": self.finish}
        return told | ({"model": self.model} if self.model else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterrupted(Record):
    type: ClassVar[str] = "turn.interrupted"
    turn: str
    attempt: int
    by: str
    partial: str
    killed: Proof
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0

    def fields(self) -> dict[str, Any]:
        killed = {
            "processes": self.killed.processes,
            "all_dead": self.killed.all_dead,
            "ms": round(self.killed.ms, 1),
            "how": self.killed.how,
        } | ({"cancel": self.killed.cancel} if self.killed.cancel else {})
        told = {"turn": self.turn, "by": self.by, "partial": self.partial, "killed": killed}
        return told | {"usage": _usage(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(Record):
    type: ClassVar[str] = "turn.failed"
    turn: str
    attempt: int
    error: str
    hint: str
    poison: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0

    def fields(self) -> dict[str, Any]:
        told = {"turn": self.turn, "error": self.error, "hint": self.hint, "poison": self.poison}
        return told | {"usage": _usage(self)}


def _usage(ending: TurnDone | TurnInterrupted | TurnFailed) -> dict[str, int | float]:
    """Return the tokens of all attempts at the turn, and their cost where there are prices."""
    told: dict[str, int | float] = {
        "input_tokens": ending.input_tokens,
        "output_tokens": ending.output_tokens,
    }
    return told | ({"cost": ending.cost / 1_000_000} if ending.cost else {})
