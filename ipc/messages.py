"""Messages between clients, workers and the supervisor, one tagged union per direction.

docs/protocol.md says when each is sent. Structs are frozen and their tags are short: a tag is on the wire
with every token. Every field of a message to the supervisor has a bound (ipc/bounds.py).
"""

from typing import Any, Literal

from ipc.admin_messages import Care as Care
from ipc.admin_messages import Drain as Drain
from ipc.admin_messages import HandOver as HandOver
from ipc.admin_messages import Reload as Reload
from ipc.admin_messages import Scale as Scale
from ipc.admin_messages import Stop as Stop
from ipc.admin_messages import Undrain as Undrain
from ipc.bounds import Id, Limit, MessageText, Name, Number, Place, Sentence, Sentences, Status, Text, Word
from ipc.message_parts import AgentSpec as AgentSpec
from ipc.message_parts import Killed as Killed
from ipc.message_parts import Message as Message
from ipc.message_parts import ModelEndpoint as ModelEndpoint
from ipc.message_parts import Part as Part
from ipc.message_parts import PastAttempt as PastAttempt
from ipc.message_parts import PastTurn as PastTurn
from ipc.message_parts import Said as Said
from ipc.message_parts import ToolClass as ToolClass
from ipc.message_parts import ToolTrace as ToolTrace
from ipc.message_parts import Usage as Usage

BusyMode = Literal["interrupt", "queue", "steer", "collect"]
# Poison are the failed ones that have cost too many workers.
TurnState = Literal["queued", "running", "asking", "done", "failed", "interrupted", "poison"]


# --- worker -> supervisor -----------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """First frame of an incarnation: who it is, by the numbers it was forked with."""

    epoch: Number
    seat: Number
    incarnation: Number


class Ready(Message, frozen=True, tag="ready"):
    """The worker takes an Assign now."""


class Beat(Message, frozen=True, tag="beat"):
    """The worker's event loop turned; sent on its own schedule, also between turns."""


class Delta(Message, frozen=True, tag="d"):
    """Words as they are spoken; clients get these bytes. `offset` counts over all attempts at the turn."""

    session: Name
    turn: Id
    attempt: Number
    offset: Number
    text: Text


class ToolStarted(Message, frozen=True, tag="tool"):
    """Written down before the tool runs: the worker waits for the acknowledgement of this frame."""

    turn: Id
    attempt: Number
    call: Id
    name: Name
    summary: Sentence
    arguments: Text
    repeat: ToolClass
    offset: Number = 0  # characters that this attempt had said before
    usage: Usage = Usage()  # what the attempt has cost until now


class ToolFinished(Message, frozen=True, tag="toolend"):
    """`exit` is the status of a command that ended by itself, `signal` the name of the one that ended it."""

    turn: Id
    attempt: Number
    call: Id
    ok: bool
    ms: Number
    result: Text
    exit: Status | None = None
    signal: Word = ""


class Noted(Message, frozen=True, tag="note"):
    """Something to know while it happens (a retry, output of the tool call `call`): fleeting, no history."""

    turn: Id
    attempt: Number
    text: Sentence
    call: Id = ""
    replaces: bool = False  # a count that grows: it stands in place of the note before it


class Steered(Message, frozen=True, tag="steered"):
    """The running agent has taken in a message that was handed to it by Steer."""

    turn: Id
    attempt: Number
    message: Id


class Asked(Message, frozen=True, tag="asked"):
    """Only a human can answer the open tool call `call`: the attempt ends here and its seat is given back.

    The answer comes to a later attempt, as the result of that call.
    """

    turn: Id
    attempt: Number
    call: Id
    kind: Literal["clarify", "approve"]
    text: Sentence
    choices: Sentences = ()


class Kept(Message, frozen=True, tag="kept"):
    """The answer to Resend, behind all that was said again: what runs here; nothing by default."""

    turn: Id = ""
    attempt: Number = 0


class Finished(Message, frozen=True, tag="done"):
    """`finish` says why the model stopped: `stop` of itself, else `length`, `content_filter`, `refusal`, …"""

    turn: Id
    attempt: Number
    text: Text
    usage: Usage = Usage()
    finish: Word = "stop"


class Failed(Message, frozen=True, tag="failed"):
    """The attempt ended without an answer. `again` says whether another attempt could do better."""

    turn: Id
    attempt: Number
    error: Sentence
    hint: Sentence
    again: bool = False
    usage: Usage = Usage()  # what it has cost all the same
    outage: bool = False  # the model could not be asked
    wait_seconds: Number = 0  # for which its server asks to be left alone


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
)


# --- supervisor -> worker -----------------------------------------------------------------------------------


class Assign(Message, frozen=True, tag="assign"):
    """Answer these messages. `history` is the session so far; `tried` the earlier attempts at this turn."""

    session: str
    turn: str
    attempt: int
    say: tuple[Said, ...]
    agent: AgentSpec
    model: ModelEndpoint
    history: tuple[PastTurn, ...] = ()
    tried: tuple[PastAttempt, ...] = ()
    offset: int = 0  # characters that those have said: this one goes on there


class Ack(Message, frozen=True, tag="ack"):
    """Every frame up to and including `frame` is safe: durable where it must be, delivered where fleeting."""

    frame: int


