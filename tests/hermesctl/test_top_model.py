"""The model of top: rates from counters, sparklines, rows in order; no clock and no screen."""

from typing import Any

import pytest

from hermesctl.render import width
from hermesctl.top.frame import head, plain_frame, tabs
from hermesctl.top.sample import Counter, Sample, Trail, sparkline
from hermesctl.top.selection import View, session_rows


def sample(at: float = 0.0, **tables: Any) -> Sample:
    status = {"state": "ready", "epoch": 1, "seats": 4, "busy": 1, **tables.pop("status", {})}
    return Sample(at=at, now=1000.0 + at, status=status, **tables)


def counted(*counts: int, life: object = 1) -> Counter:
    """A counter that was looked at once a second."""
    counter = Counter()
    for at, count in enumerate(counts):
        counter.add(float(at), life, count)
    return counter


@pytest.mark.parametrize(
    ("values", "room", "bars"),
    [
        ([], 4, "    "),
        ([0, 0], 4, "  ▁▁"),
        ([0, 1, 7], 3, "▁▂█"),
        ([0, 1, 1000], 3, "▁▂█"),
        ([5, 5, 5], 2, "██"),
        ([1, 2], 0, ""),
    ],
)
def test_a_sparkline_shows_the_newest_at_the_right(values: list[float], room: int, bars: str) -> None:
    assert sparkline(values, room) == bars


def test_a_rate_is_the_gain_of_the_last_minute() -> None:
    counter = counted(*range(0, 240, 2))
    assert counter.per_minute() == 120


def test_a_short_watch_is_scaled_up_to_a_minute() -> None:
    assert counted(10, 11, 12).per_minute() == 60


def test_nothing_is_known_of_a_rate_after_one_look() -> None:
    assert counted(10).per_minute() is None
    assert Trail().rates() == {"turns_per_minute": None, "interrupts_per_minute": None}


def test_a_count_that_goes_back_is_no_gain() -> None:
    assert [gained for _, gained in counted(10, 12, 3, 4).steps] == [2, 0, 1]


def test_a_new_life_counts_from_anywhere_and_gains_nothing_by_it() -> None:
    counter = counted(10, 12)
    counter.add(2.0, "the next life", 5000)
    counter.add(3.0, "the next life", 5001)
    assert [gained for _, gained in counter.steps] == [2, 0, 1]


def test_totals_are_counted_and_an_older_supervisor_is_understood() -> None:
    new, old = Trail(), Trail()
    for at, done in enumerate((3, 5, 8)):
        totals = {"turns_done": done, "turns_failed": 1, "turns_interrupted": 1, "interrupts": 2}
        new.add(sample(at, status={"totals": totals}))
        old.add(sample(at, status={"turns_ended": done}))
    assert new.counters["turns"].spark(2) == old.counters["turns"].spark(2) == "▆█"
    assert new.counters["interrupts"].spark(2) == "▁▁"
    assert old.rates()["interrupts_per_minute"] is None


SESSIONS = [
    {"session": "old", "state": "at rest", "waiting": 0, "last_at": 10.0},
    {"session": "demo", "state": "occupied", "waiting": 2, "last_at": 20.0},
    {"session": "idle", "state": "free", "waiting": 0, "last_at": 30.0},
    {"session": "stopped", "state": "held", "waiting": 1, "last_at": 30.0},
]
TURNS = [
    {"turn": "demo/3", "session": "demo", "state": "running", "opened_at": 990.0},
    {"turn": "beyond/1", "session": "beyond", "state": "queued", "opened_at": 995.0},
]
WORKERS = [
    {
        "seat": 1, "state": "busy", "session": "demo", "turn": "demo/3", "pid": 7,
        "memory_bytes": 2**20, "cpu_percent": 60.0,
    },
    {
        "seat": 0, "state": "idle", "session": None, "turn": None, "pid": 8,
        "memory_bytes": 2**21, "cpu_percent": 5.0,
    },
]  # fmt: skip
BUSY = sample(sessions=SESSIONS, turns=TURNS, workers=WORKERS)


def test_a_session_shows_its_turn_and_what_its_seat_costs() -> None:
    rows = {row["session"]: row for row in session_rows(BUSY)}
    assert rows["demo"] == {
        "session": "demo", "state": "running", "turn": "demo/3", "waiting": 2, "since_at": 990.0,
        "seat": 1, "pid": 7, "memory_bytes": 2**20, "cpu_percent": 60.0,
    }  # fmt: skip


def test_what_is_active_comes_first_even_when_the_page_of_sessions_lacks_it() -> None:
    names = [row["session"] for row in View().rows(BUSY)]
    assert names == ["demo", "beyond", "stopped", "idle", "old"]


def test_orders_follow_each_other_and_come_round() -> None:
    view = View("seats")
    seen = []
    for _ in range(5):
        seen.append((view.order_name, [row["seat"] for row in view.rows(BUSY)]))
        view.next_order()
    assert seen[0] == seen[4] == ("seat", [0, 1])
    assert seen[1:3] == [("cpu", [1, 0]), ("memory", [0, 1])]


def test_a_filter_looks_at_all_of_a_row_without_case() -> None:
    assert [row["session"] for row in View(filter="RUNNING").rows(BUSY)] == ["demo"]
    assert View(filter="no such words").rows(BUSY) == []


def test_the_selection_stays_with_its_row_when_the_order_changes() -> None:
    view = View()
    view.move(view.rows(BUSY), 2)
    assert view.selected == "stopped"
    for _ in range(4):
        view.next_order()
    row = view.chosen(view.rows(BUSY))
    assert row is not None
    assert row["session"] == "stopped"


def test_the_window_follows_the_selection_and_never_leaves_the_rows() -> None:
    rows = [{"session": str(number)} for number in range(10)]
    view = View()
    view.move(rows, 100)
    assert [row["session"] for row in view.window(rows, 3)] == ["7", "8", "9"]
    view.move(rows, -1)
    assert view.first == 7
    view.move(rows, -100)
    assert [row["session"] for row in view.window(rows, 3)] == ["0", "1", "2"]
    assert view.window([], 3) == []
    assert list(view.window(rows[:2], 5)) == rows[:2]


def test_a_row_that_has_gone_leaves_the_first_selected() -> None:
    view = View(selected="gone")
    row = view.chosen(view.rows(BUSY))
    assert row is not None
    assert row["session"] == "demo"


@pytest.mark.parametrize("room", [40, 78, 110, 198])
def test_every_line_fits(room: int) -> None:
    trail = Trail()
    for at in range(300):
        trail.add(sample(float(at), status={"totals": {"turns_done": at * at, "interrupts": at}}))
    long = sample(
        status={"model": "a model with a long name " * 10, "hints": ["mend it " * 40] * 5},
        services=[{"service": "model", "state": "failed"}] * 9,
        sessions=[{"session": "会議" * 60, "state": "free"}],
    )
    for line in (
        *head(long, trail, room),
        tabs(View(filter="f" * 300), long, room),
        *plain_frame(long, trail, room),
    ):
        assert width("".join(text for text, _ in line)) <= room


def test_hostile_names_are_only_text() -> None:
    name = "evil\x1b]0;owned\x07\x9b31m[red]"
    hostile = sample(sessions=[{"session": name, "state": name}], services=[{"service": name, "state": name}])
    shown = "".join(text for line in plain_frame(hostile, Trail(), 110) for text, _ in line)
    assert "evil" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
