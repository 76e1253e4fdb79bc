"""What was said and done before, as the next attempt is told it; free of the wire and of rows."""

from dataclasses import dataclass

from ipc.message_parts import Cut


@dataclass(frozen=True, slots=True)
class ToolPast:
    """A tool call; `result` is None when nobody knows how it ended. `offset` orders it among the words."""

    call: str
    name: str
    arguments: str
    repeat: str
    result: str | None
    ok: bool
    offset: int


@dataclass(frozen=True, slots=True)
class AttemptPast:
    """What one attempt said and did; `cut` says how it ended, "" if by itself.

    Why is told to people: reasons name signals, addresses and lines of logs, which are no part of a talk.
    """

    text: str
    tools: tuple[ToolPast, ...]
    cut: Cut


@dataclass(frozen=True, slots=True)
class TurnPast:
    """An ended turn: the texts it answered and the attempts that count."""

    id: str
    number: int
    said: tuple[str, ...]
    attempts: tuple[AttemptPast, ...]
