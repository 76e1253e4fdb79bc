"""A session that does not exist: named with its nearest neighbour and refused; send and chat begin one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.messages import (
    Accepted,
    Answer,
    Care,
    Done,
    Interrupt,
    Request,
    Show,
    Submit,
    Subscribe,
    Subscribed,
    Table,
)
from tests.hermesctl.hand import Running, hermesctl
from tests.hermesctl.peer import Peer, Story, opened

LINES = [
    ("interrupt", "dmeo"),
    ("interrupt", "dmeo", "--json"),
    ("queue", "dmeo"),
    ("queue", "dmeo", "clear"),
    ("queue", "dmeo", "resume"),
    ("tail", "dmeo"),
    ("tail", "dmeo", "--after", "0", "--cursor", "bridge"),
    ("turns", "--session", "dmeo"),
    ("cursors", "dmeo"),
    ("why", "dmeo/1"),
    ("retry", "dmeo/1"),
    ("journal", "export", "--session", "dmeo"),
]


def alone(peer: Peer, request: Request) -> list[Answer]:
    """A supervisor that knows one session, called demo."""
    match request:
        case Show(what="sessions"):
            return [Table(({"session": "demo", "seq": 3},))]
        case Subscribe(session="demo"):
            return [Subscribed(3)]
        case Subscribe():
            return [Subscribed(0)]
        case Interrupt():
            return [Done(note="nothing runs in session demo")]
        case Submit():
            return [Accepted("m_1", 1)]
        case Show() | Care():
            return [Table(())]
    return [Table(()) if getattr(request, "act", "") == "list" else Done(note="1 go on")]


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    with opened(home, alone):
        yield home


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_what_reads_or_acts_on_it_is_refused(supervisor: Path, line: tuple[str, ...]) -> None:
    result = hermesctl(supervisor, *line)
    assert (result.code, result.out) == (5, "")
    assert result.err == "hermesctl: there is no session “dmeo”\n  hint: did you mean demo?\n"


def test_without_a_neighbour_the_list_is_named(supervisor: Path) -> None:
    result = hermesctl(supervisor, "interrupt", "telegram:42")
    assert result.code == 5
    assert result.err.endswith("hint: hermesctl sessions lists them; hermesctl send begins one\n")


def test_one_that_exists_and_has_nothing_is_no_fault(supervisor: Path) -> None:
    assert hermesctl(supervisor, "queue", "demo").out == "nothing waits in demo\n"
    assert hermesctl(supervisor, "turns", "--session", "demo").code == 0
    assert hermesctl(supervisor, "interrupt", "demo").out == "nothing runs in session demo\n"


def test_nothing_is_done_to_it_first(tmp_path: Path) -> None:
    with opened(tmp_path, alone) as peer:
        assert hermesctl(tmp_path, "interrupt", "dmeo").code == 5
        assert peer.requests(Interrupt) == []


def test_a_message_begins_it(supervisor: Path) -> None:
    assert hermesctl(supervisor, "send", "dmeo", "hello", "--no-wait").out == "m_1\n"


def test_a_tail_may_wait_for_it(tmp_path: Path) -> None:
    with opened(tmp_path, alone) as peer, Running(tmp_path, "tail", "tomorrow", "--wait") as running:
        peer.say(Subscribe, Story("tomorrow").event("turn.opened", turn="tomorrow/1", messages=["m_1"]))
        running.wait_for("tomorrow/1 answers m_1")
