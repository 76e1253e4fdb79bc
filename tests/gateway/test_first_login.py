"""From `hermesctl start` to a browser that is logged in: every command says the next step."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import segno

from tests.fake_model import FakeModel
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.terminal import hermesctl_in
from tests.service import settings_for
from tests.waiting import until

_BLOCKS = {" ": (1, 1), "▀": (0, 1), "▄": (1, 0), "█": (0, 0)}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model_server: FakeModel) -> Iterator[Path]:
    """Of a service that `hermesctl start` has started; what it printed is in `start.txt`."""
    home = tmp_path_factory.mktemp("home")
    settings = settings_for(model_server, workers="count = 1", gateway='listen = "127.0.0.1:0"')
    (home / "hermes.toml").write_text(settings)
    started = hermesctl(home, "start")
    try:
        assert started.code == 0, started.err
        (home / "start.txt").write_text(started.out)
        yield home
    finally:
        hermesctl(home, "stop")


def test_start_and_the_log_of_run_name_the_console_and_the_code(home: Path) -> None:
    printed = re.search(r"^open (http://127.0.0.1:\d+/) and enter the code of `hermesctl pair`$",
                        (home / "start.txt").read_text(), re.MULTILINE)  # fmt: skip
    assert printed is not None
    assert httpx.get(printed[1]).status_code == 200
    log = home / "logs" / "supervisor.log"
    pattern = (
        rf"In a browser: open {re.escape(printed[1])} and enter the code of `\S+hermesctl --home \S+ pair`"
    )
    assert until(lambda: re.search(pattern, log.read_text()))
    status = hermesctl(home, "status")
    assert f"{printed[1]} · `hermesctl pair` prints a code for it" in status.out
    assert json.loads(hermesctl(home, "status", "--json").out)["gateway"] == {
        "state": "ready",
        "console": printed[1],
    }


def test_pair_prints_a_code_and_in_a_terminal_a_picture_of_the_link(home: Path) -> None:
    plain = json.loads(hermesctl(home, "pair", "--json").out)
    with hermesctl_in(home, "pair", "phone", "--owner", "anna", columns=100, rows=40) as terminal:
        screen = terminal.shows("this address is of this machine alone")
        assert terminal.ends() == 0
    code = re.search(r"^([A-Z2-9]{4}-[A-Z2-9]{4})$", screen, re.MULTILINE)
    assert code is not None
    link = f"{plain['console']}#code={code[1]}"
    assert link in screen
    drawn = [line for line in screen.splitlines() if line and set(line) <= set(_BLOCKS)]
    modules = [row for line in drawn for row in zip(*(_BLOCKS[sign] for sign in line), strict=True)]
    expected = [list(row) for row in segno.make(link, micro=False).matrix_iter(border=2)]
    assert [list(row) for row in modules[: len(expected)]] == expected
    answer = httpx.post(f"{plain['console']}api/login", json={"code": code[1]})
    assert (answer.status_code, answer.json()["name"], answer.json()["owner"]) == (200, "phone", "anna")
    listed = json.loads(hermesctl(home, "tokens", "list", "--json").out)
    assert [(row["kind"], row["name"]) for row in listed] == [("program", "first"), ("browser", "phone")]


def test_a_narrow_terminalgets_the_link_without_the_picture(home: Path) -> None:
    with hermesctl_in(home, "pair", columns=30, rows=30) as terminal:
        assert terminal.ends() == 0
        assert "█" not in terminal.screen
        assert "#code=" in terminal.screen.replace("\n", "")
