"""Pages: every row once, none too large for a frame, nothing cut without a mark."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipc.bounds import Number
from ipc.codec import FRAME_BYTES_MAX, encode
from ipc.errors import BadPlace
from ipc.messages import Table
from ipc.paging import (
    PAGE_BYTES,
    PAGE_ROWS,
    Placed,
    Row,
    done,
    fitted_row,
    key_of,
    listed,
    page,
    place,
    taken,
)


def pages(rows: list[Row], limit: int = PAGE_ROWS) -> Iterator[Table]:
    found = page(listed(rows, ""), limit)
    yield found
    while found.more:
        found = page(listed(rows, found.more), limit)
        yield found


@settings(deadline=None, max_examples=50)
@given(
    sizes=st.lists(st.sampled_from([0, 10, PAGE_BYTES // 3, PAGE_BYTES, 2 * PAGE_BYTES]), max_size=12),
    limit=st.integers(1, 5),
)
def test_h14_every_row_is_on_one_page_and_every_page_fits_a_frame(sizes: list[int], limit: int) -> None:
    rows = [{"number": number, "text": "x" * size} for number, size in enumerate(sizes)]
    found = list(pages(rows, limit))
    assert [row for table in found for row in table.rows] == rows
    for table in found:
        assert len(table.rows) <= limit
        encode(table)
        large = sum(len(row["text"]) for row in table.rows)
        assert large <= PAGE_BYTES or len(table.rows) == 1


def test_a_page_has_no_more_rows_than_the_loop_can_spare_the_time_for() -> None:
    rows = [{"number": number} for number in range(PAGE_ROWS + 1)]
    assert [len(table.rows) for table in pages(rows, 10_000)] == [PAGE_ROWS, 1]


def test_what_was_looked_at_in_vain_moves_the_place() -> None:
    def found() -> Iterator[Placed]:
        yield {"a": 1}, place(1)
        yield None, place(77)
        raise AssertionError("nothing is asked for behind it")

    assert page(found()) == Table(({"a": 1},), "[77]")


def test_h14_a_row_that_no_frame_can_hold_is_cut_with_a_mark() -> None:
    row: Row = {"id": "s/1", "arguments": "a" * FRAME_BYTES_MAX, "result": "r" * FRAME_BYTES_MAX, "rest": [1]}
    (shown,) = page(listed([row], "")).rows
    encode(Table((shown,)))
    assert shown["id"] == "s/1"
    assert shown["rest"] == [1]
    for name in ("arguments", "result"):
        assert f"[… {FRAME_BYTES_MAX - 1000} characters left out …]" in shown[name]


def test_h14_a_list_that_no_frame_can_hold_is_cut_with_a_mark() -> None:
    shown = fitted_row({"findings": ["x" * 1000] * 10_000, "ok": False})
    assert "characters left out" in shown["findings"]
    assert shown["ok"] is False
    small = {"findings": ["x"], "ok": True}
    assert fitted_row(small) is small


def test_h14_turns_that_do_not_fit_an_answer_are_counted() -> None:
    turns = [f"{number:0200}/1" for number in range(50_000)]
    answer = done(turns, "note")
    assert len(encode(answer)) < FRAME_BYTES_MAX
    assert list(answer.turns) == turns[: len(answer.turns)]
    assert answer.more == len(turns) - len(answer.turns) > 0
    assert done(turns[:3]).more == 0


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [("", tuple[Number], (5,)), ("[7]", tuple[Number], (7,)), ('[1.5,"é"]', tuple[float, str], (1.5, "é"))],
)
def test_a_place_gives_its_key_back(text: str, kind: Any, key: Any) -> None:
    assert key_of(text, kind, (5,)) == key
    assert not text or key_of(place(*key), kind, None) == key


@pytest.mark.parametrize("text", ["[", "[]", "[-1]", "[1,2]", '["x"]', "[1e99]", "{}", "null", "[" * 4000])
def test_a_place_that_no_page_gave_is_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        key_of(text, tuple[Number], (0,))


@pytest.mark.parametrize("size", [0, PAGE_BYTES // 2])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_rows_that_are_taken_for_a_page_give_the_same_page(size: int, limit: int) -> None:
    rows = [{"number": number, "text": "x" * size} for number in range(3)]
    found = taken(listed(rows, ""), limit)
    assert page(found, limit) == page(listed(rows, ""), limit)
    assert len(found) <= limit + 1
