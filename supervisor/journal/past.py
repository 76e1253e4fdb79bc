"""The past of a session as the next attempt receives it; independent of the wire and of rows."""

from dataclasses import dataclass

from ipc.message_parts import Cut


@dataclass(frozen=True, slots=True)
class ToolPast:
    """A tool call; `result` is None when its end is unknown. `offset` orders it within the text."""

    call: str
    name: str
    arguments: str
    repeat: str
    result: str | None
    ok: bool
    offset: int


@dataclass(frozen=True, slots=True)
class AttemptPast:
    """The text and the tool calls of one attempt; `cut` says how it ended, "" if by itself.

    The reason is for people only: it names signals, addresses and log lines, which do not belong in a prompt.
    """

    text: str
    tools: tuple[ToolPast, ...]
    cut: Cut


@dataclass(frozen=True, slots=True)
class TurnPast:
    """An ended turn: the messages it answered and the attempts that count."""

    id: str
    number: int
    said: tuple[str, ...]
    attempts: tuple[AttemptPast, ...]
