"""A message as the core holds it: from its arrival until a turn has ended that took it."""

from dataclasses import dataclass
from enum import StrEnum


class BusyMode(StrEnum):
    """The effect of a message on a running turn."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    STEER = "steer"
    COLLECT = "collect"


@dataclass(slots=True)
class Message:
    """A message that no turn has taken yet."""

    id: str
    text: str
    busy: BusyMode
    at: float
    clip: str = ""  # the name of the stored clip
    seq: int = 0  # its number in the session
    by: str = ""  # its sender
    agent: str = ""  # wanted for the turn that it opens; the session's own if empty
    instructions: str = ""  # for that turn

    @property
    def is_transcribing(self) -> bool:
        """A clip without a transcript yet: it keeps its place, and has no effect."""
        return bool(self.clip) and not self.text
