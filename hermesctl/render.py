"""Formats sizes, ages, colours and tables that fit the terminal; plain text without a terminal."""

import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from hermesctl.neutral import COLOURS, neutral

# A piece of a line and the name of its colour, if it has one.
Span = tuple[str, str]
Line = tuple[Span, ...]

NOTHING = "–"
_GAP = "  "
_COLOUR_OF = {
    **dict.fromkeys(("ready", "idle", "done", "free", "alive", "ok", "warm"), "green"),
    **dict.fromkeys(("running", "busy", "occupied"), "cyan"),
    **dict.fromkeys(
        (
            "starting",
            "warming",
            "queued",
            "waiting",
            "asking",
            "held",
            "draining",
            "stopping",
            "late",
            "silent",
        ),
        "yellow",
    ),
    **dict.fromkeys(("failed", "lost", "dying", "refused", "dead", "stuck"), "red"),
    "interrupted": "magenta",
    **dict.fromkeys(("resting", "at rest", "off", "cold"), "dim"),
}


def is_coloured(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: IO[str]) -> str:
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and is_coloured(stream) else text


def paint_state(text: str, stream: IO[str]) -> str:
    return paint(text, colour_of(text), stream)


def colour_of(state: str) -> str:
    """The colour of a state's word, or none."""
    return _COLOUR_OF.get(state.strip(), "")


def aside(text: str) -> None:
    """Prints a remark beside the output: to stderr, dim."""
    print(paint(neutral(text), "dim", sys.stderr), file=sys.stderr, flush=True)


def one_line(value: object) -> str:
    return " ".join(neutral(str(value)).split())


def folded(text: str, indent: int, stream: IO[str]) -> str:
    """Wraps a long text with indentation, where a terminal would break it anywhere."""
    if not stream.isatty():
        return text
    import textwrap

    room = max(20, os.get_terminal_size(stream.fileno()).columns - indent)
    # Paths, addresses and ids stay whole: they are copied.
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines or [text])


def plain(value: object) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(one_line, value)) or NOTHING
    return f"{value:g}" if isinstance(value, float) else one_line(value)


def size(value: object) -> str:
    """Bytes as a person reads them: 43 MiB."""
    if not isinstance(value, int | float):
        return plain(value)
    amount = float(value)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def megabytes(value: object) -> str:
    """Bytes as downloads are counted."""
    return f"{value / 1_000_000:,.0f} MB" if isinstance(value, int) else plain(value)


def age(value: object) -> str:
    """Seconds as a person reads them: 45s, 3m 20s, 2h 5m, 4d 1h."""
    if not isinstance(value, int | float):
        return plain(value)
    seconds = int(value)
    if seconds < 60:
        return f"{value:.1f}s" if isinstance(value, float) and value < 10 else f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60}s"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600}h"


def ago(value: object) -> str:
    """A moment (seconds since 1970) as the time that has passed since."""
    return age(max(0, int(time.time() - value))) if isinstance(value, int | float) else plain(value)


def counted(number: object, noun: str) -> str:
    """1 token, 2 tokens."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(value: object) -> str:
    return f"{value:.0f}%" if isinstance(value, int | float) else plain(value)


def liveness(value: object) -> str:
    """A sign of life: its state, or how long ago the last one was."""
    return age(value) if isinstance(value, int | float) and not isinstance(value, bool) else plain(value)


def bare(text: str) -> str:
    """A painted text without its paint."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def width(text: str) -> int:
    """Terminal cells a text takes: wide East Asian characters and emoji take two, marks and joiners none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(sign) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(sign) in "WF"
        else 1
        for sign in text
    )


def cut(text: str, room: int) -> str:
    """The beginning of a text, with a sign where it was cut."""
    if width(text) <= room:
        return text
    kept = ""
    for sign in text:
        if width(kept + sign) > room - 1:
            break
        kept += sign
    return kept + "…"


def cut_middle(text: str, room: int) -> str:
    """Both ends of a name: its subject, and its number."""
    if width(text) <= room:
        return text
    tail = cut(text[::-1], room // 2)[::-1]
    return cut(text, room - width(tail) + 1)[:-1] + tail


@dataclass(frozen=True)
class Column:
    """One column. Where space is short, `wide` ones are cut, then the highest `rank` is left out."""

    key: str
    heading: str
    show: Callable[[object], str] = plain
    rank: int = 0
    wide: bool = False
    shorten: Callable[[str, int], str] = cut
    right: bool = False
    state: bool = False


# How a table shrinks, step by step: wide columns are cut down to the first number, then columns of at least
# the second rank are left out. All columns lose a little before one is lost.
_CONCESSIONS = ((24, 3), (12, 1), (6, 1))


def table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], stream: IO[str]) -> str:
    """The rows under their headings; on a terminal no wider than it is."""
    room = (os.get_terminal_size(stream.fileno()).columns or 80) if stream.isatty() else None
    return "\n".join(paint_line(line, stream) for line in grid(columns, rows, room))


def grid(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], room: int | None) -> list[Line]:
    """The headings, then a line for each row, within so many cells where `room` is given."""
    cells = {column: [column.show(row.get(column.key)) for row in rows] for column in columns}
    shown = [column for column in columns if not _is_spare(column, cells[column])]
    widths = {column: max(map(width, (column.heading, *cells[column]))) for column in shown}
    if room is not None:
        _fit(widths, room)
    heads = [_pad(column.heading.upper(), widths[column], column.right) for column in widths]
    lines: list[Line] = [((_GAP.join(heads).rstrip(), "dim"),)]
    for index in range(len(rows)):
        row = [_cell(column, cells[column][index], widths[column]) for column in widths]
        lines.append(tuple(span for each in row for span in ((_GAP, ""), each))[1:])
    return lines


def paint_line(line: Line, stream: IO[str]) -> str:
    return "".join(paint(text, colour, stream) for text, colour in line).rstrip()


def _is_spare(column: Column, cells: Sequence[str]) -> bool:
    """True for a column of lesser rank that is empty in every row."""
    return column.rank > 0 and bool(cells) and all(cell == NOTHING for cell in cells)


def _fit(widths: dict[Column, int], room: int) -> None:
    """Narrows the table until a row fits, or nothing more can be left out."""

    def excess() -> int:
        return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - room

    for floor, rank in _CONCESSIONS:
        while excess() > 0 and (wide := [c for c in widths if c.wide and widths[c] > floor]):
            widths[max(wide, key=lambda column: widths[column])] -= 1
        while excess() > 0 and (least := max(widths, key=lambda column: column.rank)).rank >= rank:
            del widths[least]


def _cell(column: Column, text: str, room: int) -> Span:
    padded = _pad(column.shorten(text, room), room, column.right)
    if text == NOTHING:
        return padded, "dim"
    return padded, _COLOUR_OF.get(text, "") if column.state else ""


def _pad(text: str, room: int, right: bool) -> str:
    space = " " * (room - width(text))
    return space + text if right else text + space
