"""One table of what ends how: the exit code, one sentence for the fault and one for the remedy."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.messages import Accepted, Answer, Event, Refused, Request, Show, Submit, Subscribe, Subscribed, Table
from tests.hermesctl.hand import hermesctl
from tests.hermesctl.peer import Peer, Story, opened

Reply = Callable[[Peer, Request], list[Answer]]


def refuse(peer: Peer, request: Request) -> list[Answer]:
    return [Refused("not now", "try later")]


def nothing(peer: Peer, request: Request) -> list[Answer]:
    return [Subscribed(1) if isinstance(request, Subscribe) else Table(())]


def nobody(peer: Peer, request: Request) -> list[Answer]:
    return [Subscribed(0) if isinstance(request, Subscribe) else Table(())]


def ends_with(type: str, **fields: object) -> Reply:
    """A turn that opens for whatever is said, and ends so."""

    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(())]
        if isinstance(request, Submit):
            story = Story(request.session)
            opened_turn = story.event("turn.opened", turn="demo/1", messages=["m_1"])
            ending: Event = story.event(type, turn="demo/1", **fields)
            peer.say(Subscribe, opened_turn, ending)
            return [Accepted("m_1", 0)]
        return [Subscribed(0)]

    return reply


CODES: list[tuple[str, tuple[str, ...], Reply | None, int]] = [
    ("done", ("version",), None, 0),
    ("nothing to show", ("sessions",), nothing, 0),
    ("a turn that was answered", ("send", "demo", "x"), ends_with("turn.done", text="yes"), 0),
    ("a command that is not known", ("statsu",), None, 2),
    ("an option that is not known", ("status", "--purple"), None, 2),
    ("a value that is not allowed", ("turns", "--state", "sleepy"), None, 2),
    ("an argument that is missing", ("why",), None, 2),
    ("no terminal for top", ("top",), nothing, 2),
    ("a turn that was interrupted", ("send", "demo", "x"), ends_with("turn.interrupted", by="t"), 3),
    ("a turn that failed", ("send", "demo", "x"), ends_with("turn.failed", error="no", hint="yes"), 4),
    ("a refused request", ("interrupt", "demo"), refuse, 5),
    ("a story nobody knows", ("why", "demo/9"), nothing, 5),
    ("a session nobody knows", ("interrupt", "demo"), nobody, 5),
    ("nobody there", ("status",), None, 69),
    ("nobody there for top", ("top", "--once"), None, 69),
]


@pytest.mark.parametrize(("line", "reply", "code"), [row[1:] for row in CODES], ids=[row[0] for row in CODES])
def test_a_command_ends_with_its_code(
    tmp_path: Path, line: tuple[str, ...], reply: Reply | None, code: int
) -> None:
    if reply is None:
        result = hermesctl(tmp_path, *line)
    else:
        with opened(tmp_path, reply):
            result = hermesctl(tmp_path, *line)
    assert result.code == code, result
    assert "Traceback" not in result.err
    if code not in (0, 3):
        assert "hint: " in result.err


def test_settings_and_a_second_supervisor_end_with_codes_of_their_own(tmp_path: Path) -> None:
    for text, fault in (
        ("[nonsense]\n", "[nonsense] is not known"),
        ("[gateway]\nlisten = '0.0.0.0:8790'\n", "is a public address without TLS or a proxy"),
        ("[agents.x]\nkind = 'hermes'\n", "[agents.x] has no python"),
    ):
        (tmp_path / "hermes.toml").write_text(text)
        result = hermesctl(tmp_path, "run")
        assert result.code == 78
        assert fault in result.err
        assert "hint: " in result.err
    (tmp_path / "hermes.toml").write_text("")
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = hermesctl(tmp_path, "run")
    assert result.code == 75
    assert "hint: " in result.err
