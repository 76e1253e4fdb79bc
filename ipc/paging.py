"""Tables in pages that fit a frame.

A table may have ten messages of a megabyte each, or ten thousand long names. Its rows are produced one after
the other, each with its *place*: a text from which the same producer can continue after that row. A page ends
before the row that would make it too large, and its `more` is the place of its last row; the next request
sends that back as `after`. So no state is kept between two pages, and rows are neither cut off nor repeated
while the table does not change. A row that moves while pages are read (a session that gets a message, say)
may be missing from all of them.

One row alone may be too large for a frame only if it was written before ipc/bounds.py had its bounds. Then
its longest texts are cut in the middle, with a mark that says how much was left out.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from ipc.bounds import Number
from ipc.codec import FRAME_BYTES_MAX
from ipc.errors import BadPlace
from ipc.messages import Done, Table

Row = dict[str, Any]
# A row and the place after it. Without a row only the place moves: the producer examined rows that do not
# match.
Placed = tuple[Row | None, str]
_Key = TypeVar("_Key")

# A page is sent at once and encoded in one call: some milliseconds of the loop.
PAGE_BYTES = 1024 * 1024
PAGE_ROWS = 1000
# The rest of the frame is for the message around the rows.
_ROW_BYTES_MAX = FRAME_BYTES_MAX - 64 * 1024
# Remaining length of a text that is cut.
_KEPT_CHARACTERS = 1000


def page(found: Iterable[Placed], limit: int = PAGE_ROWS) -> Table:
    """Returns the next rows, `limit` at most, that fit one answer."""
    rows: list[Row] = []
    size, place = 0, ""
    for row, behind in found:
        if row is None:
            return Table(tuple(rows), behind)
        fitting, row_bytes = _fitted(row)
        if rows and (len(rows) >= min(limit, PAGE_ROWS) or size + row_bytes > PAGE_BYTES):
            return Table(tuple(rows), place)
        rows.append(fitting)
        size += row_bytes
        place = behind
    return Table(tuple(rows))


def taken(found: Iterable[Placed], limit: int = PAGE_ROWS) -> list[Placed]:
    """Returns the rows that `page` would look at, and no more: a page of them is the same page."""
    rows: list[Placed] = []
    size = 0
    for placed in found:
        rows.append(placed)
        size += _size(placed[0])
        if placed[0] is None or len(rows) > min(limit, PAGE_ROWS) or size > PAGE_BYTES:
            break
    return rows


def done(turns: Iterable[str], note: str = "") -> Done:
    """Returns an answer that names as many turns as a page holds, and counts the others."""
    named: list[str] = []
    left, more = PAGE_BYTES, 0
    for turn in turns:
        left -= len(turn.encode())
        if left < 0:
            more += 1
        else:
            named.append(turn)
    return Done(tuple(named), note, more)


def place(*key: str | int | float) -> str:
    """Returns the place after the row with this key."""
    return msgspec.json.encode(key).decode()


def key_of(place: str, kind: type[_Key], first: _Key) -> _Key:
    """Returns the key in a place, `first` when it is empty; checks it, because it comes from a client."""
    if not place:
        return first
    try:
        return msgspec.json.decode(place, type=kind)
    except msgspec.MsgspecError:
        raise BadPlace from None


def listed(rows: Iterable[Row], after: str) -> Iterator[Placed]:
    """Yields the rows of a short list with a fixed order, after the place of an earlier page."""
    (skipped,) = key_of(after, tuple[Number], (0,))
    for number, row in enumerate(rows, start=1):
        if number > skipped:
            yield row, place(number)


def shortened(text: str, characters: int = _KEPT_CHARACTERS) -> str:
    """Returns the beginning and the end of a text, with the length of the omitted middle between them."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}[… {len(text) - 2 * half} characters left out …]{text[-half:]}"


def fitted_row(row: Row) -> Row:
    """Returns the same row, or one whose longest texts are cut so that a frame can hold it."""
    return _fitted(row)[0]


def _fitted(row: Row) -> tuple[Row, int]:
    size = _size(row)
    if size <= _ROW_BYTES_MAX:
        return row, size
    fitting = dict(row)
    for name in sorted(row, key=lambda name: _size(row[name]), reverse=True):
        value = row[name]
        fitting[name] = shortened(value if isinstance(value, str) else msgspec.json.encode(value).decode())
        size = _size(fitting)
        if size <= _ROW_BYTES_MAX:
            break
    return fitting, size


def _size(value: object) -> int:
    return len(msgspec.msgpack.encode(value))