class Steer(Message, frozen=True, tag="steer"):
    """A message for the running turn, to be taken in at its next tool boundary."""

    turn: str
    attempt: int
    message: str
    text: str


class Resend(Message, frozen=True, tag="resend"):
    """The supervisor's image was replaced: frames up to `after` are safe, later ones are to be sent again."""

    after: int


ToWorker = Assign | Ack | Steer | Resend


# --- client -> supervisor (first part of the frame is a request number the answer repeats) ------------------


class Submit(Message, frozen=True, tag="submit"):
    """Say something to a session. `key` makes it idempotent; `busy` overrides the session's mode."""

    session: Name
    text: MessageText
    key: Name
    busy: BusyMode | None = None
    expect_turn: Id | None = None
    # The name of a stored clip instead of a text: the sender has put it into the clips folder, durably.
    clip: Name = ""


class Interrupt(Message, frozen=True, tag="interrupt"):
    """Stop the running turn of a session (of every session when None); `drop` empties the queue too."""

    session: Name | None
    by: Name
    expect_turn: Id | None = None
    drop: bool = False


class Queue(Message, frozen=True, tag="queue"):
    """Read or change what waits behind the running turn. `after` is the `more` of the page before."""

    session: Name
    act: Literal["list", "drop", "clear", "resume"] = "list"
    message: Id | None = None
    after: Place = ""


class Respond(Message, frozen=True, tag="respond"):
    """Answer an open question by its id."""

    question: Id
    text: MessageText
    by: Name


class Retry(Message, frozen=True, tag="retry"):
    """Say again what a failed or interrupted turn was to answer; `key` makes it idempotent."""

    turn: Id
    key: Name


class Follow(Message, frozen=True, tag="follow"):
    """Send the durable events of a session (of all when None) after `after`, then live ones and deltas.

    `after` of None means from now on, or, with the name of a `cursor`, behind what that name has acknowledged
    by Seen. A follow ends when the client goes or falls too far behind.
    """

    session: Name | None
    after: Number | None = None
    cursor: Name = ""


class Seen(Message, frozen=True, tag="seen"):
    """Every event of the session up to `seq` has reached whom the cursor serves. It never moves back."""

    cursor: Name
    session: Name
    seq: Number


class Unfollow(Message, frozen=True, tag="unfollow"):
    """End the follow that was started under request number `follow`."""

    follow: Number


class Show(Message, frozen=True, tag="show"):
    """Read a table. `state` and `session` filter where the table has them; `id` is whose story is told.

    `output` is what the tool call `call` of the turn `id` was given and gave back, a row for each attempt.
    The answer has `limit` rows at most, fewer when they are long; `after` is the `more` of the page before.
    """

    what: Literal[
        "status",
        "sessions",
        "turns",
        "workers",
        "services",
        "questions",
        "cursors",
        "story",
        "output",
        "metrics",
    ]
    session: Name | None = None
    state: TurnState | None = None
    limit: Limit = 100
    id: Id = ""
    call: Id = ""
    after: Place = ""


Request = (
    Submit
    | Interrupt
    | Queue
    | Respond
    | Retry
    | Follow
    | Seen
    | Unfollow
    | Show
    | Care
    | Reload
    | Drain
    | Undrain
    | Scale
    | HandOver
    | Stop
)


# --- supervisor -> client (first part: the request number) --------------------------------------------------


class Accepted(Message, frozen=True, tag="accepted"):
    """The message is durable. `seq` is where it stands in the feed; `again` says it was known by its key.

    `note` is what its sender should know about the wait ahead, when there is something to know.
    """

    message: str
    seq: int
    again: bool = False
    note: str = ""


class Done(Message, frozen=True, tag="ok"):
    """The request was carried out; `turns` names the turns it touched, in order.

    `more` is how many further turns it touched that do not fit the frame. `unwritten` says why an interrupt
    is not in the journal yet, though it was carried out; `killed` are then the proofs of what ran.
    """

    turns: tuple[str, ...] = ()
    note: str = ""
    more: int = 0
    killed: tuple[Killed, ...] = ()
    unwritten: str = ""


class Refused(Message, frozen=True, tag="refused"):
    """Nothing was changed. `error` names the fault, `hint` the remedy."""

    error: str
    hint: str
    retry_after_seconds: float | None = None


class Table(Message, frozen=True, tag="table"):
    """Rows of what was asked for, as plain mappings; `more`, if not empty, is where the next page begins."""

    rows: tuple[dict[str, Any], ...]
    more: str = ""


class Event(Message, frozen=True, tag="e"):
    """One durable event of a session's feed."""

    seq: int
    session: str
    type: str
    at: float
    fields: dict[str, Any]


class Following(Message, frozen=True, tag="following"):
    """The follow stands; `seq` is the session's last durable event at this moment (0 when following all).

    `after` is where it begins.
    """

    seq: int
    after: int = 0


class Cut(Message, frozen=True, tag="cut"):
    """The follow has ended: its reader is too slow, or an internal error. Follow again after the last seq."""

    reason: str


Answer = Accepted | Done | Refused | Table | Event | Delta | Noted | Following | Cut
