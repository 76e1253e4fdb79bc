"""The interface of a tool: a name, a schema, and the effect of a repetition; one module each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ipc.messages import ToolClass

# Sends a transient note about a running call.
Note = Callable[[str], None]


@dataclass(frozen=True)
class Report:
    """The result of a call: a text for the model; for people, whether it failed and how a command ended."""

    text: str
    ok: bool = True
    exit: int | None = None
    signal: str = ""


class Tool(Protocol):
    """An action of an agent. The model gets an exception from `run` as the result."""

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
        """A plain text is a success. Calls of one reply run side by side; `note` belongs to this one."""

    def close(self) -> None:
        """The turn is over: the tool releases everything it holds. Never waits."""


MakeTool = Callable[[], Tool]
