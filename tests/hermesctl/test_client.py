"""The client half of hermesctl without a terminal: requests and answers, clips, cursors, Ctrl-C."""

import io
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from hermesctl import client as limits
from hermesctl.acknowledging import Acknowledging
from hermesctl.answer_stream import AnswerPrinter
from hermesctl.client import Client, listener_pid
from hermesctl.clip_upload import BYTES_MAX, discard, store
from hermesctl.ctrlc import CtrlC
from hermesctl.errors import CommandError, NotRunning
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.waiting import Waiting
from ipc.messages import (
    Answer,
    Delta,
    Done,
    HandOver,
    Refused,
    Request,
    Seen,
    Show,
    Subscribe,
    Subscribed,
    Table,
)
from ipc.places import find_places, make_private
from tests.hermesctl.peer import Peer, Story, opened


class LosingClient(Client):
    """Its supervisor goes while it looks whether it is there, and may answer in that moment."""

    def __init__(self, peer: Peer, *last: Done) -> None:
        super().__init__(peer.places)
        self._peer = peer
        self._last = last

    def is_lost(self) -> bool:
        self._peer.say(HandOver, *self._last)
        return True


def test_an_answer_that_comes_together_with_the_end_is_not_lost(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = LosingClient(peer, Done(("demo/1",)))
        assert client.ask(HandOver(), Done).turns == ("demo/1",)
        client.close()


def test_without_an_answer_the_loss_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = LosingClient(peer)
        with pytest.raises(NotRunning, match="the supervisor has gone"):
            client.ask(HandOver(), Done)
        client.close()


def test_rows_come_page_after_page_and_no_more_than_asked_for(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        assert isinstance(request, Show)
        first = int(request.after or 0)
        rows = tuple({"row": number} for number in range(first, min(first + 3, 7)))
        return [Table(rows, more=str(first + 3) if first + 3 < 7 else "")]

    with opened(tmp_path, reply) as peer:
        client = Client(peer.places)
        for at_most, wanted in ((None, 7), (7, 7), (4, 4), (3, 3), (0, 0)):
            found = [row["row"] for row in client.rows(Show("sessions"), at_most)]
            assert found == list(range(wanted)), at_most
        # A page that has all that was asked for is the last one that is asked for.
        before = len(peer.requests(Show))
        assert len(list(client.rows(Show("sessions"), 3))) == 3
        assert len(peer.requests(Show)) == before + 1
        client.close()


def test_answers_under_other_numbers_are_kept_for_later_in_their_order(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Subscribe):
            return [Subscribed(1), Done(("event", "1")), Done(("event", "2"))]
        return [Done(("answer",))]

    with opened(tmp_path, reply) as peer:
        client = Client(peer.places)
        number = client.post(Subscribe("s", 0))
        assert client.ask(HandOver(), Done).turns == ("answer",)
        kept = [client.receive(0.0) for _ in range(3)]
        assert [each[0] for each in kept if each] == [number] * 3
        assert [type(each[1]).__name__ for each in kept if each] == ["Subscribed", "Done", "Done"]
        assert client.receive(0.0) is None
        client.close()


def test_a_refusal_ends_the_command_and_says_when_to_try_again(tmp_path: Path) -> None:
    answers: list[Answer] = [Refused("too many", "wait", 2.0), Refused("never", "give up")]
    with opened(tmp_path, lambda peer, request: [answers.pop(0)]) as peer:
        client = Client(peer.places)
        for hint in ("wait (again in 2 s)", "give up"):
            with pytest.raises(CommandError) as refused:
                client.ask(HandOver(), Done)
            assert (refused.value.hint, refused.value.code) == (hint, Exit.REFUSED)
        client.close()


def test_a_refusal_of_another_request_is_kept_for_the_one_who_sent_it(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Refused("no such session", "name another") if isinstance(request, Subscribe) else Done()]

    with opened(tmp_path, reply) as peer:
        client = Client(peer.places)
        number = client.post(Subscribe("s", 0))
        assert client.ask(HandOver(), Done) == Done()
        assert client.receive(0.0) == (number, Refused("no such session", "name another"))
        client.close()


def test_the_rows_of_a_table_are_waited_for_as_long_as_the_command_says(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = Client(peer.places)
        with pytest.raises(NotRunning, match=r"did not answer within 0.05 s"):
            list(client.rows(Show("sessions"), timeout_seconds=0.05))
        client.close()


def test_a_supervisor_that_left_its_socket_file_behind_is_lost(tmp_path: Path) -> None:
    places = find_places(str(tmp_path))
    make_private(places.runtime)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(places.control)
    listener.listen()
    client = Client(places)
    assert not client.is_lost()
    listener.close()
    assert client.is_lost()
    client.close()


def test_the_limits_of_a_client_bound_its_patience_and_its_memory() -> None:
    assert (limits.ANSWER_SECONDS, limits.SILENCE_SECONDS, limits._ASIDE_MAX) == (10.0, 0.5, 20_000)


def test_a_supervisor_that_does_not_answer_is_named_after_the_time_limit(tmp_path: Path) -> None:
    with opened(tmp_path, lambda peer, request: []) as peer:
        client = Client(peer.places)
        with pytest.raises(NotRunning, match=r"did not answer within 0.05 s"):
            client.ask(HandOver(), Done, 0.05)
        client.close()


def test_a_supervisor_that_streams_without_an_end_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_ASIDE_MAX", 3)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        # Three that are kept, then one too many.
        again = len(peer.requests(Subscribe)) > 1
        return [Subscribed(1)] * (1 if again else 3) if isinstance(request, Subscribe) else [Done()]

    with opened(tmp_path, reply) as peer:
        client = Client(peer.places)
        client.post(Subscribe("s", 0))
        assert client.ask(HandOver(), Done) == Done()
        client.post(Subscribe("s", 0))
        with pytest.raises(NotRunning, match="streams but does not answer"):
            client.ask(HandOver(), Done)
        client.close()


def test_another_supervisor_at_the_same_place_is_not_the_one_that_was_connected(tmp_path: Path) -> None:
    places = find_places(str(tmp_path))
    assert listener_pid(places) is None
    with pytest.raises(NotRunning):
        Client(places)
    with opened(tmp_path, lambda peer, request: []) as peer:
        assert listener_pid(peer.places) == os.getpid()
        client = Client(peer.places)
        assert not client.is_lost()
    assert client.is_lost()
    with opened(tmp_path, lambda peer, request: []):
        assert client.is_lost()
    client.close()


def test_a_wake_ends_a_wait_early_and_is_used_up(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with opened(tmp_path, lambda peer, request: [Done()]) as peer:
        client = Client(peer.places, reading)
        os.write(writing, b"xx")
        began = time.monotonic()
        assert client.receive(60.0) is None
        assert time.monotonic() - began < 30.0
        os.set_blocking(reading, False)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
        assert client.ask(HandOver(), Done) == Done()
        client.close()
    os.close(reading)
    os.close(writing)


def test_ctrl_c_wakes_once_and_ends_the_second_time_and_leaves_nothing_behind() -> None:
    before = signal.getsignal(signal.SIGINT)
    descriptors = len(os.listdir("/proc/self/fd"))
    try:
        with CtrlC() as ctrl_c:
            os.kill(os.getpid(), signal.SIGINT)
            assert ctrl_c.presses == 1
            assert os.read(ctrl_c.wake, 8)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert len(os.listdir("/proc/self/fd")) == descriptors
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_clip_is_stored_whole_and_private_or_not_at_all(tmp_path: Path) -> None:
    places = find_places(str(tmp_path / "home"))
    sound, empty, large = (tmp_path / name for name in ("sound", "empty", "large"))
    sound.write_bytes(b"s" * 3_000_000)
    empty.touch()
    with large.open("wb") as file:
        file.truncate(BYTES_MAX + 1)
    before = len(os.listdir("/proc/self/fd"))
    name = store(places, str(sound))
    stored = places.clips / name
    assert stored.read_bytes() == sound.read_bytes()
    assert stored.stat().st_mode & 0o777 == 0o600
    assert places.clips.stat().st_mode & 0o777 == 0o700
    assert store(places, str(sound)) != name
    for path, fault in (
        (empty, "the clip is empty"),
        (large, "the clip has more than"),
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "is not a file"),
    ):
        with pytest.raises(CommandError, match=fault):
            store(places, str(path))
    # No part of one is left, and nothing is open.
    assert len(os.listdir(places.clips)) == 2
    assert len(os.listdir("/proc/self/fd")) == before
    with large.open("wb") as file:
        file.truncate(BYTES_MAX)
    assert (places.clips / store(places, str(large))).stat().st_size == BYTES_MAX
    discard(places, name)
    discard(places, name)
    assert not stored.exists()


def test_a_clip_is_on_the_disk_before_it_has_its_name_and_so_is_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = find_places(str(tmp_path / "home"))
    (tmp_path / "sound").write_bytes(b"sound")
    synced: list[tuple[str, list[str]]] = []
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{descriptor}"), os.listdir(places.clips)))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    name = store(places, str(tmp_path / "sound"))
    part = f".{name}"
    assert synced == [(str(places.clips / part), [part]), (str(places.clips), [name])]


def test_events_are_acknowledged_after_a_hundred_or_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermesctl.acknowledging._SECONDS_MAX", 1000.0)

    def reply(peer: Peer, request: Request) -> list[Answer]:
        return [Subscribed(0)] if isinstance(request, Subscribe) else [Done()]

    with opened(tmp_path, reply) as peer:
        stream = EventStream(peer.places, "demo", 0)
        acknowledging = Acknowledging(stream, "me", "demo")
        acknowledging.finish()
        story = Story()
        for _ in range(250):
            acknowledging.shown(story.event("turn.opened"))
            acknowledging.shown(None)
        assert peer.wait_for(Seen, 2) == Seen("me", "demo", 200)
        assert [seen.seq for seen in peer.requests(Seen)] == [100, 200]
        # The last one may not have arrived when the connection was lost: it is told again.
        acknowledging.connection_lost()
        acknowledging.shown(None)
        assert peer.wait_for(Seen, 3).seq == 250
        monkeypatch.setattr("hermesctl.acknowledging._SECONDS_MAX", 0.0)
        acknowledging.shown(None)
        acknowledging.shown(story.event("turn.opened"))
        assert peer.wait_for(Seen, 4).seq == 251
        acknowledging.finish()
        assert [seen.seq for seen in peer.requests(Seen)][4:] == [251]
        with pytest.raises(CommandError):
            acknowledging.shown(Refused("no such cursor", "name another"))
        stream.close()


def test_a_reason_for_waiting_is_told_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = Waiting()
    for what in ("one", "one", "two", "one"):
        waiting.say(what)
    assert [line.strip() for line in capsys.readouterr().err.splitlines()] == ["one …", "two …", "one …"]


def _piece(offset: int, text: str) -> Delta:
    return Delta("demo", "demo/1", 1, offset, text)


def test_text_is_printed_once_whatever_the_stream_repeats_misses_or_loses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def printed(*pieces: Delta, end: str, joined: int = 0, cut: int | None = None) -> str:
        printer = AnswerPrinter()
        printer.join_at(joined)
        for piece in pieces:
            printer.take(piece)
        if cut is not None:
            printer.cut_to(cut)
        printer.finish(end)
        return capsys.readouterr().out

    assert printed(_piece(0, "ab"), _piece(1, "bc"), end="abc") == "abc\n"
    assert printed(_piece(0, "a"), _piece(5, "f"), _piece(1, "bc"), end="abcdef") == "abcdef\n"
    assert printed(_piece(0, "abcd"), end="abcdef", joined=2) == "cdef\n"
    assert printed(_piece(0, "abcd"), end="abXY", cut=2) == "abcd\nabXY\n"
    assert printed(_piece(0, "ab"), end="abc", cut=2) == "abc\n"
    # What was shown and is not the answer is shown as it is; what is more than the answer stays.
    assert printed(_piece(0, "abc"), end="xyz") == "abc\nxyz\n"
    assert printed(_piece(0, "abc"), end="ab") == "abc\n"
    assert printed(end="") == ""
    assert printed(_piece(0, "line\n"), end="line\n") == "line\n"


def test_a_remark_that_is_replaced_fits_its_line_and_is_erased_by_the_next_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    terminal = Terminal()
    monkeypatch.setattr(sys, "__stderr__", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    printer = AnswerPrinter()
    printer.flash("thinking " * 20)
    drawn = terminal.flushed.removeprefix("\r\x1b[K")
    assert len(drawn) == 39
    printer.take(_piece(0, "text"))
    assert terminal.flushed.removeprefix(f"\r\x1b[K{drawn}") == "\r\x1b[K"
    # Beside an unfinished line of the answer there is no room for one.
    printer.flash("thinking")
    assert terminal.flushed.endswith("\r\x1b[K")
    printer.finish("text")
    assert capsys.readouterr().out == "text\n"
