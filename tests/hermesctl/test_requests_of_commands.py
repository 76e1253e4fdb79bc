"""What commands ask of the supervisor and of other processes: every option arrives, and from any folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from hermesctl.commands import logs, models
from hermesctl.commands.scale import _request
from hermesctl.commands.start import _ended_early, _last_lines
from hermesctl.exit_codes import Exit
from hermesctl.weight_catalogue import find
from ipc.bounds import ROWS_MAX
from ipc.messages import (
    Accepted,
    Answer,
    Care,
    Done,
    Interrupt,
    Reload,
    Request,
    Respond,
    Retry,
    Scale,
    Seen,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
)
from tests.hermesctl.hand import Running, hermesctl
from tests.hermesctl.peer import Peer, Story, opened, tables


def obliging(peer: Peer, request: Request) -> list[Answer]:
    match request:
        case Submit() | Retry():
            return [Accepted("m_1", 7)]
        case Show(what="sessions"):
            return [Table(({"session": "demo", "seq": 3},))]
        case Show() | Reload():
            return [Table(())]
        case Care():
            return [Table(({"file": "x", "bytes": 1},))]
        case Subscribe():
            return [Subscribed(3)]
    return [Done(note="done")]


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        (("interrupt", "demo", "--expect-turn", "demo/3"), Interrupt("demo", "hermesctl", "demo/3")),
        (("interrupt", "demo", "--drop"), Interrupt("demo", "hermesctl", drop=True)),
        (("reload", "--yes"), Reload(True)),
        (("reload",), Reload(False)),
        (
            ("journal", "prune", "--older", "30d", "--keep-bytes", "1GB"),
            Care("prune", older="30d", keep="1GB"),
        ),
        (("journal", "export", "--session", "demo"), Care("export", session="demo")),
        (("workers",), Show("workers", limit=ROWS_MAX)),
        (("cursors", "--limit", "7"), Show("cursors", limit=7)),
        (("questions", "--limit", "7"), Show("questions", limit=7)),
        (("answer", "demo/1#1", "2"), Show("questions", limit=10_000)),
        (("answer", "demo/1#1", "2"), Respond("demo/1#1", "2", "hermesctl")),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_options_reach_the_supervisor(tmp_path: Path, line: tuple[str, ...], request_: Any) -> None:
    with opened(tmp_path, obliging) as peer:
        assert hermesctl(tmp_path, *line).code == 0
        assert request_ in peer.requests(type(request_))


def test_a_key_of_the_caller_is_the_key_of_the_message(tmp_path: Path) -> None:
    with opened(tmp_path, obliging) as peer:
        hermesctl(tmp_path, "send", "demo", "x", "--no-wait", "--id", "order-17")
        assert [each.key for each in peer.requests(Submit)] == ["order-17"]


def test_a_session_may_have_a_slash_in_its_name(tmp_path: Path) -> None:
    with opened(tmp_path, obliging) as peer:
        hermesctl(tmp_path, "retry", "team/demo/3", "--no-wait")
        assert [each.session for each in peer.requests(Subscribe)] == ["team/demo"]


def test_the_session_of_a_turn_that_is_not_there_is_named_whole(tmp_path: Path) -> None:
    with opened(
        tmp_path, lambda peer, asked: [Subscribed(0)] if isinstance(asked, Subscribe) else [Table(())]
    ):
        result = hermesctl(tmp_path, "why", "team/demo/3")
    assert (result.code, "there is no session “team/demo”" in result.err) == (5, True)


def test_a_copy_of_the_journal_is_written_where_the_caller_is(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    with opened(tmp_path / "home", obliging) as peer:
        hermesctl(tmp_path / "home", "journal", "backup", "copy.db", cwd=there)
        assert [each.file for each in peer.requests(Care)] == [str(there / "copy.db")]


@pytest.mark.parametrize(
    ("amount", "asked"),
    [(None, Scale()), ("8", Scale(seats=8)), ("2/cpu", Scale(per_cpu=2.0)), ("0.5/cpu", Scale(per_cpu=0.5))],
)
def test_an_amount_is_of_seats_or_of_seats_for_each_cpu(amount: str | None, asked: Scale) -> None:
    assert _request(amount) == asked


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (("scale", "1.5"), "AMOUNT takes a number of seats such as 8 or 2/cpu, not “1.5”"),
        (("tail", "--after", "0"), "--after counts within one session: name the SESSION"),
        (("interrupt", "--all", "--expect-turn", "demo/1"), "--expect-turn belongs to one SESSION"),
        (("doctor", "--agent", "mine"), "--agent belongs to --isolation"),
        (("agents", "try", "mine", " "), "the message is empty"),
        (("traces", "--to", "127.0.0.1:4318"), "--to takes an address such as http://"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_makes_no_sense_together_is_wrong_usage(
    tmp_path: Path, line: tuple[str, ...], fault: str
) -> None:
    result = hermesctl(tmp_path, *line)
    assert (result.code, fault in result.err.replace("\n", " ")) == (2, True)


def test_run_passes_the_choice_of_the_unit_on_and_leaves_the_folder_of_the_caller(tmp_path: Path) -> None:
    folder = tmp_path / "installed" / "supervisor"
    folder.mkdir(parents=True)
    for name in ("hermesctl", "ipc", "tests"):
        (folder.parent / name).symlink_to(Path(__file__).resolve().parents[2] / name)
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], os.getcwd(), sorted(set(os.environ) & {'LD_AUDIT', 'MY_KEY'})]))\n"
    )
    line = ("run", "--system")
    result = hermesctl(tmp_path / "home", *line, cwd=folder.parent, LD_AUDIT="", MY_KEY="x")
    assert json.loads(result.out) == [["--system"], "/", ["MY_KEY"]]


def test_hosts_are_named_where_there_are_several_and_a_filter_without_rows_is_said(tmp_path: Path) -> None:
    row = {"turn": "demo/1", "session": "demo", "state": "done"}
    with opened(tmp_path, tables(turns=[row, {**row, "host": "beta"}])):
        assert "beta" in hermesctl(tmp_path, "turns").out
    with opened(tmp_path, tables(turns=[row])):
        assert "HOST" not in hermesctl(tmp_path, "turns").out
    with opened(tmp_path, tables()):
        assert hermesctl(tmp_path, "turns", "--state", "poison").out == "no such turns\n"


def test_status_tells_what_is_late_what_asks_and_which_host_is_not_open(tmp_path: Path) -> None:
    row = {
        "state": "ready", "asking": 2, "draining": True, "draining_since": 0, "running": 1, "host": "alpha",
        "late": [{"what": "commits", "seconds": 3.0, "detail": "the disk is slow"}],
        "questions": {"open": 2, "oldest_seconds": 60},
        "other_hosts": [{"name": "beta", "state": "open"}, {"name": "gamma", "state": "draining"}],
    }  # fmt: skip
    with opened(tmp_path, tables(status=[row])):
        out = hermesctl(tmp_path, "status").out
    with opened(tmp_path, tables(status=[{"state": "ready", "asking": 0}])):
        assert "asking" not in hermesctl(tmp_path, "status").out
    for words in (
        "late: commits for 3.0s: the disk is slow",
        "· 2 asking ·",
        "2 open, the oldest for 1m 0s",
        "no new turn begins; 1 still running",
        "alpha (this one) · beta · gamma draining\n",
    ):
        assert words in out


@pytest.mark.parametrize(("form", "both"), [((), "one 1\ntwo 2\n"), (("--json",), "[\n  1,\n  2\n]\n")])
def test_metrics_are_those_of_all_pages(tmp_path: Path, form: tuple[str, ...], both: str) -> None:
    rows = [{"text": "one 1\n", "samples": [1]}, {"text": "two 2\n", "samples": [2]}]
    with opened(tmp_path, tables(metrics=rows)):
        assert hermesctl(tmp_path, "metrics", *form).out == both


def test_the_cursor_of_a_tail_that_is_ended_is_where_it_was(tmp_path: Path) -> None:
    with opened(tmp_path, obliging) as peer:
        with Running(tmp_path, "tail", "demo", "--cursor", "bridge") as running:
            story = Story("demo", 3)
            events = [story.event("turn.opened", turn=f"demo/{n}", messages=["m_1"]) for n in (1, 2)]
            peer.say(Subscribe, *events)
            running.wait_for("demo/2 answers m_1")
            running.press_ctrl_c()
            running.end()
        # The one before the last was taken for shown before the last was printed.
        assert peer.requests(Seen)[-1] in (Seen("bridge", "demo", 4), Seen("bridge", "demo", 5))


def test_lines_of_the_log_are_counted_from_its_end_and_a_begun_one_waits(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\nbeg")
    with log.open("rb") as file:
        assert logs._last(file, 0) == []
    with log.open("rb") as file:
        assert logs._last(file, 1) == ["two"]
        assert file.read() == b"beg"


def test_a_supervisor_that_a_signal_ended_is_a_fault_and_no_code_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("the words of another start\n")
    begin = log.stat().st_size
    log.write_text(log.read_text() + "x" * 100_000 + "\nthe last words\n")
    assert [line[-14:] for line in _last_lines(log, begin)] == ["x" * 14, "the last words"]
    killed, chosen = (_ended_early(status, log, begin) for status in (-9, 78))
    assert (killed.code, "signal 9" in str(killed.fault)) == (Exit.BUG, True)
    assert (chosen.code, "exit code 78" in str(chosen.fault)) == (78, True)


def test_progress_without_a_terminal_is_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    weights = find("tiny.en")
    with models._progress(weights) as progress:
        for part in (0, 0.05, 0.1, 0.15, 0.1, 0.35, 1, 1.5):
            progress.advance_to(int(weights.size_bytes * part) + 1)
    assert capsys.readouterr().err.split()[1::3] == ["10", "30", "100"]
