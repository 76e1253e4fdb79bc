"""The tools read, write and edit: each call runs as a process of its own (worker/file_calls.py)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from ipc.messages import ToolClass
from worker.tools import Note, Report
from worker.tools.program import Program

# A disk that does not answer must not hold a turn for ever.
_SECONDS_MAX = 60.0
# More than any of these tools gives back: what is read has a file.
_OUTPUT_BYTES_MAX = 60_000
_PATH: Mapping[str, Any] = MappingProxyType(
    {"type": "string", "description": "absolute, or relative to the home folder"}
)


def _schema(required: tuple[str, ...], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(
        {
            "type": "object",
            "properties": {"path": dict(_PATH), **{name: dict(each) for name, each in properties.items()}},
            "required": list(required),
            "additionalProperties": False,
        }
    )


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^\x00]+$")]


class _ReadArguments(_Arguments, frozen=True):
    first_line: Annotated[int, msgspec.Meta(ge=1)] = 1
    lines: Annotated[int, msgspec.Meta(ge=1)] = 2_000


class _WriteArguments(_Arguments, frozen=True):
    content: str


class _EditArguments(_Arguments, frozen=True):
    old: Annotated[str, msgspec.Meta(min_length=1)]
    new: str
    every: bool = False


class _FileTool:
    """Checks the arguments here, and does the rest in the process."""

    name: str
    _arguments: type[_Arguments]

    def __init__(self) -> None:
        self._program = Program("worker.file_calls", _SECONDS_MAX, _OUTPUT_BYTES_MAX)

    async def run(self, arguments: dict[str, Any], note: Note) -> Report:
        checked = msgspec.convert(arguments, self._arguments, strict=False)
        return await self._program.call({"tool": self.name, **msgspec.structs.asdict(checked)})

    def close(self) -> None:
        self._program.close()


class Read(_FileTool):
    """Lines of a text file, or the names in a folder."""

    name: Final = "read"
    description: Final = (
        "Reads a text file, 2,000 lines and 40,000 bytes at most: first_line and lines choose which. Of a "
        "folder it gives the names in it."
    )
    schema: Final = _schema(
        ("path",),
        first_line={"type": "integer", "minimum": 1},
        lines={"type": "integer", "minimum": 1},
    )
    repeat: Final[ToolClass] = "pure"
    _arguments = _ReadArguments


class Write(_FileTool):
    """A whole file."""

    name: Final = "write"
    description: Final = (
        "Writes a whole text file, new or in place of the one that is there, and the folders above it where "
        "they are missing. To change a part of a file, use edit."
    )
    schema: Final = _schema(("path", "content"), content={"type": "string"})
    repeat: Final[ToolClass] = "idempotent"
    _arguments = _WriteArguments


class Edit(_FileTool):
    """One passage of a file, or all that are alike."""

    name: Final = "edit"
    description: Final = (
        "Replaces a passage of a text file. old must be in the file exactly once, letter by letter with its "
        "spaces and line ends; with every true, all passages like it are replaced."
    )
    schema: Final = _schema(
        ("path", "old", "new"),
        old={"type": "string", "minLength": 1},
        new={"type": "string"},
        every={"type": "boolean"},
    )
    # Made twice, a change may be applied to its own result.
    repeat: Final[ToolClass] = "unsafe"
    _arguments = _EditArguments
