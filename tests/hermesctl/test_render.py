"""Values in the cells of a table: zeros, bounds between units, and names that are cut."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermesctl import pager, render
from hermesctl.neutral import Continued, Pieces


def test_nothing_is_a_dash_and_zero_is_a_number() -> None:
    empty: list[object] = [None, "", []]
    assert [render.plain(each) for each in empty] == ["–", "–", "–"]
    assert [render.plain(each) for each in (0, 0.0, False)] == ["0", "0", "no"]


def test_a_unit_begins_where_four_digits_would() -> None:
    assert [render.size(each) for each in (999, 1000, 9 * 1024, 10 * 1024)] == [
        "999 B",
        "1.0 KiB",
        "9.0 KiB",
        "10 KiB",
    ]
    assert [render.age(each) for each in (59, 60, 3599, 3600, 86399, 86400)] == [
        "59s",
        "1m 0s",
        "59m 59s",
        "1h 0m",
        "23h 59m",
        "1d 0h",
    ]


def test_a_moment_ahead_of_this_clock_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "time", SimpleNamespace(time=lambda: 1000.0))
    assert [render.ago(each) for each in (1030.0, 940.0, None)] == ["0s", "1m 0s", "–"]


def test_a_sign_of_life_that_is_a_yes_is_no_age() -> None:
    assert [render.liveness(each) for each in (True, 3, "late")] == ["yes", "3s", "late"]


def test_a_name_that_is_cut_in_the_middle_fills_its_room_and_keeps_its_number() -> None:
    for room in range(4, 12):
        short = render.cut_middle("telegram:group/31", room)
        assert (len(short), "…" in short, short[-1]) == (room, True, "1")
    assert render.cut_middle("telegram:group/31", 8) == "tele…/31"


def test_a_dumb_terminal_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream: Any = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert render.paint("x", "red", stream) == "x"
    monkeypatch.setenv("TERM", "xterm")
    assert render.paint("x", "red", stream) != "x"


def test_an_id_stays_whole_where_a_sentence_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((30, 24)))
    stream: Any = SimpleNamespace(isatty=lambda: True, fileno=lambda: 1)
    name = "anna-laptop-and-some-more-words"
    assert name in render.folded(f"a session {name} waits", 10, stream)


def test_a_text_fits_where_the_prompt_has_a_line_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((10, 5)))
    painted = f"\x1b[2m{'x' * 10}\x1b[0m\n"
    assert pager._fits(painted * 4)
    assert not pager._fits(painted * 5)
    assert not pager._fits(painted * 3 + "x" * 11)


def test_the_pagers_own_settings_count_for_more_than_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen() -> str:
        assert pager._paged(["sh", "-c", f'echo "$LESS" > {tmp_path}/seen; cat > /dev/null'], "text")
        return (tmp_path / "seen").read_text().strip()

    monkeypatch.delenv("LESS", raising=False)
    assert seen() == "FRX"
    monkeypatch.setenv("LESS", "-S")
    assert seen() == "-S"


def test_what_waited_for_its_next_character_is_shown_once() -> None:
    pieces = Pieces()
    assert pieces.take("a\u200d") == "a"
    assert pieces.end() == "�"
    assert pieces.take("b") + pieces.end() == "b"


def test_a_mark_is_judged_by_the_whole_line_before_it() -> None:
    continued = Continued()
    assert continued.shown("שלום, and ") == "שלום, and "
    assert continued.shown("more\u200f") == "more\u200f"
    assert continued.shown("\nnext\u200f") == "\nnext�"
