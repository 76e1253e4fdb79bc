"""Text of strangers, in every field and every command: it is shown, and never acts on the terminal."""

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermesctl.main import COMMANDS
from hermesctl.neutral import Pieces, json_text, neutral
from ipc.messages import (
    Accepted,
    Answer,
    Care,
    Delta,
    Done,
    Interrupt,
    Noted,
    Queue,
    Refused,
    Reload,
    Request,
    Retry,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
)
from tests.hermesctl.hand import environment, hermesctl
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.terminal import hermesctl_in
from tests.house_rules import python_sources

# Clipboard, title, hyperlink, cursor, colour, C1, backspace, delete; directions of writing; shapeless, tags.
EVIL = (
    "EVIL\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b]8;;http://evil\x1b\\link\x1b[2J\x1b[1A"
    "\x1b[31mRED\x9b31m\x85\b\x7f\x00"
    "\u202egnp.exe\u202d\u202a\u202b\u202c\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
    "\u200b\u2060\ufeff\U000e0041END"
)
AT = 1731700000.1
KILLED = {"processes": 4, "all_dead": True, "ms": 5, "how": EVIL}
# A row that serves every table: what is a number there is one here, the rest is text of strangers.
ROW: dict[str, Any] = {
    **dict.fromkeys(
        (
            "session", "turn", "state", "error", "service", "detail", "hint", "address", "words", "version",
            "model", "cell", "home", "message", "kind", "busy", "text", "question", "by", "cursor", "key",
            "applies", "file", "name",
        ),
        EVIL,
    ),
    **dict.fromkeys(("seq", "pid", "seat", "waiting", "attempts", "seats", "idle", "spares", "running"), 1),
    **dict.fromkeys(("opened_at", "ended_at", "last_at", "at", "oldest_at", "newest_at"), AT),
    **dict.fromkeys(("bytes", "free_bytes", "log_bytes", "turns_open", "schema", "drain_seconds"), 1),
    "hints": [EVIL],
    "labels": [EVIL],
    "host": EVIL,
    "other_hosts": [{"name": EVIL, "state": EVIL}],
    "late": [{"what": EVIL, "seconds": 2.0, "detail": EVIL}],
    "choices": [EVIL],
    "rows": {EVIL: 1},
    "findings": [EVIL],
    "ok": False,
}  # fmt: skip
STORY: list[dict[str, Any]] = [
    {"kind": "turn", "id": EVIL, "state": EVIL, "attempts": 2},
    {"type": "message.accepted", "at": AT, "message": EVIL, "kind": EVIL, "busy": EVIL, "text": EVIL},
    {"type": "tool.started", "at": AT, "name": EVIL, "summary": EVIL},
    {"type": "attempt.lost", "at": AT, "attempt": 1, "reason": EVIL},
    {"type": "turn.interrupted", "at": AT, "turn": EVIL, "by": EVIL, "partial": EVIL, "killed": KILLED},
    {"type": EVIL, "at": AT, EVIL: EVIL},
]


def feed() -> list[Answer]:
    """One turn with everything that can be said about it."""
    story = Story(seq=1)
    return [
        story.event("message.accepted", message="m_1", kind="text", busy="queue", text=EVIL),
        story.event("transcript.ready", message="m_1", text=EVIL),
        story.event("turn.opened", turn="demo/1", messages=["m_1"]),
        story.event("attempt.opened", turn="demo/1", attempt=1, worker=0, pid=1),
        Noted("demo/1", 1, EVIL),
        Delta("demo", "demo/1", 1, 0, EVIL),
        story.event("tool.started", turn="demo/1", call=EVIL, name=EVIL, summary=json.dumps({EVIL: EVIL})),
        story.event("tool.finished", turn="demo/1", call=EVIL, name=EVIL, ok=False, ms=1),
        story.event(
            "question.asked", turn="demo/1", question=EVIL, kind="clarify", text=EVIL, choices=[EVIL]
        ),
        story.event("question.answered", turn="demo/1", question=EVIL, text=EVIL, by=EVIL),
        story.event("attempt.lost", turn="demo/1", attempt=1, reason=EVIL),
        story.event(EVIL, turn="demo/1", **{EVIL: EVIL}),
        story.event("turn.failed", turn="demo/1", error=EVIL, hint=EVIL),
    ]


