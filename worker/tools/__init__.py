"""What a tool is to an agent: a name, a schema, and what repeating it would do; one module each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ipc.messages import ToolClass

# Tells a watcher what happens while it happens; fleeting, never history.
Note = Callable[[str], None]


@dataclass(frozen=True)
class Report:
    """What a call came to: a text for the model, and for people whether it failed and how a command ended."""

    text: str
    ok: bool = True
    exit: int | None = None
    signal: str = ""


class Tool(Protocol):
    """Something an agent can do to the world. An exception from `run` is told to the model as its result."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""

    @property
    def repeat(self) -> ToolClass: ...

    async def run(self, arguments: dict[str, Any], note: Note) -> Report | str:
        """A bare text is a success. Calls of one reply run side by side; `note` speaks for this one."""

    def close(self) -> None:
        """The turn is over: the tool lets go of all it holds. Never waits."""


MakeTool = Callable[[], Tool]
