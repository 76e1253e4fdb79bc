"""A drain that is waited for: its time limit, the turns that are named, and a host that is slow to answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermesctl import draining, host_states
from hermesctl.commands import stop
from hermesctl.draining import drain_and_wait, named
from hermesctl.errors import CommandError
from hermesctl.host_states import ask_host
from ipc.bounds import ROWS_MAX
from ipc.messages import Answer, Done, Drain, Request, Show, Table
from tests.hermesctl.peer import Peer, opened


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (draining, host_states):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.001)


def ending_after(looks: int, **status: Any) -> Any:
    """A service whose one turn ends after so many looks at it."""
    rows: Iterator[list[dict[str, Any]]] = iter([[{"turn": "demo/1"}]] * looks)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Drain):
            return [Done(note="draining")]
        assert isinstance(request, Show)
        return [Table((status,) if request.what == "status" else tuple(next(rows, [])))]

    return reply


def test_a_limit_of_zero_is_a_limit(tmp_path: Path) -> None:
    with opened(tmp_path, ending_after(3)) as peer:
        assert drain_and_wait(peer.places, 0) == ["demo/1"]


def test_without_a_limit_it_is_waited_for_and_all_turns_are_looked_at(tmp_path: Path) -> None:
    with opened(tmp_path, ending_after(3)) as peer:
        assert drain_and_wait(peer.places, None) == []
        assert peer.requests(Show)[0] == Show("turns", state="running", limit=ROWS_MAX)


def test_a_stop_drains_as_long_as_the_settings_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, ending_after(3, drain_seconds=0)) as peer:
        assert stop._drain_first(peer.places, stop._BY_SETTINGS) == ["demo/1"]
    assert "not ended within 0 s, to go on at the next start: demo/1" in capsys.readouterr().err


def test_five_turns_are_named_and_more_are_counted() -> None:
    turns = [f"demo/{number}" for number in range(7)]
    assert named(turns[:5]) == "demo/0, demo/1, demo/2, demo/3, demo/4"
    assert named(turns) == "demo/0, demo/1, demo/2, demo/3, demo/4 and 2 more"


def told(*rows: dict[str, Any]) -> Any:
    """A service that shows the host in one of these states after the other."""
    states = iter(rows)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Table((next(states),)) if isinstance(request, Show) else Done(note="asked")]

    return reply


def test_a_host_that_drains_may_take_its_time_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_states, "_ANSWER_SECONDS", -1.0)
    host = {"name": "beta", "state": "draining"}
    with opened(tmp_path, told(*({**host, "running": number} for number in (2, 1, 0)))) as peer:
        assert ask_host(peer.places, "beta", Drain("beta"), "draining", True)["running"] == 0


def test_a_host_that_does_not_do_it_in_time_is_told_with_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_states, "_ANSWER_SECONDS", -1.0)
    with (
        opened(tmp_path, told({"name": "beta", "state": "open", "running": 1})) as peer,
        pytest.raises(CommandError, match="host “beta” was asked, and is open"),
    ):
        ask_host(peer.places, "beta", Drain("beta"), "draining")