def strangers(peer: Peer, request: Request) -> list[Answer]:
    """A supervisor all of whose words come from strangers."""
    match request:
        case Subscribe():
            return [Subscribed(1)]
        case Submit() | Retry():
            peer.say(Subscribe, *feed())
            return [Accepted("m_1", 1, note=EVIL)]
        case Interrupt():
            peer.say(Subscribe, Story(seq=1).event("turn.interrupted", turn="demo/1", by=EVIL, killed=KILLED))
            return [Done(("demo/1",), EVIL)]
        case Show(what="story"):
            return [Table(tuple(STORY))]
        case Show(what="metrics"):
            return [Table(({"text": f'hermes_x{{y="{EVIL}"}} 1\n'},))]
        case Show() | Reload() | Queue(act="list") | Care():
            return [Table((ROW,))]
    return [Done((), EVIL)]


def refusing(peer: Peer, request: Request) -> list[Answer]:
    return [Refused(EVIL, EVIL)]


# How each command is called; a command that is missing here fails the test.
LINES: dict[str, tuple[str, ...]] = {
    "status": (), "drain": (), "undrain": (), "scale": ("2",), "send": ("demo", "hello"),
    "interrupt": ("demo",), "queue": ("demo",), "questions": (), "answer": ("demo/1#q", "yes"),
    "approve": ("demo/1#q",), "deny": ("demo/1#q",), "retry": ("demo/1",), "cursors": (), "sessions": (),
    "turns": (), "workers": (), "services": (), "hosts": (), "agents": ("list",), "top": ("--once",),
    "reload": (), "metrics": (),
    "why": ("demo/1", "--text"), "journal": ("check",), "logs": (), "doctor": (),
}  # fmt: skip
# These never end by themselves and have tests of their own below, or print nothing that others wrote.
ELSEWHERE = {"chat", "tail", "traces"}
OWN_WORDS = {"run", "start", "stop", "restart", "install", "uninstall", "models", "completion", "version"}
OWN_WORDS |= {"tokens", "pair"}
OWN_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def check(raw: str, colours: re.Pattern[str] | None = None) -> None:
    """Nothing but text, line breaks, tabs and, where they are expected, colours of our own."""
    text = colours.sub("", raw) if colours else raw
    found = {
        f"U+{ord(one):04X}"
        for one in text
        if unicodedata.category(one) in ("Cc", "Cf", "Cs") and one not in "\n\t\r"
    }
    assert found == set(), raw


def shown(text: str) -> bool:
    return "EVIL�]52;" in text


def home_of(tmp_path: Path) -> Path:
    """With a log that strangers wrote to."""
    home = tmp_path / "home"
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "supervisor.log").write_text(f"{AT:.3f} turn.opened session={EVIL}\n")
    return home


def test_h20_no_command_is_forgotten_here() -> None:
    assert set(LINES) | ELSEWHERE | OWN_WORDS == set(COMMANDS)


@pytest.mark.parametrize("command", LINES)
@pytest.mark.parametrize("reply", [strangers, refusing], ids=lambda reply: reply.__name__)
def test_h20_no_command_prints_what_acts_on_a_terminal(
    tmp_path: Path, command: str, reply: Callable[[Peer, Request], list[Answer]]
) -> None:
    home = home_of(tmp_path)
    with opened(home, reply):
        piped = hermesctl(home, command, *LINES[command])
    check(piped.out)
    check(piped.err)
    assert shown(piped.out + piped.err), piped


@pytest.mark.parametrize(
    "command", ["status", "send", "why", "sessions", "turns", "doctor", "logs", "top", "queue"]
)
def test_h20_on_a_terminal_only_colours_of_our_own_are_printed(tmp_path: Path, command: str) -> None:
    home = home_of(tmp_path)
    with opened(home, strangers), hermesctl_in(home, command, *LINES[command], rows=100) as terminal:
        terminal.ends()
        check(terminal.raw.decode(), OWN_COLOUR)
        assert "\x1b[31mRED" not in terminal.raw.decode()


@pytest.mark.parametrize("command", ["sessions", "send", "top", "queue", "reload", "turns", "why"])
def test_h20_json_is_exact_and_yet_harmless(tmp_path: Path, command: str) -> None:
    with opened(tmp_path, strangers):
        result = hermesctl(tmp_path, command, *LINES[command], "--json")
    check(result.out)
    lines = result.out.splitlines() if command in ("send", "top") else [result.out]
    assert contains([json.loads(line) for line in lines])


