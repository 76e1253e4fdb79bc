"""What a tool is to an agent: a name, a schema, and what repeating it would do; one module each."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ipc.messages import ToolClass

# Tells a watcher what happens while it happens; fleeting, never history.
Note = Callable[[str], None]


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

    async def run(self, arguments: dict[str, Any]) -> str: ...

    def close(self) -> None:
        """The turn is over: the tool lets go of all it holds. Never waits."""


MakeTool = Callable[[Note], Tool]
