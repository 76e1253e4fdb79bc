"""The ask tool: a question to a person. The attempt that asks ends; a later one gets the answer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec

from ipc.messages import ToolClass
from worker.tools import Note

# People read a question on a telephone too.
_TEXT_CHARACTERS_MAX = 4000
_CHOICES_MAX = 20
_CHOICE_CHARACTERS_MAX = 200

_DESCRIPTION = (
    "Asks the user a question and waits for the answer, a minute or a week. Use it when you cannot go on "
    "without something only the user knows or may decide; not for what you can find out yourself. Give "
    "choices when the answer is likely one of a few; the user may answer in other words all the same. One "
    "question at a time. Commands that run in the background end when you ask."
)
_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "the question, with all that is needed to answer"},
            "choices": {
                "type": "array",
                "items": {"type": "string", "maxLength": _CHOICE_CHARACTERS_MAX},
                "maxItems": _CHOICES_MAX,
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    }
)
_NOT_ASKED = "not asked: another question was asked first; ask this one again if it still matters"

_Choice = Annotated[str, msgspec.Meta(min_length=1, max_length=_CHOICE_CHARACTERS_MAX)]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of one call, as the schema has them."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=_TEXT_CHARACTERS_MAX, pattern=r"\S")]
    choices: Annotated[tuple[_Choice, ...], msgspec.Meta(max_length=_CHOICES_MAX)] = ()


class Ask:
    """Offered like any tool; the agent itself ends the attempt with the first question of a reply."""

    name: Final = "ask"
    description: Final = _DESCRIPTION
    schema: Final = _SCHEMA
    repeat: Final[ToolClass] = "pure"

    async def run(self, arguments: dict[str, Any], note: Note) -> str:
        """For a call that is not asked: returns its fault, or that it has to wait."""
        msgspec.convert(arguments, Question)
        return _NOT_ASKED

    def close(self) -> None: ...


def read_question(arguments: str) -> Question | None:
    """Returns the question of a call, or None when its arguments do not match the schema."""
    try:
        return msgspec.json.decode(arguments, type=Question)
    except (msgspec.MsgspecError, RecursionError):
        return None