def contains(value: Any) -> bool:
    """Whether the text of strangers is somewhere in it, unchanged."""
    if isinstance(value, dict):
        return any(contains(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return any(map(contains, value))
    return bool(value == EVIL)


def test_h20_tail_prints_nothing_that_acts_on_a_terminal(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Subscribe):
            return [Subscribed(1), *feed()]
        return []

    with opened(tmp_path, reply), hermesctl_in(tmp_path, "tail", "demo") as terminal:
        terminal.shows("turn.failed")
        check(terminal.raw.decode(), OWN_COLOUR)
        assert "\x1b[31mRED" not in terminal.raw.decode()


@pytest.mark.parametrize("line", [("chat", "demo"), ("top",)], ids=lambda line: str(line[0]))
def test_h20_screens_show_what_strangers_wrote_and_draw_nothing_of_it(
    tmp_path: Path, line: tuple[str, ...]
) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Subscribe):
            return [Subscribed(1), *feed()]
        return strangers(peer, request)

    with opened(tmp_path, reply), hermesctl_in(tmp_path, *line, columns=120, rows=60) as terminal:
        terminal.shows("EVIL")
        if line[0] == "chat":
            terminal.type("/session ")
            terminal.type("\t")
            terminal.shows("/session")
            terminal.type("\x1b[200~pasted\u202etext\x1b[201~")
            terminal.shows("pasted�text")
        raw = terminal.raw.decode(errors="replace")
    # What a screen draws with, and what no screen of ours uses.
    for sequence in ("\x1b]52", "\x1b]0;title", "\x1b]8;", "\x9b"):
        assert sequence not in raw, sequence
    directions = [f"U+{ord(one):04X}" for one in raw if unicodedata.bidirectional(one) in _DIRECTIONS]
    assert directions == []


_DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def test_h20_a_shell_is_offered_no_name_that_acts_on_a_terminal(tmp_path: Path) -> None:
    rows = ({**ROW, "session": EVIL}, {**ROW, "session": "demo-שלום", "state": "free"})
    asked = {
        "_HERMESCTL_COMPLETE": "bash_complete",
        "COMP_LINE": f"hermesctl --home {tmp_path} send ",
        "COMP_WORDBREAKS": "",
    }
    with opened(tmp_path, lambda peer, request: [Table(rows)]):
        offered = hermesctl(tmp_path, cwd=None, **asked).out
    assert offered == "plain,demo-שלום\n"


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם, C++ \u200fוגם HTML",
        "مرحبا \u061c123",
        "می\u200cخواهم",
        "क्\u200dष",
        "ភាសា\u200bខ្មែរ",
        "👩\u200d💻 👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "tabs\tand\nlines",
        "naïve café, 東京, €5",
    ],
)
def test_h20_what_people_write_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text
    pieces = Pieces()
    assert "".join(map(pieces.take, text)) + pieces.end() == text
    assert json.loads(json_text({"text": text})) == {"text": text}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ad\u200bmin", "ad�min"),
        ("admin\u200d", "admin�"),
        ("é\u200b", "é�"),
        ("é\u200b\u200c\u200dé", "é���é"),
        ("a\u200fb", "a�b"),
        ("safe\revil", "safeevil"),
        ("one\u2028two", "one\ntwo"),
        ("soft\xadhyphen", "soft-hyphen"),
        ("half \ud800 character", "half � character"),
        ("\U000e0041\U000e0042", "��"),
    ],
)
def test_h20_what_hides_is_shown(text: str, expected: str) -> None:
    assert neutral(text) == expected
    pieces = Pieces()
    assert "".join(map(pieces.take, text)) + pieces.end() == expected


def test_h20_the_environment_of_these_tests_is_plain() -> None:
    """Otherwise colours would be missing, and what is checked above with them."""
    assert "NO_COLOR" not in environment()


def test_h20_no_writer_goes_round_the_guarded_streams() -> None:
    """Only what draws screens, bars and fleeting lines of its own takes the bare streams."""
    around = re.compile(r"__std(out|err)__|\.buffer\.write|os\.write\([12],")
    found = {
        source.path
        for source in python_sources()
        if source.room == "hermesctl" and around.search(source.text)
    }
    assert found == {
        "hermesctl/chat/screen.py",
        "hermesctl/commands/models.py",
        "hermesctl/neutral.py",
        "hermesctl/answer_stream.py",
    }
