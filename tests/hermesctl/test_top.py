"""top against the real service in a real terminal: what is seen, what keys do, a supervisor that dies."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import Answer, Drain, Refused, Request, Scale, Show, Table
from tests.fake_model import FakeModel
from tests.hermesctl.hand import Running, hermesctl
from tests.hermesctl.peer import Peer, opened, tables
from tests.hermesctl.terminal import ENTER, ESCAPE, TAB, hermesctl_in
from tests.service import Service, settings_for
from tests.waiting import until

ENDLESS = "[[slow interval=0.2 count=100000]]"


@pytest.fixture(scope="module")
def service(model_server: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two turns run in it and stay."""
    home = tmp_path_factory.mktemp("top")
    with Service(home, settings_for(model_server, workers="count = 3")) as running:
        for session in ("alpha", "telegram:42"):
            running.say(session, ENDLESS)
        until(lambda: running.status()["running"] == 2)
        yield running


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_the_screen_shows_the_service_at_any_size(service: Service, columns: int, rows: int) -> None:
    with hermesctl_in(service.home, "top", columns=columns, rows=rows) as terminal:
        seen = ("● ready · hermes supervisor", "2 of 3 busy", "interrupts ", "telegram:42", " running ")
        terminal.becomes(lambda screen: all(words in screen for words in seen))
        terminal.becomes(lambda screen: "q quit" in screen.split("\n")[rows - 1])
        terminal.type(TAB)
        assert "SEAT" in terminal.shows(" AGE")
        terminal.type("q")
        assert terminal.ends() == 0
    assert b"Traceback" not in terminal.raw


def test_a_smaller_window_is_drawn_anew(service: Service) -> None:
    with hermesctl_in(service.home, "top", columns=120, rows=40) as terminal:
        terminal.shows("telegram:42")
        terminal.resize(60, 20)
        terminal.becomes(lambda screen: "i interrupt" in screen.splitlines()[-1])
        terminal.shows("telegram:42")
        terminal.type("q")
        assert terminal.ends() == 0


def test_keys_select_filter_and_tell_why(service: Service) -> None:
    with hermesctl_in(service.home, "top") as terminal:
        terminal.shows("telegram:42")
        terminal.type("/tele")
        terminal.becomes(lambda screen: "only “tele”" in screen and "alpha" not in screen)
        terminal.type(ENTER + "w")
        story = terminal.shows("turn telegram:42/1 is running")
        assert "why telegram:42/1" in story
        assert "100000" not in story
        terminal.type(ESCAPE)
        terminal.becomes(lambda screen: "is running" not in screen)
        terminal.type(ESCAPE)
        terminal.shows("alpha")
        terminal.type("?")
        terminal.shows("interrupt the selected turn")
        terminal.type(ESCAPE)
        terminal.becomes(lambda screen: "interrupt the selected turn" not in screen)
        terminal.type("s")
        terminal.shows("by cpu")
        terminal.type("q")
        assert terminal.ends() == 0


def test_an_interrupt_is_asked_about_and_proven(service: Service) -> None:
    service.say("victim", ENDLESS)
    with hermesctl_in(service.home, "top") as terminal:
        terminal.shows("victim")
        terminal.type("/victim" + ENTER)
        terminal.becomes(lambda screen: "alpha" not in screen and "running" in screen)
        terminal.type("i")
        terminal.shows("Interrupt victim/1")
        terminal.type("n")
        terminal.shows("left as it is")
        assert service.show("turns", session="victim")[0]["state"] == "running"
        terminal.type("i")
        terminal.shows("Interrupt victim/1")
        terminal.type("y")
        terminal.shows("victim/1 interrupted: ")
        assert "none left" in terminal.screen
        assert service.show("turns", session="victim")[0]["state"] == "interrupted"
        terminal.shows("at rest")
        terminal.type("i")
        terminal.shows("nothing runs in the selected row")
        terminal.type("q")
        assert terminal.ends() == 0


def test_a_supervisor_that_dies_is_waited_for(model: FakeModel, tmp_path: Path) -> None:
    with (
        Service(tmp_path / "home", settings_for(model)) as service,
        hermesctl_in(service.home, "top", "--every", "0.2") as terminal,
    ):
        terminal.shows("epoch 1")
        service.kill()
        terminal.shows("not running, waiting for it to return")
        terminal.type("d")
        terminal.shows("Drain: take no new turns")
        terminal.type("y")
        terminal.shows("the supervisor is not running")
        service.start()
        terminal.shows("epoch 2")
        terminal.type("q")
        assert terminal.ends() == 0


def test_one_frame_needs_no_terminal(service: Service) -> None:
    result = hermesctl(service.home, "top", "--once")
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert "telegram:42" in result.out
    assert "SEAT" in result.out


def test_json_is_a_sample_a_line_with_rates(service: Service) -> None:
    with Running(service.home, "top", "--json", "--every", "0.1") as running:
        until(lambda: running.wait_for("\n").count("\n") > 4)
        lines = running.wait_for("\n").splitlines()
        running.press_ctrl_c()
        assert running.end().code == 130
    samples = [json.loads(line) for line in lines[:4]]
    assert samples[0]["rates"]["turns_per_minute"] is None
    assert samples[3]["rates"]["turns_per_minute"] == 0
    assert {row["session"] for row in samples[0]["turns"]} >= {"alpha", "telegram:42"}


def test_nothing_running_is_said(tmp_path: Path) -> None:
    once = hermesctl(tmp_path, "top", "--once")
    assert (once.code, once.err) == (
        69,
        "hermesctl: the supervisor is not running\n  hint: hermesctl start\n",
    )
    assert hermesctl(tmp_path, "top", "--json", "--once").code == 69
    blind = hermesctl(tmp_path, "top")
    assert blind.code == 2
    assert "--once" in blind.err


def test_hostile_names_do_not_command_the_terminal(tmp_path: Path) -> None:
    rows = [{"session": "evil\x1b]0;owned\x07\x1b[31m[bold]", "state": "free"}]
    status = [{"state": "ready", "epoch": 1}]
    with opened(tmp_path, tables(status=status, sessions=rows)), hermesctl_in(tmp_path, "top") as terminal:
        terminal.shows("[bold]")
        terminal.type("q")
        assert terminal.ends() == 0
    assert b"\x1b]0;owned" not in terminal.raw


def test_seats_and_draining_are_asked_for_and_a_refusal_is_shown(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(({"state": "ready", "epoch": 1, "seats": 4},) if request.what == "status" else ())]
        return [Refused("not on a Sunday", "come back tomorrow")]

    with opened(tmp_path, reply) as peer, hermesctl_in(tmp_path, "top") as terminal:
        terminal.shows("of 4 busy")
        terminal.type("+")
        terminal.shows("not on a Sunday (come back tomorrow)")
        terminal.type("-d")
        terminal.shows("Drain: take no new turns")
        terminal.type("y")
        peer.wait_for(Drain)
        assert [request.seats for request in peer.requests(Scale)] == [5, 3]
        terminal.type("q")
        assert terminal.ends() == 0


def test_colours_are_left_out_where_nobody_wants_them(service: Service) -> None:
    with hermesctl_in(service.home, "top", NO_COLOR="1") as terminal:
        terminal.shows("telegram:42")
        terminal.type("q")
        assert terminal.ends() == 0
    assert b"\x1b[36m" not in terminal.raw
