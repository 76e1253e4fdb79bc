"""Structs that messages consist of; none is sent on its own."""

from typing import Any, Literal

import msgspec

from ipc.bounds import COST_MAX, Cost, Text, Tokens

# The effect of repeating a tool call: none, the same again, or harm.
ToolClass = Literal["pure", "idempotent", "unsafe"]


# What a person is asked for: an answer, or a consent.
QuestionKind = Literal["clarify", "approve"]


# How an attempt ended that did not end by itself.
Cut = Literal["", "lost", "interrupted", "failed"]


class Message(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """Base of all messages: frozen, tagged by `t`, defaults left out."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a message that is never sent on its own."""


class ModelEndpoint(Part, frozen=True):
    """The address of a language model. An endpoint that is `away` is tried once, to see if it is back."""

    base_url: str
    name: str
    api_key: str = ""
    away: bool = False
    id: str = ""  # under which the supervisor knows its outages
    price_in: float = 0.0  # of a million tokens
    price_out: float = 0.0
    context_tokens: int = 0  # 0: unknown

    def __repr__(self) -> str:
        """Leaves the key out: a repr ends up in logs."""
        return f"ModelEndpoint(base_url={self.base_url!r}, name={self.name!r})"


class AgentSpec(Part, frozen=True):
    """The agent that answers: its name in hermes.toml, its kind and its options."""

    name: str
    kind: str
    options: dict[str, Any] = {}


# The entry of the runtime of built-in agents with MCP servers: its zygote imports the client of these.
MCP_ENTRY = "mcp"


class ToolServer(Part, frozen=True):
    """An MCP server of an agent: a program with its arguments, or an address.

    `environment_from` and the values of `headers_from` are names of secrets in the Setup. `classes` are the
    effects of repeated calls, by tool, where the settings overrule the server.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    environment_from: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, str] = {}
    headers_from: dict[str, str] = {}
    classes: dict[str, ToolClass] = {}

    def __repr__(self) -> str:
        """Shows the name only: environment and headers can hold keys, and a repr ends up in logs."""
        return f"ToolServer(name={self.name!r})"


class ToolTrace(Part, frozen=True):
    """A tool call of an earlier attempt; `result` is None when its result is unknown."""

    call: str
    name: str
    arguments: str
    repeat: ToolClass
    result: str | None = None
    ok: bool = False
    # Length of the attempt's text before the call: it orders text and calls.
    offset: int = 0


class PastAttempt(Part, frozen=True):
    """The text and the tool calls of one attempt, in order; `cut` is how it ended, if not by itself.

    It is "" when the attempt finished, and when it asked a person: then the answer is the result of its last
    call. "lost" means that the host ended the attempt: the next attempt continues where it stopped. An
    "interrupted" or "failed" attempt ends its turn.
    """

    text: str
    tools: tuple[ToolTrace, ...] = ()
    cut: Cut = ""


class PastAnswer(Part, frozen=True):
    """A person's answer to a question of this turn, which holds for the whole turn.

    `attempt` asked it, about its tool call `call` if that is not empty.
    """

    kind: str
    text: str
    answer: str
    call: str = ""
    attempt: int = 0


class PastTurn(Part, frozen=True):
    """An earlier turn of the session, as history of the next one."""

    messages: tuple[str, ...]
    attempts: tuple[PastAttempt, ...]


class Exchange(Part, frozen=True):
    """A turn of a conversation that was held elsewhere."""

    user: Text
    assistant: Text = ""


class Killed(Part, frozen=True):
    """The proof of a kill that is not in the journal yet: processes ended, whether all did, and how."""

    turn: str
    processes: int
    all_dead: bool
    ms: float
    how: str


class BudgetLimit(Part, frozen=True):
    """A limit of [budgets.SCOPE] on `what`: "tokens", or "cost" in millionths of the currency of the prices.

    `used` counts without the attempt that gets it. Each time that the use reaches a further multiple of
    `most`, a person is asked; up to `allowed` times that was answered with a yes.
    """

    scope: str
    what: str
    most: int
    used: int
    allowed: int = 0
    day: str = ""  # of UTC, for the scope "day"

    @property
    def setting(self) -> str:
        return f"[budgets.{self.scope}] {self.what}_max"

    def times_reached(self, more: "Usage | None" = None) -> int:
        """Returns how many times the limit is reached when the attempt has used `more`."""
        added = 0 if more is None else more.tokens if self.what == "tokens" else more.cost
        return (self.used + added) // self.most

    def amount(self, times: int) -> str:
        count = times * self.most
        return f"{count} tokens" if self.what == "tokens" else f"a cost of {count / 1_000_000:g}"

    def question(self, times: int) -> str:
        """Returns the same text whenever the limit was reached so many times: answers are found by it."""
        who = f"The day {self.day} (UTC)" if self.scope == "day" else f"This {self.scope}"
        limit = f"{self.setting} allows {self.amount(1)}"
        return f"{who} has reached {self.amount(times)}; {limit}. Go on, up to {self.amount(times + 1)}?"


class TurnMessage(Part, frozen=True):
    """A message of a person that a turn answers."""

    message: str
    text: str


class Usage(Part, frozen=True):
    """Tokens that an attempt has used so far, as the model server counts them, and what they cost."""

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cost: Cost = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def at(self, endpoint: ModelEndpoint) -> "Usage":
        """Returns the same tokens with their cost by the prices of a model."""
        cost = self.input_tokens * endpoint.price_in + self.output_tokens * endpoint.price_out
        return Usage(self.input_tokens, self.output_tokens, min(round(cost), COST_MAX))

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )
