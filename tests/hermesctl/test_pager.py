"""Long tables go through the pager of the terminal's owner, short ones and piped ones never do."""

from pathlib import Path
from typing import Any

import pytest

from tests.hermesctl.hand import hermesctl
from tests.hermesctl.peer import opened, tables
from tests.hermesctl.terminal import hermesctl_in

MANY: list[dict[str, Any]] = [{"session": f"session-{number}", "state": "free"} for number in range(60)]
# Says that it was asked, then shows what it got.
PAGER = "sh -c 'echo PAGED; cat'"


def shown(home: Path, *line: str, rows: int = 24, pager: str = PAGER) -> str:
    with hermesctl_in(home, *line, rows=rows, PAGER=pager) as terminal:
        assert terminal.ends() == 0
    return terminal.raw.decode()


@pytest.mark.parametrize(
    ("line", "rows", "is_paged"),
    [
        (("sessions",), 24, True),
        (("sessions",), 80, False),
        (("sessions", "--no-pager"), 24, False),
        (("--no-pager", "sessions"), 24, False),
        (("sessions", "--json"), 24, False),
    ],
)
def test_only_what_is_longer_than_the_screen_is_paged(
    tmp_path: Path, line: tuple[str, ...], rows: int, is_paged: bool
) -> None:
    with opened(tmp_path, tables(sessions=MANY)):
        text = shown(tmp_path, *line, rows=rows)
    assert ("PAGED" in text) == is_paged
    assert "session-59" in text


@pytest.mark.parametrize("pager", ["", "cat", "no-such-program-anywhere"])
def test_no_pager_means_printing(tmp_path: Path, pager: str) -> None:
    with opened(tmp_path, tables(sessions=MANY)):
        text = shown(tmp_path, "sessions", pager=pager)
    assert "session-59" in text


def test_a_pipe_is_never_paged(tmp_path: Path) -> None:
    with opened(tmp_path, tables(sessions=MANY)):
        result = hermesctl(tmp_path, "sessions", PAGER=PAGER)
    assert "PAGED" not in result.out
    assert result.out.count("\n") == 61


def test_a_pager_that_is_left_early_is_no_fault(tmp_path: Path) -> None:
    with opened(tmp_path, tables(sessions=MANY * 400)):
        assert "PAGED" in shown(tmp_path, "sessions", pager="sh -c 'echo PAGED'")
