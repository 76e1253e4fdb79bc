"""MCP servers of a worker, good and bad ones, as real processes and over real HTTP."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def play(scene: str, *rest: str) -> Any:
    told = subprocess.run(
        [sys.executable, "-m", "tests.worker.mcp_scene", scene, *rest],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "no JSON at all" not in told.stderr
    assert "noise" not in told.stderr
    return json.loads(told.stdout.splitlines()[-1])


def test_servers_that_cannot_be_used_are_left_out_with_a_note_and_the_others_stay() -> None:
    notes, later, names = play("faults")
    left_out = {note.split(" is left out: ")[0].removeprefix("the MCP server ") for note in notes}
    assert left_out == {
        "absent",
        "refused",
        "mute",
        "garbage",
        "exits",
        "the tool names__fine",
        "a tool of the MCP server names",
    }
    assert later == []
    assert {name.partition("__")[0] for name in names} == {"names", "noisy"}
    assert "names__fine" in names
    assert len([name for name in names if name.startswith("names__")]) == 1


def test_a_tool_has_the_class_of_its_hints_and_wrong_arguments_go_back_to_the_model() -> None:
    classes, told, huge = play("calls")
    wanted = {"s__add": "pure", "s__put": "idempotent", "s__die": "idempotent", "s__huge": "unsafe"}
    assert wanted.items() <= classes.items()
    assert told == [["3", True], ["a and b must be whole numbers", False], ["t0", True]]
    names_file, whole, shown = huge
    assert names_file
    assert whole == 3_000_000
    assert shown < 41_000


def test_a_server_that_dies_is_restarted_three_times() -> None:
    told, after = play("deaths")
    assert [text.rpartition(": ")[2] for text in told[:4]] == ["it ended during the call"] * 4
    assert told[4] == after == "error: the MCP server s: it has ended 4 times and is not started again"


def test_a_question_of_a_server_is_continued_with_its_state_or_asked_again() -> None:
    asked, continued, again = play("question")
    assert asked == ["Which seat?", ["aisle", "window"]]
    assert continued.startswith("booked window with state of ")
    assert again.startswith("booked aisle with state of ")


def test_a_server_outlives_the_attempt_and_is_not_in_a_folder_that_a_mount_covers() -> None:
    assert play("attempt_ends") == [True, "/", 0]


def test_a_server_at_an_address_gets_the_header_that_the_settings_name() -> None:
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/tool_server.py"), "http", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        with server.stdout as output:
            assert play("over_http", output.readline().strip()) == ["3", "Bearer t1"]
    finally:
        server.kill()
        server.wait()
