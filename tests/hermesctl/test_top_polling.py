"""The connection of top against a scripted supervisor: what an action did, and what happens when it goes."""

import threading
from pathlib import Path

import pytest

from hermesctl import client as limits
from hermesctl.errors import NotRunning
from hermesctl.top.polling import Connection, Outcome, Watch, look_or_reason
from hermesctl.top.sample import Sample
from ipc.messages import Answer, Done, Interrupt, Killed, Refused, Request, Scale, Show, Table
from ipc.places import find_places
from tests.hermesctl.peer import DEADLINE_SECONDS, Peer, opened, tables

STATUS = {"state": "ready", "epoch": 1}


class Foreign(Peer):
    """A supervisor whose frames are of another version."""

    def _receive(self, parts: list[bytes]) -> None:
        who, number, _ = parts
        self._socket.send([who, number, b"no frame of this version"])


def carried_out(home: Path, act: Interrupt | Scale | Show, *answers: Answer) -> Outcome:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        if isinstance(request, Show):
            return [Table(STORY)]
        return list(answers)

    with opened(home, reply) as peer:
        connection = Connection(peer.places)
        try:
            return connection.carry_out(act)
        finally:
            connection.close()


STORY = (
    {"kind": "turn", "id": "demo/3", "state": "done"},
    {"type": "turn.opened", "at": 1.0, "turn": "demo/3", "messages": ["m_1"]},
    {"type": "turn.done", "at": 2.0, "turn": "demo/3", "text": "a secret", "usage": {}},
)


def test_a_turn_that_ended_before_the_interrupt_is_told_as_that(tmp_path: Path) -> None:
    outcome = carried_out(tmp_path, Interrupt("demo", "me", "demo/3"), Done(("demo/3",)))
    assert outcome == Outcome("demo/3 was done before the interrupt")


def test_the_proof_of_an_interrupt_that_cannot_be_written_down_comes_with_its_answer(tmp_path: Path) -> None:
    killed = Killed(turn="demo/3", processes=3, all_dead=True, ms=4.0, how="pidns")
    done = Done(("demo/3",), killed=(killed,), unwritten="no space is left")
    outcome = carried_out(tmp_path, Interrupt("demo", "me", "demo/3"), done)
    assert "demo/3 interrupted: 3 processes ended" in outcome.sentence
    assert "not yet written down: no space is left" in outcome.sentence


def test_a_refusal_and_a_request_that_no_frame_can_carry_are_outcomes(tmp_path: Path) -> None:
    refused = carried_out(tmp_path, Scale(seats=99), Refused("too many", "fewer"))
    assert refused == Outcome("too many (fewer)", went_well=False)
    assert not carried_out(tmp_path, Interrupt("\ud800", "me")).went_well


def test_a_story_on_the_screen_has_no_texts(tmp_path: Path) -> None:
    shown = "\n".join(carried_out(tmp_path, Show("story", id="demo/3")).story)
    assert "demo/3 was answered" in shown
    assert "secret" not in shown


def test_the_next_supervisor_is_looked_at_when_the_first_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(limits, "_LAST_ANSWER_SECONDS", 0.01)
    connection = Connection(find_places(str(tmp_path)))
    with opened(tmp_path, tables(status=[STATUS])):
        assert connection.look().status == STATUS
    with pytest.raises(NotRunning):
        connection.look()
    with opened(tmp_path, tables(status=[STATUS])):
        assert connection.look().status == STATUS
        connection.close()


def test_a_supervisor_of_another_version_is_a_reason_and_not_the_end_of_the_watch(tmp_path: Path) -> None:
    peer = Foreign(tmp_path, lambda peer, request: []).open()
    seen: list[Sample | str] = []
    outcomes: list[Outcome] = []
    told = threading.Event()

    def on_outcome(outcome: Outcome) -> None:
        outcomes.append(outcome)
        told.set()

    try:
        watch = Watch(peer.places, DEADLINE_SECONDS, seen.append, on_outcome)
        watch.start()
        watch.ask(Scale(seats=3))
        assert told.wait(DEADLINE_SECONDS)
        watch.end()
        watch.join(DEADLINE_SECONDS)
        assert not watch.is_alive()
    finally:
        peer.close()
    assert [str(each).startswith("no answer (") for each in seen] == [True, True]
    assert not outcomes[0].went_well
    assert look_or_reason(Connection(peer.places)) == "not running"


def test_a_look_reads_one_page_of_each_table_however_many_there_are(tmp_path: Path) -> None:
    def reply(peer: Peer, request: Request) -> list[Answer]:
        assert isinstance(request, Show)
        if request.what not in ("sessions", "turns"):
            return [Table((STATUS,))]
        return [Table(tuple(STATUS for _ in range(request.limit)), "" if request.after else "behind it")]

    with opened(tmp_path, reply) as peer:
        connection = Connection(peer.places)
        try:
            sample = connection.look()
        finally:
            connection.close()
        assert len(sample.sessions) == 500
        assert [show.what for show in peer.requests(Show)].count("sessions") == 1
        assert len(peer.requests(Show)) == 7
