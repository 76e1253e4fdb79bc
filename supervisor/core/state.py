"""The state of the core. Durable parts change only together with a record."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import StrEnum

from supervisor.core.message import BusyMode as BusyMode
from supervisor.core.message import Message as Message
from supervisor.core.policy import DEFAULT_AGENT, Policy
from supervisor.core.proof import NOTHING_TO_KILL as NOTHING_TO_KILL
from supervisor.core.proof import Proof as Proof
from supervisor.core.reasons import Reason
from supervisor.core.runtime_state import Runtimes
from supervisor.core.timers import Due
from supervisor.core.turn_ids import session_of as session_of
from supervisor.core.turn_ids import turn_id as turn_id
from supervisor.core.turn_ids import turn_number as turn_number


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
    """Whether turns are begun. Messages are accepted in every case."""

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
    """The fence of a process: epoch, seat and incarnation."""

    epoch: int
    seat: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state in which a stopped attempt will end its turn, once its processes are gone."""

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
    text: str = ""
    calls: dict[str, str] = field(default_factory=dict)  # open tool calls: call -> name
    verdict: Verdict | None = None
    # As far as it has reported: the present reply is not counted yet.
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0  # in millionths of the currency of the prices
    progress_at: float = 0.0  # not durable
    endpoint: str = ""  # not durable: the endpoint at the time it was opened
    # Not durable: the messages that it may take in, with their characters; and whether further ones wait.
    offered: dict[str, int] = field(default_factory=dict)
    is_offer_full: bool = False

    def spend(self, input_tokens: int, output_tokens: int, cost: int) -> None:
        """Set the use so far. A frame without one does not reset it."""
        self.input_tokens = max(self.input_tokens, input_tokens)
        self.output_tokens = max(self.output_tokens, output_tokens)
        self.cost = max(self.cost, cost)

    @property
    def spent(self) -> dict[str, int]:
        """Return the use so far, by the names of the records."""
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class Question:
    """Something a person must answer before a turn continues.

    While the attempt that asks is open it holds for the answer; otherwise the answer queues the turn again.
    """

    id: str
    kind: str
    text: str
    choices: tuple[str, ...]
    call: str = ""  # the tool call that it is about, if there is one
    resumes: bool = False  # the supervisor's own question: is the turn to be resumed?
    hold: int = 0  # the number that the attempt gave the question it holds for
    at: float = 0.0


@dataclass(slots=True)
class Turn:
    """The answer to one message, or to several together.

    While it asks, it has no attempt and no seat. One whose attempt holds for an answer is still running.
    """

    id: str
    session: str
    messages: tuple[Message, ...]
    opened_at: float
    agent: str = DEFAULT_AGENT
    attempts: int = 0
    losses: int = 0
    content_at: float = 0.0
    # Not durable: the deadline of a turn begins again in every epoch.
    started_at: float | None = None  # when its clock was started; None while it is suspended
    ran_seconds: float = 0.0  # on the clock when it was last suspended
    pauses: int = 0  # how often it was suspended
    # Not durable: attempts in a row that found no model, and when the first of them ended.
    refusals: int = 0
    away_since: float | None = None
    earlier_text: str = ""  # of all ended attempts: the beginning of the answer
    input_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    attempt: Attempt | None = None
    question: Question | None = None
    questions: int = 0

    @property
    def is_held(self) -> bool:
        """Return whether its open attempt holds for an answer."""
        return self.attempt is not None and self.question is not None

    @property
    def has_begun(self) -> bool:
        """Return whether a worker was ever given it."""
        return self.attempts > 0

    @property
    def text(self) -> str:
        """Return the text so far, over all attempts."""
        return self.earlier_text + (self.attempt.text if self.attempt else "")

    @property
    def spent(self) -> dict[str, int]:
        """Return the use of all attempts, by the names of the records."""
        ended = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "cost": self.cost}
        running = self.attempt.spent if self.attempt else {}
        return {name: count + running.get(name, 0) for name, count in ended.items()}

    def end_attempt(self) -> None:
        """End the attempt but not the turn: its text and cost stay."""
        self.input_tokens, self.output_tokens, self.cost = self.spent.values()
        self.earlier_text, self.attempt = self.text, None

    @property
    def state(self) -> TurnState:
        if self.attempt is not None:
            return TurnState.RUNNING
        return TurnState.QUEUED if self.question is None else TurnState.ASKING


