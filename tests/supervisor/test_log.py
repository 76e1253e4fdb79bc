"""The log's lines in each form, and its file, which is bounded without losing a line."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from supervisor.clock import Clock
from supervisor.core import effects, records
from supervisor.core.reasons import EndReason, Reason
from supervisor.core.state import TurnState, Verdict, Who
from supervisor.telemetry.log import Log

_WRITER = """
import os
import sys
from pathlib import Path
from supervisor.clock import Clock
from supervisor.telemetry.log import Log
from supervisor.telemetry.log_file import LogFile
log = Log(Clock())
file = LogFile(Path(sys.argv[1]), bytes_max=20_000)
log.wrote = file.wrote
for number in range(int(sys.argv[2])):
    log.write("line.written", number=number)
print("the end", file=sys.stderr)
print("open:", *sorted(os.listdir("/proc/self/fd")), flush=True)
"""


def write_lines(path: Path, count: int, opened: Path | None = None) -> None:
    """As `hermesctl start` does: the file is both standard output and standard error."""
    with (opened or path).open("ab") as log:
        command = [sys.executable, "-c", _WRITER, str(path), str(count)]
        subprocess.run(command, stdout=log, stderr=log, check=True, timeout=60)


def numbers(*paths: Path) -> list[int]:
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return [int(line.rpartition("=")[2]) for line in lines if "line.written" in line]


def test_a_log_in_its_own_place_is_set_aside_and_no_line_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    write_lines(log, 1200)
    older = [tmp_path / f"supervisor.log.{number}" for number in (2, 1)]
    assert numbers(*older, log) == list(range(1200))
    # Both streams are in the new file, and nothing else is open: 3 is the listing itself.
    assert log.read_text().endswith("the end\nopen: 0 1 2 3\n")
    assert all(path.stat().st_size < 30_000 for path in (*older, log))


def test_only_so_many_older_files_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    write_lines(log, 4000)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [
        "supervisor.log",
        *(f"supervisor.log.{number}" for number in (1, 2, 3)),
    ]
    kept = numbers(*(tmp_path / name for name in reversed(files[1:])), log)
    assert kept == list(range(kept[0], 4000))


def test_a_log_that_somebody_else_opened_elsewhere_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.log"
    write_lines(tmp_path / "supervisor.log", 1200, opened=elsewhere)
    assert numbers(elsewhere) == list(range(1200))
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere.log"]


@pytest.mark.parametrize(
    "value", ["plain", "two words", 'a "quote"', "a=b", "line\nbreak", "", "\x1b[31mred"]
)
def test_a_line_stays_one_line_whatever_a_value_holds(value: str) -> None:
    forms = iter(("logfmt", "json"))
    written = io.StringIO()
    log = Log(Clock(), written, lambda: next(forms))
    log.write("session.held", session=value, waiting=2)
    log.write("session.held", session=value, waiting=2)
    assert written.getvalue().count("\n") == 2
    assert "\x1b" not in written.getvalue()
    line = json.loads(written.getvalue().splitlines()[1])
    assert (line["event"], line["session"], line["waiting"]) == ("session.held", value, 2)


@pytest.mark.parametrize("sign", ["\x9b", "\u202e", "\u2066", "\u200b", "\u2028", "\ud800"])
def test_h20_what_acts_on_a_terminal_is_escaped_and_other_letters_are_not(sign: str) -> None:
    written = io.StringIO()
    Log(Clock(), written).write("turn.opened", session=f"demo{sign}", message="שלום")
    assert sign not in written.getvalue()
    assert f"\\u{ord(sign):04x}" in written.getvalue()
    assert "message=שלום" in written.getvalue()


def test_lines_for_journald_have_a_priority_instead_of_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        log = Log(Clock(), stream)
        log.write("turn.done", seq=1)
        log.write("turn.failed", seq=2)
        log.write("journal.failed", error="no room")
    assert (tmp_path / "stream").read_text().splitlines() == [
        "<6>turn.done seq=1",
        "<4>turn.failed seq=2",
        '<3>journal.failed error="no room"',
    ]


def test_a_decision_is_a_line_for_each_event_and_each_process_without_any_text() -> None:
    written = io.StringIO()
    writes: list[None] = []
    log = Log(Clock(), written)
    log.wrote = lambda: writes.append(None)
    told: dict[str, Any] = {"session": "s", "at": 1.0}
    stopped = Verdict(TurnState.INTERRUPTED, "m_2")
    decision = effects.Decision(
        (
            records.MessageAccepted(
                **told, seq=1, message="m_1", key="", kind="text", text="a secret", busy="queue"
            ),
            # Of no type: it is no event.
            records.AttemptStopped(**told, seq=0, turn="s/1", attempt=1, verdict=stopped),
        ),
        (
            effects.StartWorker(0, 7, "default"),
            effects.AssignTurn(Who(1, 0, 7), "s", "s/1", 1, "default", ()),
            effects.KillWorker(1, 8, Reason(EndReason.INTERRUPT)),
        ),
        None,
    )
    log.decided([decision])
    assert [line.partition(" ")[2] for line in written.getvalue().splitlines()] == [
        "message.accepted session=s seq=1 message=m_1 kind=text busy=queue",
        "worker.started worker=0 incarnation=7 agent=default",
        "worker.killed worker=1 incarnation=8 reason=interrupt why=interrupt",
    ]
    assert writes == [None]
    # Nothing to tell is no write.
    log.decided([effects.Decision((), (), None)])
    assert writes == [None]


def test_letters_of_all_languages_stay_readable_beside_blanks() -> None:
    written = io.StringIO()
    Log(Clock(), written).write("session.held", session="zwei Wörter")
    assert 'session="zwei Wörter"' in written.getvalue()


def test_a_stream_that_takes_nothing_does_not_stop_the_service() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    writes: list[None] = []
    log = Log(Clock(), Full())
    log.wrote = lambda: writes.append(None)
    log.write("session.held")
    assert writes == []


def test_an_empty_value_is_written_as_one() -> None:
    written = io.StringIO()
    Log(Clock(), written).write("session.held", session="", waiting=1)
    assert written.getvalue().endswith(' session.held session="" waiting=1\n')


def test_lines_of_json_for_journald_have_no_time_and_any_value_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        Log(Clock(), stream, lambda: "json").write("folder.back", path=Path("/a"))
    assert (tmp_path / "stream").read_text() == '<6>{"event": "folder.back", "path": "/a"}\n'
