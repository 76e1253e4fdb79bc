"""Events that come from people: messages and their transcripts, interrupts, answers, and what was read."""

from dataclasses import dataclass

from supervisor.core.message import BusyMode


@dataclass(frozen=True, slots=True)
class Known:
    """A message that the journal has already: its seq, and its text if it is not a clip."""

    seq: int
    text: str | None


@dataclass(frozen=True, slots=True)
class TextArrived:
    """A text message. `known` is set when the journal already has a message of this id.

    `retries` names the turn whose messages these are: they are sent again and answer no open question.
    """

    session: str
    message: str
    key: str
    text: str
    busy: BusyMode
    expect_turn: str | None = None
    known: Known | None = None
    retries: str = ""
    by: str = ""
    agent: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class VoiceArrived:
    """A clip, which is stored. Otherwise as TextArrived."""

    session: str
    message: str
    key: str
    clip: str
    busy: BusyMode
    expect_turn: str | None = None
    known: Known | None = None
    by: str = ""
    agent: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class BeginAsked:
    """Make a new session with a history: `turns`, as the journal keeps them.

    `origin` is the session that they come from, through its turn of that number; empty for an import. `known`
    is the key with which the session has begun, if it has.
    """

    session: str
    key: str
    origin: str
    through: int
    turns: tuple[str, ...]
    known: str | None = None


@dataclass(frozen=True, slots=True)
class Transcribed:
    """The transcript of a clip is ready."""

    session: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class NotTranscribed:
    """A clip has no text, or it cannot be transcribed."""

    session: str
    message: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class InterruptAsked:
    """Stop the running turn of a session; `expect_turn` makes a late request harmless."""

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
    """Release what an interrupt held."""

    session: str


@dataclass(frozen=True, slots=True)
class EventsSeen:
    """A named client has read a session's events up to `seq`. What follows that is the journal's."""

    session: str
    cursor: str
    seq: int
    stands_at: int = 0  # the present place of the cursor, 0 when it is new
    cursors: int = 0  # of the session


@dataclass(frozen=True, slots=True)
class AnswerArrived:
    """A person answers a question by its id."""

    session: str
    question: str
    text: str
    by: str
