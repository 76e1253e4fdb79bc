"""Messages between a worker and the supervisor, one tagged union per direction."""

from msgspec import field

from ipc.bounds import Id, Name, Number, Sentence, Sentences, Status, Text, Word
from ipc.message_parts import (
    AgentSpec,
    BudgetLimit,
    Message,
    ModelEndpoint,
    PastAnswer,
    PastAttempt,
    PastTurn,
    QuestionKind,
    ToolClass,
    ToolServer,
    TurnMessage,
    Usage,
)

# --- worker -> supervisor -----------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """First frame of an incarnation: identifies it by the numbers it was forked with.

    With `has_setup` it waits for a Setup, as its Fork has asked it to.
    """

    epoch: Number
    seat: Number
    incarnation: Number
    has_setup: bool = False


class Ready(Message, frozen=True, tag="ready"):
    """The worker can receive an Assign."""


class Beat(Message, frozen=True, tag="beat"):
    """The worker's event loop runs; sent on its own schedule, also between turns."""


class Delta(Message, frozen=True, tag="d"):
    """Text as it is streamed; clients get these bytes. `offset` counts over all attempts at the turn."""

    session: Name
    turn: Id
    attempt: Number
    offset: Number
    text: Text


class ToolStarted(Message, frozen=True, tag="tool"):
    """Recorded before the tool runs: the worker waits for the acknowledgement of this frame."""

    turn: Id
    attempt: Number
    call: Id
    name: Name
    summary: Sentence
    arguments: Text
    repeat: ToolClass
    offset: Number = 0  # length of this attempt's text before the call
    usage: Usage = Usage()  # tokens of the attempt until now
    model: Name = ""  # that gave the last reply


class ToolFinished(Message, frozen=True, tag="toolend"):
    """`exit` is the status of a command that exited, `signal` the name of the signal that ended it."""

    turn: Id
    attempt: Number
    call: Id
    ok: bool
    ms: Number
    result: Text
    exit: Status | None = None
    signal: Word = ""


class Noted(Message, frozen=True, tag="note"):
    """A transient note (a retry, output of the tool call `call`); it is not part of the history."""

    turn: Id
    attempt: Number
    text: Sentence
    call: Id = ""
    replaces: bool = False  # a growing count: it replaces the previous note


class Steered(Message, frozen=True, tag="steered"):
    """The running agent has received a message that Steer delivered."""

    turn: Id
    attempt: Number
    message: Id


class Asked(Message, frozen=True, tag="asked"):
    """Only a person can answer; `call` is the open tool call that the question is about, if there is one.

    The attempt ends and its seat becomes free: the answer goes to a later attempt. With `hold` it goes on:
    the answer comes as Answered, as long as the attempt may hold for it. `hold` is the number of the question
    among those of the attempt, from 1; the next question is sent after the answer to the last one.
    """

    turn: Id
    attempt: Number
    call: Id
    kind: QuestionKind
    text: Sentence
    choices: Sentences = ()
    hold: Number = 0
    usage: Usage = Usage()  # tokens of the attempt until now
    model: Name = ""  # that gave the last reply


class Kept(Message, frozen=True, tag="kept"):
    """The answer to Resend, after all repeated frames: the running attempt; nothing by default."""

    turn: Id = ""
    attempt: Number = 0


class Finished(Message, frozen=True, tag="done"):
    """`finish` is why the model stopped: `stop` by itself, else `length`, `content_filter`, `refusal`, …"""

    turn: Id
    attempt: Number
    text: Text
    usage: Usage = Usage()
    finish: Word = "stop"
    model: Name = ""  # that gave the last reply


class Failed(Message, frozen=True, tag="failed"):
    """The attempt ended without an answer. `again` is true when another attempt may succeed."""

    turn: Id
    attempt: Number
    error: Sentence
    hint: Sentence
    again: bool = False
    usage: Usage = Usage()  # tokens that it has used all the same
    outage: bool = False  # the model could not be reached
    wait_seconds: Number = 0  # the pause that its server asks for
    endpoint: Sentence = ""  # of the model that could not be reached: its id in the Assign
    model: Name = ""  # that gave the last reply


class ModelAway(Message, frozen=True, tag="away"):
    """A model could not be reached, and the attempt goes on with the next one of its agent."""

    turn: Id
    attempt: Number
    endpoint: Sentence
    error: Sentence
    hint: Sentence
    wait_seconds: Number = 0


class AgentFault(Message, frozen=True, tag="fault"):
    """The agent of this worker cannot be started as it is configured; turns fail with the same words."""

    error: Sentence
    hint: Sentence


FromWorker = (
    Hello
    | Ready
    | Beat
    | Delta
    | ToolStarted
    | ToolFinished
    | Noted
    | Steered
    | Asked
    | Kept
    | Finished
    | Failed
    | ModelAway
    | AgentFault
)


# --- supervisor -> worker -----------------------------------------------------------------------------------


class Assign(Message, frozen=True, tag="assign"):
    """Answer these messages. `history` is the session so far; `tried` the earlier attempts at this turn."""

    session: str
    turn: str
    attempt: int
    messages: tuple[TurnMessage, ...]
    agent: AgentSpec
    model: ModelEndpoint
    fallback: tuple[ModelEndpoint, ...] = ()  # asked in this order when `model` cannot answer
    history: tuple[PastTurn, ...] = ()
    tried: tuple[PastAttempt, ...] = ()
    offset: int = 0  # length of their text: this attempt continues there
    answers: tuple[PastAnswer, ...] = ()
    limits: tuple[BudgetLimit, ...] = ()
    # Environment variables of the agent's processes, by `[agents.NAME] env_from`.
    secrets: dict[str, str] = {}  # noqa: RUF012, each struct gets its own

    def __repr__(self) -> str:
        """Leaves out messages and secrets: a repr ends up in logs."""
        return f"Assign(turn={self.turn!r}, attempt={self.attempt})"


class Setup(Message, frozen=True, tag="setup"):
    """Set this agent up, then send the first Ready.

    `secrets` are the values of the environment variables that the settings of the agent and of its servers
    name; the servers refer to them by these names. `model` is for an agent that prepares for the one it will
    ask; the Assign decides.
    """

    agent: AgentSpec
    servers: tuple[ToolServer, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    model: ModelEndpoint | None = None

    def __repr__(self) -> str:
        """Leaves the secrets out: a repr ends up in logs."""
        return f"Setup(agent={self.agent!r}, servers={self.servers!r})"


class Ack(Message, frozen=True, tag="ack"):
    """Every frame up to and including `frame` is safe: durable where required, delivered where transient."""

    frame: int


class Steer(Message, frozen=True, tag="steer"):
    """A message for the running turn, to be delivered at its next tool boundary."""

    turn: str
    attempt: int
    message: str
    text: str


class Cancel(Message, frozen=True, tag="cancel"):
    """The turn was interrupted, and its worker will be killed: what can end by itself may do so before."""

    turn: str


class Answered(Message, frozen=True, tag="answered"):
    """The answer to the question that the attempt holds for, which it numbered `hold`."""

    turn: str
    attempt: int
    question: str
    hold: int
    text: str


class Resend(Message, frozen=True, tag="resend"):
    """The supervisor's image was replaced: frames up to `after` are safe, the worker repeats later ones."""

    after: int


ToWorker = Setup | Assign | Ack | Steer | Cancel | Answered | Resend
