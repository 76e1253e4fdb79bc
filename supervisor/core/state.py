"""The nouns of the house: what the supervisor knows. Durable parts change only together with a record."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import StrEnum

from supervisor.core.policy import DEFAULT_AGENT, Policy
from supervisor.core.timers import Due


class BusyMode(StrEnum):
    """What a message does to a running turn."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    STEER = "steer"
    COLLECT = "collect"


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    ASKING = "asking"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class WorkerState(StrEnum):
    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DYING = "dying"
    RESTING = "resting"
    FAILED = "failed"


class Intake(StrEnum):
    """Whether turns are begun. What is said is taken in either way."""

    OPEN = "open"
    DRAINING = "draining"
    STOPPING = "stopping"


class ModelState(StrEnum):
    """Whether turns can be given a language model."""

    WAITING = "waiting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Who:
    """The fence of a process: which supervisor's life, which seat, which process in it."""

    epoch: int
    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What a kill did: how many processes it ended, whether all, how long it took and by what means."""

    processes: int
    all_dead: bool
    ms: float
    how: str


# A turn that no process had begun: there was nothing to kill.
NOTHING_TO_KILL = Proof(processes=0, all_dead=True, ms=0.0, how="not started")


@dataclass(slots=True)
class Message:
    """Something said to a session that no turn has taken yet."""

    id: str
    text: str
    busy: BusyMode
    at: float
    clip: str = ""  # the stored audio of a spoken message
    seq: int = 0  # where it stands in the feed

    @property
    def is_transcribing(self) -> bool:
        """Spoken, and its words are not known yet: it keeps its place, and does nothing to anybody."""
        return bool(self.clip) and not self.text


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a stopped attempt will end its turn, once its processes are gone."""

    state: TurnState
    by: str = ""
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class Attempt:
    """One worker's try at a turn. It is open until it has a verdict or leaves the turn."""

    number: int
    who: Who
    opened_at: float
    level: str = ""  # of the sandbox that its worker's cell has
    said: str = ""
    calls: dict[str, str] = field(default_factory=dict)  # open tool calls: call -> name
    verdict: Verdict | None = None
    # As far as it has told: what the reply that is under way costs is not known yet.
    input_tokens: int = 0
    output_tokens: int = 0
    progress_at: float = 0.0  # fleeting
    endpoint: str = ""  # fleeting: the one it was to ask, in the life that opened it
    offered: set[str] = field(default_factory=set)  # fleeting: messages it may take in

    def spend(self, input_tokens: int, output_tokens: int) -> None:
        """What it has cost so far. A frame that does not tell takes nothing back."""
        self.input_tokens = max(self.input_tokens, input_tokens)
        self.output_tokens = max(self.output_tokens, output_tokens)


@dataclass(frozen=True, slots=True)
class Question:
    """Something a human must answer before a turn goes on. `call` is the tool call that waits for it.

    A question without a call is the supervisor's own: whether to go on at all.
    """

    id: str
    kind: str
    text: str
    choices: tuple[str, ...]
    call: str = ""


@dataclass(slots=True)
class Turn:
    """The answer owed to one message, or to a collected few. While it asks, it has no attempt and no seat."""

    id: str
    session: str
    messages: tuple[Message, ...]
    opened_at: float
    agent: str = DEFAULT_AGENT
    attempts: int = 0
    losses: int = 0
    content_at: float = 0.0
    # Fleeting: the time a turn may take is counted anew in every life.
    started_at: float | None = None  # when its clock was started; None while that stands still
    ran_seconds: float = 0.0  # on the clock when it was stopped last
    pauses: int = 0  # how often it was stopped
    # Fleeting: attempts in a row that could not ask the model, and when the first of them ended.
    refusals: int = 0
    away_since: float | None = None
    # By all attempts that are over: what they said is the beginning of the answer.
    said_before: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    attempt: Attempt | None = None
    question: Question | None = None
    questions: int = 0

    @property
    def has_begun(self) -> bool:
        """Whether a worker was ever given it: before that, nobody has begun to answer its messages."""
        return self.attempts > 0

    @property
    def said(self) -> str:
        """The answer so far, over all attempts."""
        return self.said_before + (self.attempt.said if self.attempt else "")

    @property
    def spent(self) -> dict[str, int]:
        """The tokens of all attempts, as records name them."""
        running = self.attempt
        return {
            "input_tokens": self.input_tokens + (running.input_tokens if running else 0),
            "output_tokens": self.output_tokens + (running.output_tokens if running else 0),
        }

    def end_attempt(self) -> None:
        """The attempt is over, and the turn is not: what it said and cost stays."""
        spent = self.spent
        self.said_before, self.attempt = self.said, None
        self.input_tokens, self.output_tokens = spent["input_tokens"], spent["output_tokens"]

    @property
    def state(self) -> TurnState:
        if self.attempt is not None:
            return TurnState.RUNNING
        return TurnState.QUEUED if self.question is None else TurnState.ASKING


@dataclass(slots=True)
class Session:
    """One conversation: one open turn at most, and what waits behind it."""

    name: str
    seq: int = 0
    turns: int = 0
    held: int = 0  # the seq at which an interrupt held what waits; 0 when nothing is held
    waiting: deque[Message] = field(default_factory=deque)
    turn: Turn | None = None

    @property
    def is_at_rest(self) -> bool:
        return self.turn is None and not self.waiting and not self.held

    @property
    def state(self) -> str:
        if self.turn is not None:
            return "occupied"
        if self.held:
            return "held"
        return "free"


