"""The pieces that messages are made of; none of them travels alone."""

from typing import Any, Literal

import msgspec

from ipc.bounds import Tokens

# What repeating a tool call would do to the world: nothing, the same again, or harm.
ToolClass = Literal["pure", "idempotent", "unsafe"]


# How an attempt ended that did not end by itself.
Cut = Literal["", "lost", "interrupted", "failed"]


class Message(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """What all messages share: frozen, tagged by `t`, defaults left out."""


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a message that never travels alone."""


class ModelEndpoint(Part, frozen=True):
    """Where a worker finds the language model. One that is `away` is asked once, to see if it is back."""

    base_url: str
    name: str
    api_key: str = ""
    away: bool = False

    def __repr__(self) -> str:
        """Without the key: a repr ends up in logs."""
        return f"ModelEndpoint(base_url={self.base_url!r}, name={self.name!r})"


class AgentSpec(Part, frozen=True):
    """Which agent answers: its name in hermes.toml, its kind and its options."""

    name: str
    kind: str
    options: dict[str, Any] = {}


class ToolTrace(Part, frozen=True):
    """A tool call of an earlier attempt; `result` is None when nobody knows how it ended."""

    call: str
    name: str
    arguments: str
    repeat: ToolClass
    result: str | None = None
    ok: bool = False
    # Text the attempt had spoken before the call began: it orders words and deeds.
    offset: int = 0


class PastAttempt(Part, frozen=True):
    """What one attempt said and did, in order; `cut` says how it ended, if not by itself.

    It is "" when the attempt finished, and when it asked a human: then the answer is the result of its last
    call. A "lost" one was cut off by something that is nobody's business but the host's: the next attempt
    goes on where it stopped. An "interrupted" or "failed" one is the end of its turn.
    """

    text: str
    tools: tuple[ToolTrace, ...] = ()
    cut: Cut = ""


class PastTurn(Part, frozen=True):
    """An earlier turn of the session, as the next one's history."""

    said: tuple[str, ...]
    attempts: tuple[PastAttempt, ...]


class Killed(Part, frozen=True):
    """The proof of a kill that is not written down yet: how many processes ended, whether all, and how."""

    turn: str
    processes: int
    all_dead: bool
    ms: float
    how: str


class Said(Part, frozen=True):
    """A message of a person that a turn answers."""

    message: str
    text: str


class Usage(Part, frozen=True):
    """Tokens an attempt has cost so far, as the model server counted them."""

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
