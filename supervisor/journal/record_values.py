"""The values of a record as parameters of its statements."""

import json
from dataclasses import fields
from operator import attrgetter
from typing import Any

from supervisor.core.records import (
    AttemptLost,
    AttemptOpened,
    AttemptStopped,
    AttemptStreamed,
    QuestionAnswered,
    QuestionAsked,
    Record,
    SessionBegun,
    TurnInterrupted,
    TurnOpened,
)
from supervisor.core.state import turn_number
from supervisor.journal.statements import STATEMENTS

_NAMES = {kind: tuple(field.name for field in fields(kind)) for kind in STATEMENTS}
_VALUES = {kind: attrgetter(*names) for kind, names in _NAMES.items()}


def parameters(record: Record) -> dict[str, Any]:
    """Return the parameters of a record's statements: its fields, and the parts of compound ones."""
    kind = type(record)
    values: dict[str, Any] = dict(zip(_NAMES[kind], _VALUES[kind](record), strict=True))
    if "turn" in values:
        values["turn_number"] = turn_number(values["turn"])
    match record:
        case AttemptOpened(who=who):
            values.update(epoch=who.epoch, seat=who.seat, incarnation=who.incarnation)
        case AttemptStreamed(text=text):
            values["length"] = len(text)
        case AttemptLost(reason=reason):
            values["reason"] = str(reason)
        case SessionBegun(turns=turns):
            values["turns_json"] = json.dumps(turns)
        case TurnOpened(messages=messages):
            values["messages_json"] = json.dumps(messages)
        case AttemptStopped(verdict=verdict):
            values.update(verdict_state=verdict.state.value, verdict_by=verdict.by)
            values.update(verdict_error=verdict.error, verdict_hint=verdict.hint)
        case QuestionAsked(choices=choices) | QuestionAnswered(choices=choices):
            values["choices_json"] = json.dumps(choices)
        case TurnInterrupted():
            values["killed_json"] = json.dumps(record.fields()["killed"])
    return values