@dataclass(slots=True)
class Worker:
    """A seat in the pool and the process in it. Fleeting: a restart begins with empty seats.

    The cell of a process is made for one agent. The first turn binds the process to a session, for good.
    """

    seat: int
    incarnation: int = 0
    state: WorkerState = WorkerState.RESTING
    pid: int = 0
    session: str | None = None  # the one it is bound to
    turn: str | None = None  # the one it is at work on
    turns: int = 0
    agent: str = DEFAULT_AGENT  # whose sandbox its cell has
    level: str = ""  # of that sandbox, as the process room reports it
    is_ready_early: bool = False  # it was ready before its start was reported
    since: float = 0.0
    starts_failed: int = 0
    pulse_at: float = 0.0
    loop_at: float = 0.0
    away_since: float | None = None  # it was of use and is not now: since when a spare may be needed for it
    why: str = ""  # why it is being killed
    stuck_since: float | None = None  # it was killed, and the kernel cannot end what `words` says
    words: str = ""  # its last words, kept for whoever asks what went wrong

    @property
    def is_empty(self) -> bool:
        return self.state in (WorkerState.RESTING, WorkerState.FAILED)


@dataclass(slots=True)
class Place:
    """A session's place in the line for a seat: the lowest rank is served first.

    `line` is the agent in whose part of the line it is listed, if it is: see `core/line.py`.
    """

    rank: int
    since: float
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A worker that goes on with its turn while the supervisor's image is replaced."""

    seat: int
    incarnation: int
    pid: int
    turn: str
    offered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of the language model; a failed one has a reason and a remedy."""

    state: ModelState = ModelState.WAITING
    error: str = ""
    hint: str = ""
    since: float = 0.0


@dataclass(slots=True)
class Outage:
    """An endpoint that is away (core/outages.py), since when and why. `probe` is a turn and its attempt."""

    since: float
    error: str
    hint: str
    probe_at: float
    limit_at: float  # when turns may next have waited for it too long
    failures: int = 0
    probe: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Strain:
    """The host is short of something: what it reads, the limit, the remedy, and since when it is so."""

    error: str
    hint: str
    since: float


@dataclass(slots=True)
class Demand:
    """Seconds that workers of use were away for, fading with time: spares stand in for them."""

    away_seconds: float = 0.0
    at: float = 0.0


@dataclass(slots=True)
class State:
    """All that `decide` knows. `sessions` and what hangs on them is durable, the rest fleeting."""

    policy: Policy
    epoch: int = 0
    sessions: dict[str, Session] = field(default_factory=dict)
    workers: dict[int, Worker] = field(default_factory=dict)
    model: Model = field(default_factory=Model)
    outages: dict[str, Outage] = field(default_factory=dict)  # by endpoint
    intake: Intake = Intake.OPEN
    intake_since: float = 0.0
    strains: dict[str, Strain] = field(default_factory=dict)
    waiting: int = 0  # messages that wait in all sessions together
    demand: Demand = field(default_factory=Demand)
    spares_more: int = 0  # beyond those the policy asks for
    incarnations: int = 0
    # Ready-sets, so that a decision costs the same for any number of sessions. Dicts keep order.
    openable: dict[str, None] = field(default_factory=dict)
    # Sessions whose turn waits for a seat, in the order they are served.
    queued: OrderedDict[str, Place] = field(default_factory=OrderedDict)
    # Sessions whose turn rests between two attempts; it is in no line.
    resting: dict[str, None] = field(default_factory=dict)
    # Of the queued, those whose own worker is idle; and heaps, by agent, of those that have no worker.
    own: dict[str, None] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    ranks: tuple[int, int] = (0, 0)  # the lowest and the highest that was given
    # Seats by the state of their process; `core/pool.py` keeps them. The longest idle come first.
    starting: dict[int, None] = field(default_factory=dict)
    idle: dict[int, None] = field(default_factory=dict)
    busy: dict[int, None] = field(default_factory=dict)  # at work on a turn
    dying: dict[int, None] = field(default_factory=dict)
    stuck: dict[int, None] = field(default_factory=dict)  # of the dying, those that the kernel cannot end
    empty: dict[int, None] = field(default_factory=dict)  # resting after a failed start, or given up
    unbound: dict[str, dict[int, None]] = field(default_factory=dict)  # idle ones without a session, by agent
    bound: dict[int, None] = field(default_factory=dict)  # idle or not, as long as it is not dying
    seat_of: dict[str, int] = field(default_factory=dict)  # of a session's worker, until that is gone
    vacant: dict[int, None] = field(default_factory=dict)  # seats to fill before the decision ends
    outdated: dict[int, None] = field(default_factory=dict)  # seats whose process was made by older settings
    agents_used: dict[str, None] = field(default_factory=dict)  # agents, the latest to begin a session last
    deadlines: list[tuple[float, int, Due]] = field(default_factory=list)
    deadlines_made: int = 0

    @property
    def draining(self) -> bool:
        """Whether no turn may begin, be it for a while or for the rest of this life."""
        return self.intake is not Intake.OPEN


# More digits are no turn's number, and from 19 on no number the journal holds.
_DIGITS_MAX = 18


def turn_id(session: str, number: int) -> str:
    return f"{session}/{number}"


def session_of(turn: str) -> str:
    return turn.rpartition("/")[0]


def turn_number(turn: str) -> int:
    """Which turn of its session it is; 0, which no turn has, when the word is not a turn's id."""
    number = turn.rpartition("/")[2]
    is_number = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    return int(number) if is_number and number[0] != "0" else 0
