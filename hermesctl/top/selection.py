"""The visible rows: tab, order, filter and the selected row; pure, and never out of range."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hermesctl.render import Column, age, ago, cut_middle, one_line, percent, plain, size
from hermesctl.top.sample import Row, Sample

Tab = Literal["sessions", "seats", "services"]
TABS: tuple[Tab, ...] = ("sessions", "seats", "services")


def turn_number(turn: object) -> str:
    """A turn is SESSION/N, and the session has a column of its own."""
    return plain(turn).rpartition("/")[2]


# States that need a person or use resources come first.
_ORDER_OF_STATES = ("asking", "running", "queued", "occupied", "held", "free", "at rest")
_COLUMNS: dict[Tab, tuple[Column, ...]] = {
    "sessions": (
        Column("session", "session", wide=True, shorten=cut_middle),
        Column("state", "state", state=True),
        Column("turn", "turn", turn_number, right=True),
        Column("waiting", "waiting", right=True),
        Column("seat", "seat", right=True, rank=4),
        Column("pid", "pid", right=True, rank=3),
        Column("memory_bytes", "memory", size, right=True, rank=2),
        Column("cpu_percent", "cpu", percent, right=True, rank=1),
        Column("since_at", "since", ago, right=True, rank=1),
    ),
    "seats": (
        Column("seat", "seat", right=True),
        Column("state", "state", state=True),
        Column("pid", "pid", right=True),
        Column("turn", "turn", wide=True, shorten=cut_middle),
        Column("memory_bytes", "memory", size, right=True),
        Column("cpu_percent", "cpu", percent, right=True),
        Column("age_seconds", "age", age, right=True),
        Column("turns", "turns", right=True, rank=2),
        Column("words", "last words", wide=True, rank=1),
    ),
    "services": (
        Column("service", "service"),
        Column("state", "state", state=True),
        Column("pid", "pid", right=True),
        Column("restarts", "restarts", right=True),
        Column("age_seconds", "age", age, right=True, rank=1),
        Column("detail", "detail", wide=True),
    ),
}
# The orders of each tab, the usual one first; numbers go from large to small, the rest from a to z.
_ORDERS: dict[Tab, tuple[str, ...]] = {
    "sessions": ("state", "cpu_percent", "memory_bytes", "waiting", "session"),
    "seats": ("seat", "cpu_percent", "memory_bytes", "state"),
    "services": ("service", "state"),
}
_NAMES: dict[Tab, str] = {"sessions": "session", "seats": "seat", "services": "service"}


@dataclass
class View:
    """The choices of the person at the keys; `window` returns the rows that fit."""

    tab: Tab = "sessions"
    filter: str = ""
    selected: object = None
    first: int = 0
    _orders: dict[Tab, int] = field(default_factory=lambda: dict.fromkeys(TABS, 0))

    @property
    def order(self) -> str:
        return _ORDERS[self.tab][self._orders[self.tab]]

    @property
    def order_name(self) -> str:
        return next(column.heading for column in self.columns if column.key == self.order)

    @property
    def columns(self) -> tuple[Column, ...]:
        return _COLUMNS[self.tab]

    def next_order(self) -> None:
        self._orders[self.tab] = (self._orders[self.tab] + 1) % len(_ORDERS[self.tab])

    def show(self, tab: Tab) -> None:
        if tab != self.tab:
            self.tab, self.selected, self.first = tab, None, 0

    def next_tab(self) -> None:
        self.show(TABS[(TABS.index(self.tab) + 1) % len(TABS)])

    def rows(self, sample: Sample) -> list[Row]:
        """All rows of the tab that pass the filter, in order."""
        found = [row for row in rows_of(sample, self.tab) if self._passes(row)]
        return sorted(found, key=lambda row: _key(row, self.order, _NAMES[self.tab]))

    def move(self, rows: Sequence[Row], by: int) -> None:
        """Moves the selection by so many rows, within the table."""
        if rows:
            self.selected = self._name(rows[min(max(0, self.place(rows) + by), len(rows) - 1)])

    def place(self, rows: Sequence[Row]) -> int:
        """The index of the selected row; the first one when it is gone."""
        names = [self._name(row) for row in rows]
        return names.index(self.selected) if self.selected in names else 0

    def chosen(self, rows: Sequence[Row]) -> Row | None:
        return rows[self.place(rows)] if rows else None

    def window(self, rows: Sequence[Row], height: int) -> Sequence[Row]:
        """The rows that fit, scrolled so that the selected one is among them."""
        at = self.place(rows)
        self.first = max(min(self.first, at, len(rows) - height), at - height + 1, 0)
        return rows[self.first : self.first + height]

    def _name(self, row: Row) -> object:
        return row.get(_NAMES[self.tab])

    def _passes(self, row: Row) -> bool:
        words = one_line(" ".join(str(value) for value in row.values())).lower()
        return self.filter.lower() in words


def rows_of(sample: Sample, tab: Tab) -> Sequence[Row]:
    match tab:
        case "sessions":
            return session_rows(sample)
        case "seats":
            return sample.workers
        case "services":
            return sample.services


def session_rows(sample: Sample) -> list[Row]:
    """Every session with its open turn and the usage of its worker."""
    turns = {row.get("session"): row for row in sample.turns}
    seats = {row.get("session"): row for row in sample.workers if row.get("session") is not None}
    known = {row.get("session"): row for row in sample.sessions}
    return [_session(name, known.get(name, {}), turns.get(name), seats.get(name)) for name in known | turns]


def _session(name: object, session: Row, turn: Row | None, seat: Row | None) -> Row:
    row = {"session": name, "state": session.get("state"), "waiting": session.get("waiting", 0)}
    row["since_at"] = session.get("last_at")
    if turn is not None:
        row |= {"state": turn.get("state"), "turn": turn.get("turn"), "since_at": turn.get("opened_at")}
    if seat is not None and turn is not None:
        row |= {key: seat.get(key) for key in ("seat", "pid", "memory_bytes", "cpu_percent")}
    return row


def _key(row: Row, order: str, name: str) -> tuple[Any, ...]:
    value = row.get(order)
    if order == "state":
        known = value in _ORDER_OF_STATES
        rank = _ORDER_OF_STATES.index(str(value)) if known else len(_ORDER_OF_STATES)
        return rank, str(value), -_number(row.get("since_at")), str(row.get(name))
    if order == name:
        return (_number(value), str(value))
    return -_number(value), str(row.get(name))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
