"""The proofs that `interrupt` waits for: one for each turn that it has ended, and of no other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermesctl.commands.interrupt import _endings
from hermesctl.errors import CommandError
from hermesctl.event_stream import EventStream
from hermesctl.exit_codes import Exit
from ipc.messages import Event, Subscribe, Subscribed
from tests.hermesctl.peer import Story, opened


@contextmanager
def following(home: Path, *events: Event) -> Iterator[EventStream]:
    with opened(home, lambda peer, request: [Subscribed(0)]) as peer:
        stream = EventStream(peer.places, "demo", None)
        peer.say(Subscribe, *events)
        try:
            yield stream
        finally:
            stream.close()


def test_each_turn_has_its_own_proof_and_those_of_others_are_passed_over(tmp_path: Path) -> None:
    story = Story()
    stuck = {"processes": 1, "words": "it is in the kernel"}
    events = [
        story.event("attempt.stuck", turn="other/1", **stuck),
        story.event("turn.done", turn="other/2", text="x"),
        story.event("turn.interrupted", turn="demo/1", killed={}),
        story.event("turn.interrupted", turn="demo/1", killed={}),
        story.event("turn.failed", turn="demo/2", error="x"),
    ]
    with following(tmp_path, *events) as stream:
        found = [event.fields["turn"] for event in _endings(stream, {"demo/1", "demo/2"})]
    assert found == ["demo/1", "demo/2"]


def test_a_turn_whose_process_cannot_be_ended_is_told_at_once(tmp_path: Path) -> None:
    stuck = Story().event("attempt.stuck", turn="demo/1", processes=1, words="it is in the kernel")
    with following(tmp_path, stuck) as stream:
        with pytest.raises(CommandError, match="1 process is still there: it is in the kernel") as refused:
            list(_endings(stream, {"demo/1"}))
        assert refused.value.code == Exit.REFUSED
