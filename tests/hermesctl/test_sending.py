"""One message that was accepted, followed in this process: what is shown of it, and what is asked once."""

import os
from collections.abc import Callable
from pathlib import Path

from hermesctl.ctrlc import CtrlC
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from hermesctl.sending import Sending
from ipc.messages import (
    Accepted,
    Answer,
    Delta,
    Done,
    Event,
    Interrupt,
    Killed,
    Noted,
    Queue,
    Refused,
    Request,
    Show,
    Subscribe,
    Subscribed,
    Table,
)
from tests.hermesctl.peer import Peer, Story, opened
from tests.hermesctl.test_send import Items, delta, done, opening


class Followed:
    """Follows the message m_1 of the session `demo`; a person presses Ctrl-C when it runs, or at once."""

    def __init__(self, home: Path, reply: Callable[[Peer, Request], Items], *feed: Answer) -> None:
        self.notes: list[str] = []
        self.remarks: list[str] = []
        self.requests: list[Request] = []
        self.exit: Exit | None = None

        def whole(peer: Peer, request: Request) -> Items:
            if isinstance(request, Subscribe):
                return [Subscribed(0)]
            if isinstance(request, Show):
                return [Table(())]
            self.requests.append(request)
            return reply(peer, request)

        self._ctrl_c = ctrl_c = CtrlC()
        with opened(home, whole) as peer:
            stream = EventStream(peer.places, "demo", None, ctrl_c.wake)
            peer.say(Subscribe, *feed)
            ctrl_c.presses = 0 if feed else 1
            try:
                self.exit = Sending(stream, "demo", Accepted("m_1", 1), self, ctrl_c).follow_to_the_end()
                # All requests before this one have arrived.
                stream.client.ask(Show("status"), Table)
            finally:
                stream.close()
                os.close(ctrl_c.wake)
                os.close(ctrl_c._write)

    def show(self, item: Event | Delta | Noted) -> None:
        if isinstance(item, Event) and item.type == "attempt.opened":
            self._ctrl_c.presses = 1
        if isinstance(item, Noted):
            self.notes.append(item.text)

    def remark(self, text: str) -> None:
        self.remarks.append(text)

    def join_at(self, offset: int) -> None: ...


def test_notes_of_other_turns_of_the_session_are_not_shown(tmp_path: Path) -> None:
    story = Story()
    notes = [Noted(turn, 1, f"of {turn}") for turn in ("demo/0", "demo/1", "m_1", "m_0")]
    followed = Followed(tmp_path, lambda *_: [], *opening(story), *notes, done(story, "Paris"))
    assert (followed.exit, followed.notes) == (Exit.DONE, ["of demo/1", "of m_1"])


def test_a_refused_interrupt_is_told_and_the_turn_is_followed_to_its_end(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        peer.say(Subscribe, done(story, "Paris"))
        return [Refused("the journal is full", "free space")]

    followed = Followed(tmp_path, reply, *opening(story))
    assert followed.exit is Exit.DONE
    assert followed.remarks[-1] == "refused: the journal is full (free space)"


def test_an_interrupt_that_cannot_be_written_down_is_the_end(tmp_path: Path) -> None:
    killed = Killed(turn="demo/1", processes=3, all_dead=True, ms=4.0, how="pidns")

    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        peer.say(Subscribe, done(story, "Paris"))
        return [Done(("demo/1",), killed=(killed,), unwritten="no space is left")]

    followed = Followed(tmp_path, reply, *opening(story))
    assert followed.exit is Exit.INTERRUPTED
    assert "demo/1 interrupted: 3 processes ended" in followed.remarks[-1]
    assert "not yet written down: no space is left" in followed.remarks[-1]
    assert followed.requests == [Interrupt("demo", "hermesctl", "demo/1")]


def test_a_message_is_taken_back_once_whatever_comes_meanwhile(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> Items:
        return [delta(0, "somebody", turn="demo/0"), delta(8, " else", turn="demo/0"), Done()]

    followed = Followed(tmp_path, reply)
    assert followed.exit is Exit.INTERRUPTED
    assert followed.requests == [Queue("demo", "drop", "m_1")]


def test_a_message_that_was_taken_back_is_no_failure_if_its_event_comes_first(tmp_path: Path) -> None:
    story = Story()

    def reply(peer: Peer, request: Request) -> Items:
        peer.say(Subscribe, story.event("message.dropped", message="m_1", by="hermesctl"))
        return []

    followed = Followed(tmp_path, reply)
    assert followed.exit is Exit.INTERRUPTED
    assert followed.remarks == ["m_1 was taken back before its turn"]
