"""Notes about the output of a running command: each counts what it leaves out, and shows the newest."""

import asyncio

import pytest

from tests.waiting import soon
from worker.tools import live_output
from worker.tools.live_output import Ticker


def test_a_note_counts_the_lines_that_are_left_out_since_the_last_one() -> None:
    async def act() -> list[str]:
        notes: list[str] = []
        ticker = Ticker(notes.append)
        for content in (b"".join(b"%d\n" % number for number in range(10)), b"more\n"):
            ticker.add(content)
            ticker.close()
        ticker.close()
        return notes

    assert asyncio.run(act()) == ["[\u2026 6 lines \u2026]\n6\n7\n8\n9", "more"]


def test_of_a_line_without_an_end_the_newest_part_is_shown() -> None:
    async def act() -> list[str]:
        notes: list[str] = []
        ticker = Ticker(notes.append)
        for _ in range(1000):
            ticker.add(b"." * 1000)
        ticker.add(b" 99 %")
        assert len(ticker._unfinished) <= 100
        ticker.close()
        return notes

    (note,) = asyncio.run(act())
    assert note.endswith(". 99 %")


def test_lines_are_shown_as_a_terminal_would_and_no_longer_than_fits() -> None:
    async def act() -> list[str]:
        notes: list[str] = []
        ticker = Ticker(notes.append)
        for content in (b"10 %\r20 %\r30 %  \n\n", b"x" * 150 + b"\n", b"caf\xc3", b"\xa9 \xff\r\n"):
            ticker.add(content)
        ticker.add(b"40 %\r50 %\r")
        ticker.close()
        return notes

    assert asyncio.run(act()) == ["30 %\n" + "x" * 100 + "\ncafé \ufffd\n50 %"]


def test_notes_go_on_after_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_output, "_NOTE_SECONDS", 0.001)

    async def act() -> None:
        notes: list[str] = []
        ticker = Ticker(notes.append)
        for number in range(3):
            ticker.add(b"%d\n" % number)
            await soon(lambda number=number: len(notes) == number + 1)  # type: ignore[misc]
        assert notes == ["0", "1", "2"]

    asyncio.run(act())
