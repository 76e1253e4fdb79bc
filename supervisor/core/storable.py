"""Values that every journal can hold: text of whole characters, numbers of 63 bits.

Bounds on the wire keep out other values from peers. This is the last check before an event is decided, for
values from elsewhere (a path, a message of the kernel, a settings file): once an event is decided, a record
that the journal refuses would undo the commit of its whole batch.
"""

from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from supervisor.core.reasons import Reason

_NUMBER_MAX = 2**63 - 1
_Held = TypeVar("_Held")


def holdable(event: _Held) -> _Held:
    """Return the event with lone surrogates replaced by question marks; OverflowError for large numbers."""
    kind: type[Any] = type(event)
    read, names = _read(kind)  # type: ignore[arg-type]
    unclean: dict[str, str | Reason] = {}
    for name, value in zip(names, read(event), strict=True):
        if isinstance(value, str):
            if not value.isascii() and not _is_whole(value):
                unclean[name] = value.encode(errors="replace").decode()
        elif isinstance(value, Reason):
            if (held := holdable(value)) is not value:
                unclean[name] = held
        elif isinstance(value, int) and not -_NUMBER_MAX <= value <= _NUMBER_MAX:
            raise OverflowError
    return replace(event, **unclean) if unclean else event  # type: ignore[type-var]


@cache
def _read(kind: type[Any]) -> tuple[Any, tuple[str, ...]]:
    """Return a getter of all fields at once; attrgetter gives a tuple from two names on."""
    names = tuple(field.name for field in fields(kind))
    if len(names) > 1:
        return attrgetter(*names), names
    return (lambda event: tuple(getattr(event, name) for name in names)), names


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