@dataclass(slots=True)
class Session:
    """One conversation: at most one open turn, and the messages that wait behind it."""

    name: str
    seq: int = 0
    turns: int = 0
    held: int = 0  # the seq of the hold; 0 when the session is not held
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
    """A seat in the pool and the process in it. Not durable: a restart begins with empty seats.

    The cell of a process is made for one agent. The first turn binds the process to a session, until it ends.
    """

    seat: int
    incarnation: int = 0
    state: WorkerState = WorkerState.RESTING
    pid: int = 0
    session: str | None = None  # the session it is bound to
    turn: str | None = None  # the turn it runs
    turns: int = 0
    agent: str = DEFAULT_AGENT  # its cell has the sandbox of this agent
    level: str = ""  # the level of that sandbox, as reported with its start
    is_ready_early: bool = False  # it was ready before its start was reported
    since: float = 0.0
    starts_failed: int = 0
    pulse_at: float = 0.0
    loop_at: float = 0.0
    away_since: float | None = None  # it was of use and is not now: since when a spare may be needed for it
    why: Reason | None = None  # why it is being killed
    stuck_since: float | None = None  # it was killed, and the kernel cannot end what `words` says
    words: str = ""  # its last words, kept for queries

    @property
    def is_empty(self) -> bool:
        return self.state in (WorkerState.RESTING, WorkerState.FAILED)


@dataclass(slots=True)
class Place:
    """A session's place in the queue for a seat: the lowest rank is placed first.

    `line` is the agent in whose part of the queue it is listed, if it is: see `core/line.py`.
    """

    rank: int
    since: float
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A worker that continues its turn during a handoff."""

    seat: int
    incarnation: int
    pid: int
    turn: str
    offered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Orphan:
    """Processes of an earlier life that the kernel cannot end yet, and the session that they served."""

    seat: int
    incarnation: int
    session: str | None
    processes: int
    words: str


@dataclass(frozen=True, slots=True)
class Model:
    """The state of the language model; a failed one has an error and a hint."""

    state: ModelState = ModelState.WAITING
    error: str = ""
    hint: str = ""
    since: float = 0.0


@dataclass(slots=True)
class Outage:
    """The outage of an endpoint (core/outages.py), its start and cause. `probe` is a turn and its attempt."""

    since: float
    error: str
    hint: str
    probe_at: float
    limit_at: float  # when waiting turns are next checked for the limit
    failures: int = 0
    probe: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Strain:
    """A shortage of the host: error, hint, and since when."""

    error: str
    hint: str
    since: float


@dataclass(slots=True)
class Demand:
    """Seconds for which workers were away, with exponential decay: the basis for the number of spares."""

    away_seconds: float = 0.0
    at: float = 0.0


@dataclass(slots=True)
class State:
    """All that `decide` knows. `sessions` and their content are durable, the rest is not."""

    policy: Policy
    epoch: int = 0
    sessions: dict[str, Session] = field(default_factory=dict)
    workers: dict[int, Worker] = field(default_factory=dict)
    model: Model = field(default_factory=Model)
    outages: dict[str, Outage] = field(default_factory=dict)  # by endpoint
    runtimes: Runtimes = field(default_factory=Runtimes)
    intake: Intake = Intake.OPEN
    intake_since: float = 0.0
    strains: dict[str, Strain] = field(default_factory=dict)
    waiting: int = 0  # waiting messages of all sessions together
    demand: Demand = field(default_factory=Demand)
    spares_more: int = 0  # beyond those the policy asks for
    incarnations: int = 0
    # Indexes, so that a decision costs the same for any number of sessions. Dicts keep order.
    openable: dict[str, None] = field(default_factory=dict)
    # Sessions whose turn waits for a seat, in the order of placing.
    queued: OrderedDict[str, Place] = field(default_factory=OrderedDict)
    # Sessions whose turn pauses between two attempts; it is not in the queue.
    resting: dict[str, None] = field(default_factory=dict)
    # Of the queued, those whose own worker is idle; and heaps, by agent, of those that have no worker.
    own: dict[str, None] = field(default_factory=dict)
    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    ranks: tuple[int, int] = (0, 0)  # the lowest and the highest in use so far
    # Seats by the state of their process; `core/pool.py` updates them. The longest idle come first.
    starting: dict[int, None] = field(default_factory=dict)
    idle: dict[int, None] = field(default_factory=dict)
    busy: dict[int, None] = field(default_factory=dict)  # with a turn
    dying: dict[int, None] = field(default_factory=dict)
    stuck: dict[int, None] = field(default_factory=dict)  # those of the dying that the kernel cannot end
    empty: dict[int, None] = field(default_factory=dict)  # resting after a failed start, or given up
    unbound: dict[str, dict[int, None]] = field(default_factory=dict)  # idle ones without a session, by agent
    bound: dict[int, None] = field(default_factory=dict)  # idle or not, as long as it is not dying
    seat_of: dict[str, int] = field(default_factory=dict)  # by session, until its worker is gone
    vacant: dict[int, None] = field(default_factory=dict)  # seats to fill before the decision ends
    outdated: dict[int, None] = field(default_factory=dict)  # seats whose process has older settings
    agents_used: dict[str, None] = field(default_factory=dict)  # agents, the latest to begin a session last
    deadlines: list[tuple[float, int, Due]] = field(default_factory=list)
    deadlines_made: int = 0
    deadlines_kept: int = 0  # at the last removal of obsolete ones

    @property
    def draining(self) -> bool:
        """Return whether no turn may begin, for a while or until this epoch ends."""
        return self.intake is not Intake.OPEN
