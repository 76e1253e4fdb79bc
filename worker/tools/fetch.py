"""The tool fetch: the text of a web page; each call runs as a process of its own (worker/fetch_call.py)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from ipc.messages import ToolClass
from worker.tools import Note, Report
from worker.tools.program import Program

# Longer than the process waits for a connection and for each piece of the answer.
_SECONDS_MAX = 60.0
_DESCRIPTION = (
    "Fetches a web page and gives its text without markup; text and JSON as they are. Of a long one the "
    "middle is left out, and its first line names a file with all of it. It only reads: to send something, "
    "use a command."
)
_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {"url": {"type": "string", "description": "begins with https:// or http://"}},
        "required": ["url"],
        "additionalProperties": False,
    }
)


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=4_000)]


class Fetch:
    """`private`: addresses of this host and of private networks are fetched too."""

    name: Final = "fetch"
    description: Final = _DESCRIPTION
    schema: Final = _SCHEMA
    repeat: Final[ToolClass] = "pure"

    def __init__(self, *, private: bool = False) -> None:
        self._private = private
        self._program = Program("worker.fetch_call", _SECONDS_MAX)

    async def run(self, arguments: dict[str, Any], note: Note) -> Report:
        url = msgspec.convert(arguments, _Arguments).url
        return await self._program.call({"url": url, "private": self._private})

    def close(self) -> None:
        self._program.close()
