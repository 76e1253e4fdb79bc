"""The reading commands: JSON as the supervisor gave it, tables that a person can read at any width."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from ipc.messages import Done, Queue, Request, Show, Subscribe, Subscribed, Table
from tests.hermesctl.hand import ROOT, environment, hermesctl
from tests.hermesctl.peer import Peer, opened, tables

STATUS: dict[str, Any] = {
    "version": "0.1.0", "pid": 4242, "state": "ready", "epoch": 7, "uptime_seconds": 11520.5,
    "home": "/srv/hermes", "model": "embedded SmolLM2-135M, ready", "cell": "pidns", "seats": 4, "spares": 1,
    "idle": 3, "busy": 2, "queued": 5, "running": 2, "waiting": 6, "sessions_live": 9, "turns_ended": 120,
    "memory_bytes": 45_000_000, "hints": ["the embedded model is a demonstration"], "unheard_of": 1,
}  # fmt: skip
WORKERS: list[dict[str, Any]] = [
    {
        "seat": 0, "incarnation": 12, "pid": 5001, "state": "busy", "session": "telegram:a-rather-long-name",
        "turn": "telegram:a-rather-long-name/31", "memory_bytes": 2_000_000, "cpu_percent": 12.4,
        "age_seconds": 75, "turns": 4, "process": 0.2, "loop": 0.3, "progress": 1.5, "words": "",
    },
    {"seat": 1, "incarnation": 13, "pid": None, "state": "failed", "words": "No module named 'left_pad'"},
]  # fmt: skip
ROWS: dict[str, list[dict[str, Any]]] = {
    "status": [STATUS],
    "workers": WORKERS,
    "sessions": [
        {"session": "demo", "state": "occupied", "turn": "demo/3", "waiting": 2, "seq": 40, "last_at": 1.0},
    ],
    "turns": [
        {"turn": "demo/3", "session": "demo", "state": "failed", "attempts": 3, "worker": 0, "pid": 1,
         "opened_at": 1.0, "ended_at": 2.0, "error": "lost three times"},
    ],
    "services": [
        {"service": "model", "state": "failed", "pid": None, "address": "", "detail": "no weights",
         "hint": "hermesctl models pull", "restarts": 2, "age_seconds": 3.0},
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", [name for name in ROWS if name != "status"])
def test_json_is_an_array_of_the_rows(tmp_path: Path, what: str) -> None:
    with opened(tmp_path, tables(**ROWS)):
        result = hermesctl(tmp_path, what, "--json")
    assert (result.code, json.loads(result.out)) == (0, ROWS[what])


@pytest.mark.parametrize("what", [name for name in ROWS if name != "status"])
def test_no_rows_are_an_empty_array_or_a_sentence(tmp_path: Path, what: str) -> None:
    with opened(tmp_path, tables()):
        assert json.loads(hermesctl(tmp_path, what, "--json").out) == []
        assert hermesctl(tmp_path, what).out.startswith("no ")


def test_status_is_one_object(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)):
        assert json.loads(hermesctl(tmp_path, "status", "--json").out) == STATUS


def test_status_reads_like_sentences(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)):
        out = hermesctl(tmp_path, "status").out
    assert out.startswith("ready · hermes supervisor 0.1.0 · pid 4242 · up 3h 12m\n")
    assert "2 busy · 3 idle · 4 seats + 1 spare" in out
    assert "43 MiB" in out
    assert "hint: the embedded model is a demonstration" in out


def test_a_long_value_of_status_is_folded_to_the_terminal(tmp_path: Path) -> None:
    with opened(tmp_path, tables(status=[{**STATUS, "cell": "namespaces of its own " * 8}])):
        screen = on_terminal(tmp_path, 70, "status", NO_COLOR="1")
    assert max(map(len, screen.splitlines())) <= 70
    assert "            namespaces" in screen or "            of its own" in screen


def test_missing_values_are_dashes_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    with opened(tmp_path, tables(status=[{"state": "starting", "new": 1}])):
        result = hermesctl(tmp_path, "status")
    assert (result.code, "pid –" in result.out, "new" in result.out) == (0, True, False)


def test_a_piped_table_is_complete_and_without_colour(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)):
        head, busy, failed = hermesctl(tmp_path, "workers").out.splitlines()
    assert head.split()[:4] == ["SEAT", "PID", "STATE", "SESSION"]
    assert "telegram:a-rather-long-name/31" in busy
    assert "1.9 MiB" in busy
    assert "12%" in busy
    assert "1m 15s" in busy
    assert failed.endswith("No module named 'left_pad'")
    assert "\x1b" not in head + busy + failed


def test_services_show_the_remedy(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)):
        assert hermesctl(tmp_path, "services").out.endswith("model: hermesctl models pull\n")


def test_filters_reach_the_supervisor(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)) as peer:
        hermesctl(tmp_path, "turns", "--state", "running", "--session", "demo", "--limit", "7")
        assert peer.requests(Show) == [Show("turns", session="demo", state="running", limit=7)]


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
@pytest.mark.parametrize("what", ["workers", "turns", "sessions", "services"])
def test_a_table_fits_the_terminal(tmp_path: Path, what: str, columns: int) -> None:
    with opened(tmp_path, tables(**ROWS)):
        screen = on_terminal(tmp_path, columns, what)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", screen).splitlines()
    assert "\x1b[" in screen
    assert max(map(len, bare)) <= columns
    assert "STATE" in bare[0]


def test_no_color_is_respected_on_a_terminal(tmp_path: Path) -> None:
    with opened(tmp_path, tables(**ROWS)):
        assert "\x1b" not in on_terminal(tmp_path, 100, "workers", NO_COLOR="1")


def test_text_of_others_cannot_command_the_terminal(tmp_path: Path) -> None:
    rows = [{"session": "evil\x1b]0;owned\x07", "state": "free"}]
    with opened(tmp_path, tables(sessions=rows)):
        assert "\x1b" not in on_terminal(tmp_path, 100, "sessions", NO_COLOR="1")


def test_a_queue_is_listed_and_changed(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Any]:
        if isinstance(request, Subscribe):
            return [Subscribed(1)]
        assert isinstance(request, Queue)
        rows = ({"message": "m_5", "busy": "queue", "at": 1.0, "text": "and then?", "held": False},)
        return [Table(rows) if request.act == "list" else Done(note=f"{request.act} it was")]

    with opened(tmp_path, reply) as peer:
        assert "m_5" in hermesctl(tmp_path, "queue", "demo").out
        assert json.loads(hermesctl(tmp_path, "queue", "demo", "--json").out)[0]["message"] == "m_5"
        assert hermesctl(tmp_path, "queue", "demo", "drop", "m_5").out == "drop it was\n"
        assert hermesctl(tmp_path, "queue", "demo", "drop").code == 2
        assert [request.act for request in peer.requests(Queue)] == ["list", "list", "list", "drop"]


def on_terminal(home: Path, columns: int, *line: str, **more: str) -> str:
    """What a command writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "hermesctl", "--home", str(home), *line],
        stdout=theirs,
        env=environment(TERM="xterm-256color", **more),
        cwd=ROOT,
    )
    os.close(theirs)
    screen = b""
    try:
        while piece := os.read(ours, 4096):
            screen += piece
    except OSError:
        # Linux tells the end of a terminal by EIO.
        pass
    os.close(ours)
    assert process.wait() == 0
    return screen.decode()
