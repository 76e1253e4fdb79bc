"""Draws lines of coloured pieces: the head of the screen, its tabs, and one whole plain frame."""

from collections.abc import Sequence

from hermesctl.render import Line, Span, age, colour_of, cut, grid, one_line, percent, plain, size, width
from hermesctl.top.sample import Row, Sample, Trail
from hermesctl.top.selection import TABS, View, rows_of

# Wide enough for the longest label.
_LABEL = 11
# Above this number a bar for each seat has no use.
_GAUGE_MAX = 24
# From this width on the two sparklines are side by side.
_SIDE_BY_SIDE = 110
_SPARK_MAX = 60
_RATE = 9
# The first hints name the faults; all of them are in `hermesctl status`.
_HINTS_MAX = 2
# Rows of each table in a plain frame, which is read at a glance.
_PLAIN_ROWS_MAX = 20


def head(sample: Sample, trail: Trail, room: int) -> list[Line]:
    """The state of the service, in a few lines that fit."""
    hints = [one_line(hint) for hint in sample.status.get("hints") or ()][:_HINTS_MAX]
    lines = (
        _title(sample.status),
        _fact("model", plain(sample.status.get("model"))),
        _seats(sample.status),
        _queue(sample.status),
        _load(sample),
        *_sparks(trail, room),
        _services(sample.services),
        *(_fact("hint", hint, "yellow") for hint in hints),
    )
    return [cut_line(line, room) for line in lines]


def tabs(view: View, sample: Sample | None, room: int) -> Line:
    """The tables, the current one, its order and its filter."""
    spans: list[Span] = []
    for number, tab in enumerate(TABS, start=1):
        count = f" {len(rows_of(sample, tab))}" if sample else ""
        spans += [(f" {number} {tab}{count} ", "reverse" if tab == view.tab else "dim"), (" ", "")]
    spans.append((f" by {view.order_name}", "dim"))
    if view.filter:
        spans.append((f" · only “{one_line(view.filter)}”", "yellow"))
    return cut_line(tuple(spans), room)


def plain_frame(sample: Sample, trail: Trail, room: int) -> list[Line]:
    """All of it without a screen: the head, then every table that has rows."""
    lines = head(sample, trail, room)
    for tab in TABS:
        view = View(tab)
        rows = view.rows(sample)
        if rows:
            lines += [(), *grid(view.columns, rows[:_PLAIN_ROWS_MAX], room)]
        if len(rows) > _PLAIN_ROWS_MAX:
            lines.append(((f"… and {len(rows) - _PLAIN_ROWS_MAX} more", "dim"),))
    return lines


def cut_line(line: Line, room: int) -> Line:
    """The beginning of a line that fits."""
    kept: list[Span] = []
    for text, colour in line:
        fitting = cut(text, room)
        kept.append((fitting, colour))
        room -= width(fitting)
        if fitting != text or room <= 0:
            break
    return tuple(kept)


def _fact(label: str, text: str, colour: str = "") -> Line:
    return (f"{label:<{_LABEL}}", "dim"), (text, colour)


def _title(status: Row) -> Line:
    state = "draining" if status.get("draining") else plain(status.get("state"))
    rest = (
        f" · hermes supervisor {plain(status.get('version'))} · up {age(status.get('uptime_seconds'))}"
        f" · pid {plain(status.get('pid'))} · epoch {plain(status.get('epoch'))}"
    )
    return (f"● {state}", colour_of(state)), (rest, "")


def _seats(status: Row) -> Line:
    busy, seats = _count(status, "busy"), _count(status, "seats")
    shown = min(max(seats, busy), _GAUGE_MAX)
    full = round(shown * busy / max(seats, busy, 1))
    words = f"  {busy} of {seats} busy · {_count(status, 'idle')} idle · {_count(status, 'spares')} spare"
    gauge = ("▰" * full, "cyan"), ("▱" * (shown - full), "dim")
    return (("seats".ljust(_LABEL), "dim"), *gauge, (words, ""))


def _queue(status: Row) -> Line:
    queued, asking = _count(status, "queued"), _count(status, "asking")
    waiting = _count(status, "waiting")
    return (
        ("queue".ljust(_LABEL), "dim"),
        (f"{_count(status, 'running')} running · ", ""),
        (f"{queued} queued", "yellow" if queued else ""),
        (" · ", ""),
        (f"{asking} asking", "yellow" if asking else ""),
        (f" · {waiting} messages waiting · {_count(status, 'turns_ended')} ended", ""),
    )


def _load(sample: Sample) -> Line:
    workers = sample.workers
    cpu = sum(float(row.get("cpu_percent") or 0) for row in workers)
    memory = sum(int(row.get("memory_bytes") or 0) for row in workers)
    own = size(sample.status.get("memory_bytes"))
    return _fact("load", f"workers take {percent(cpu)} of a CPU and {size(memory)} · supervisor {own}")


def _sparks(trail: Trail, room: int) -> list[Line]:
    lines: list[Line] = []
    beside = room >= _SIDE_BY_SIDE
    spark_room = min(_SPARK_MAX, (room // 2 if beside else room) - _LABEL - _RATE - 3)
    for name, counter in trail.counters.items():
        rate = counter.per_minute()
        number = "–" if rate is None else f"{rate:.0f}/min"
        colour = "magenta" if name == "interrupts" else "cyan"
        label = name.ljust(_LABEL)
        lines.append(((label, "dim"), (counter.spark(spark_room), colour), (f" {number:<{_RATE}}", "")))
    return [tuple(span for line in lines for span in (*line, ("  ", "")))] if beside else lines


def _services(services: Sequence[Row]) -> Line:
    spans: list[Span] = [("services".ljust(_LABEL), "dim")]
    for number, row in enumerate(services):
        state = plain(row.get("state"))
        spans += [
            (" · " if number else "", ""),
            (f"{plain(row.get('service'))} ", ""),
            (state, colour_of(state)),
        ]
    return tuple(spans) if services else (*spans, ("none", "dim"))


def _count(status: Row, name: str) -> int:
    value = status.get(name)
    return int(value) if isinstance(value, int | float) else 0
