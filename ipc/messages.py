"""Messages between clients, workers and the supervisor, one tagged union per direction.

docs/protocol.md says when each is sent. Structs are frozen and their tags are short: a tag is on the wire
with every token. Every field of a message to the supervisor has a bound (ipc/bounds.py).
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ipc.admin_messages import Care as Care
from ipc.admin_messages import Drain as Drain
from ipc.admin_messages import HandOver as HandOver
from ipc.admin_messages import Reload as Reload
from ipc.admin_messages import Scale as Scale
from ipc.admin_messages import Stop as Stop
from ipc.admin_messages import Undrain as Undrain
from ipc.bounds import Id, Limit, MessageText, Name, Number, Place
from ipc.message_parts import AgentSpec as AgentSpec
from ipc.message_parts import BudgetLimit as BudgetLimit
from ipc.message_parts import Exchange as Exchange
from ipc.message_parts import Killed as Killed
from ipc.message_parts import Message as Message
from ipc.message_parts import ModelEndpoint as ModelEndpoint
from ipc.message_parts import Part as Part
from ipc.message_parts import PastAnswer as PastAnswer
from ipc.message_parts import PastAttempt as PastAttempt
from ipc.message_parts import PastTurn as PastTurn
from ipc.message_parts import QuestionKind as QuestionKind
from ipc.message_parts import ToolClass as ToolClass
from ipc.message_parts import ToolServer as ToolServer
from ipc.message_parts import ToolTrace as ToolTrace
from ipc.message_parts import TurnMessage as TurnMessage
from ipc.message_parts import Usage as Usage
from ipc.worker_messages import Ack as Ack
from ipc.worker_messages import AgentFault as AgentFault
from ipc.worker_messages import Answered as Answered
from ipc.worker_messages import Asked as Asked
from ipc.worker_messages import Assign as Assign
from ipc.worker_messages import Beat as Beat
from ipc.worker_messages import Cancel as Cancel
from ipc.worker_messages import Delta as Delta
from ipc.worker_messages import Failed as Failed
from ipc.worker_messages import Finished as Finished
from ipc.worker_messages import FromWorker as FromWorker
from ipc.worker_messages import Hello as Hello
from ipc.worker_messages import Kept as Kept
from ipc.worker_messages import ModelAway as ModelAway
from ipc.worker_messages import Noted as Noted
from ipc.worker_messages import Ready as Ready
from ipc.worker_messages import Resend as Resend
from ipc.worker_messages import Setup as Setup
from ipc.worker_messages import Steer as Steer
from ipc.worker_messages import Steered as Steered
from ipc.worker_messages import ToolFinished as ToolFinished
from ipc.worker_messages import ToolStarted as ToolStarted
from ipc.worker_messages import ToWorker as ToWorker

BusyMode = Literal["interrupt", "queue", "steer", "collect"]
# Of an import; a longer conversation is shortened by its sender.
Exchanges = Annotated[tuple[Exchange, ...], Meta(max_length=1000)]
# Poison: failed turns that have cost too many workers.
TurnState = Literal["queued", "running", "asking", "done", "failed", "interrupted", "poison"]


# --- client -> supervisor (first part of the frame is a request number the answer repeats) ------------------


class Submit(Message, frozen=True, tag="submit"):
    """Send a message to a session. `key` makes it idempotent; `busy` overrides the session's mode.

    `agent` answers the turn that this message opens, instead of the session's; `instructions` go to it behind
    those of the session. A message that steers, or answers a question, leaves the running turn as it is.
    """

    session: Name
    text: MessageText
    key: Name
    busy: BusyMode | None = None
    expect_turn: Id | None = None
    # The name of a stored clip instead of a text: the sender has put it into the clips folder, durably.
    clip: Name = ""
    by: Name = ""
    agent: Name = ""
    instructions: MessageText = ""


class Begin(Message, frozen=True, tag="begin"):
    """Make a new session with a history: `turns`, or those of `from_session` through its turn of that number.

    `key` makes it idempotent. Of a long history the newest turns are kept that an attempt would be told of.
    """

    session: Name
    key: Name
    turns: Exchanges = ()
    from_session: Name = ""
    through_turn: Number = 0


class Transcribe(Message, frozen=True, tag="transcribe"):
    """Make a transcript of a stored clip that is no message; the clip is removed with the answer.

    The same `key` while the clip is in work asks for the same transcript.
    """

    clip: Name
    key: Name


class Interrupt(Message, frozen=True, tag="interrupt"):
    """Stop the running turn of a session (of every session when None); `drop` empties the queue too."""

    session: Name | None
    by: Name
    expect_turn: Id | None = None
    drop: bool = False


class Queue(Message, frozen=True, tag="queue"):
    """Read or change the messages that wait; `after` is the `more` of the previous page."""

    session: Name
    act: Literal["list", "drop", "clear", "resume"] = "list"
    message: Id | None = None
    after: Place = ""
    by: Name = "hermesctl"


class Respond(Message, frozen=True, tag="respond"):
    """Answer an open question by its id."""

    question: Id
    text: MessageText
    by: Name


class Retry(Message, frozen=True, tag="retry"):
    """Submit the messages of a failed or interrupted turn again; `key` makes it idempotent."""

    turn: Id
    key: Name


class Subscribe(Message, frozen=True, tag="subscribe"):
    """Send the durable events of a session (of all when None) after `after`, then live ones and deltas.

    `after` of None means from now on, or, with the name of a `cursor`, after the last event that this cursor
    has acknowledged by Seen. The subscription ends when the client disconnects or falls too far behind.
    """

    session: Name | None
    after: Number | None = None
    cursor: Name = ""


class Seen(Message, frozen=True, tag="seen"):
    """Acknowledges every event of the session up to `seq`. A cursor never moves back."""

    cursor: Name
    session: Name
    seq: Number


class Unsubscribe(Message, frozen=True, tag="unsubscribe"):
    """End the subscription that was started under request number `subscription`."""

    subscription: Number


class Show(Message, frozen=True, tag="show"):
    """Read a table. `state` and `session` filter where the table has them; `id` selects a story or a turn.

    `prefix` is the beginning of the session's name, for sessions, turns and questions; sessions are also
    found by `words`. `history` are the turns of a session with their content, newest first. `output` is input
    and output of the tool call `call` of the turn `id`, a row for each attempt. The answer has `limit` rows
    at most, fewer when they are long; `after` is the `more` of the previous page.
    """

    what: Literal[
        "status",
        "sessions",
        "turns",
        "workers",
        "services",
        "agents",
        "questions",
        "cursors",
        "hosts",
        "story",
        "history",
        "turn",
        "output",
        "metrics",
    ]
    session: Name | None = None
    state: TurnState | None = None
    limit: Limit = 100
    id: Id = ""
    call: Id = ""
    after: Place = ""
    prefix: Name = ""
    words: Name = ""


# What the gateway may ask for: nothing that ends, replaces or configures the service, or writes files.
GatewayRequest = (
    Submit
    | Begin
    | Transcribe
    | Interrupt
    | Queue
    | Respond
    | Retry
    | Subscribe
    | Seen
    | Unsubscribe
    | Show
    | Drain
    | Undrain
    | Scale
)
Request = GatewayRequest | Care | Reload | HandOver | Stop


# --- supervisor -> client (first part: the request number) --------------------------------------------------


class Accepted(Message, frozen=True, tag="accepted"):
    """The message is durable. `seq` is its place in the events; `again` is true when its key was known.

    `note` tells the sender about the wait ahead, if there is one.
    """

    message: str
    seq: int
    again: bool = False
    note: str = ""


class Done(Message, frozen=True, tag="ok"):
    """The request was carried out; `turns` names the affected turns, in order.

    `more` is the number of further affected turns that do not fit the frame. `unwritten` says why an
    interrupt is not in the journal yet, though it was carried out; `killed` are then the proofs.
    """

    turns: tuple[str, ...] = ()
    note: str = ""
    more: int = 0
    killed: tuple[Killed, ...] = ()
    unwritten: str = ""


# The kind of a refusal, for programs; docs/protocol.md says when each is used.
RefusalCode = Literal["invalid", "unknown", "conflict", "full", "unavailable", "denied", "internal"]


class Refused(Message, frozen=True, tag="refused"):
    """Nothing was changed. `error` names the fault, `hint` what to do, `code` its kind."""

    error: str
    hint: str
    retry_after_seconds: float | None = None
    # A supervisor of an earlier version sends none.
    code: RefusalCode = "invalid"


class Transcript(Message, frozen=True, tag="transcript"):
    """The text of a clip that is no message, its language and its length."""

    text: str
    language: str
    seconds: float


class Table(Message, frozen=True, tag="table"):
    """Rows of the answer, as plain mappings; `more`, if not empty, is where the next page begins."""

    rows: tuple[dict[str, Any], ...]
    more: str = ""


class Event(Message, frozen=True, tag="e"):
    """One durable event of a session."""

    seq: int
    session: str
    type: str
    at: float
    fields: dict[str, Any]


class Subscribed(Message, frozen=True, tag="subscribed"):
    """The subscription has started; `seq` is the session's last durable event now (0 for all sessions).

    `after` is where it begins.
    """

    seq: int
    after: int = 0


class Cut(Message, frozen=True, tag="cut"):
    """The subscription has ended: a slow reader or an internal error. Subscribe again after the last seq."""

    reason: str


Answer = Accepted | Done | Refused | Transcript | Table | Event | Delta | Noted | Subscribed | Cut
