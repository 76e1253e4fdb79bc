"""Every record changes memory and disk alike: what is loaded is what was known."""

from pathlib import Path

from supervisor.core import records as told
from supervisor.core.events import (
    AnswerArrived,
    Asked,
    BeginAsked,
    DropAsked,
    EventsSeen,
    Failed,
    Finished,
    InterruptAsked,
    ModelChanged,
    NotTranscribed,
    Steered,
    StopAsked,
    TextStreamed,
    ToolFinished,
    ToolStarted,
    Transcribed,
    VoiceArrived,
    WorkerStuck,
)
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, ModelState, Question
from supervisor.journal.contract import Keeper
from supervisor.journal.snapshot import durable
from tests.journal.conftest import open_in
from tests.journal.lives import Life, listed


def live_through_everything(journal: Keeper) -> Life:
    """Every kind of record is made; `Life` compares memory and journal after each event."""
    life = live_through_a_day(journal)
    life.tell(BeginAsked("u", "key", "s", 1, ('{"id":"","number":1,"messages":["é"],"attempts":[]}',)))
    life.tell(EventsSeen("s", "bridge", 5))
    life.tell(EventsSeen("s", "bridge", 9, stands_at=5, cursors=1))
    life.tell(ModelChanged(ModelState.WAITING))
    life.say("m9", "waits", session="t")
    life.say("m10", "joins", BusyMode.INTERRUPT, session="t")
    life.tell(ModelChanged(ModelState.READY))
    return life


def live_through_a_day(journal: Keeper) -> Life:
    """All that the first version of the journal could keep."""
    life = Life(journal)
    life.ready(0)
    life.ready(1)
    life.say("m1", "first")
    who = life.who(life.busy_seat())
    life.tell(TextStreamed(who, "s/1", 1, "Grüße, "))
    life.tell(TextStreamed(who, "s/1", 1, "🙂 world"))
    life.tell(ToolStarted(who, "s/1", 1, "c1", "shell", "ls", '{"cmd":"ls"}', "pure", 4))
    life.tell(ToolStarted(who, "s/1", 1, "c2", "shell", "rm", '{"cmd":"rm"}', "unsafe", 9))
    life.tell(ToolFinished(who, "s/1", 1, "c1", True, 12, "a b c"))
    life.tell(ToolStarted(who, "s/1", 1, "c1", "shell", "ls again", "{}", "pure", 9))
    life.say("m2", "and this", BusyMode.STEER)
    life.say("m3", "never this", BusyMode.QUEUE)
    life.tell(Steered(who, "s/1", 1, "m2"))
    life.tell(DropAsked("s", "m3", "somebody"))
    life.tell(VoiceArrived("s", "m7", "key m7", "clip one", BusyMode.QUEUE))
    life.tell(Transcribed("s", "m7", "never this either"))
    life.tell(DropAsked("s", "m7", "somebody"))
    life.tell(VoiceArrived("s", "m8", "key m8", "clip two", BusyMode.QUEUE))
    life.tell(NotTranscribed("s", "m8", "no speech in it", "say it again"))
    life.died(who.seat, "out of memory")
    who = life.who(life.busy_seat())
    life.tell(TextStreamed(who, "s/1", 2, "Once more"))
    life.tell(ToolStarted(who, "s/1", 2, "c3", "ask", "which?", "{}", "pure", 9))
    life.tell(Asked(who, "s/1", 2, "c3", "clarify", "Which é?", ("this", "that")))
    life.ready(who.seat)
    life.tell(AnswerArrived("s", "s/1#1", "that 🙂", "somebody"))
    who = life.who(life.busy_seat())
    life.tell(Finished(who, "s/1", 3, "Once more, done.", 10, 20))
    life.ready(0)
    life.ready(who.seat)
    life.say("m4", "then")
    life.say("m5", "later")
    who = life.who(life.busy_seat())
    life.tell(TextStreamed(who, "s/2", 1, "a long ans"))
    life.tell(InterruptAsked("s", "me"))
    life.tell(WorkerStuck(who.seat, who.incarnation, 1, "it waits in the kernel"))
    life.died(who.seat)
    life.ready(max(life.state.workers))
    life.say("m6", "go on")
    who = life.who(life.busy_seat())
    life.tell(Failed(who, "s/3", 1, "no credit", "pay", again=False))
    return life


def every_record() -> set[type[told.Record]]:
    """Each that one host makes; a file cannot keep which host has a session (tests/hosts)."""
    named = {each for each in vars(told).values() if isinstance(each, type) and issubclass(each, told.Record)}
    return named - {told.Record, told.SessionGiven}


def test_every_record_is_made_and_loads_back(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = live_through_everything(journal)
    journal.close()
    assert {type(record) for record in life.records} == every_record()
    again = open_in(tmp_path)
    assert durable(again.load(life.policy)) == durable(life.state)
    assert again.epoch == journal.epoch + 1
    again.close()


def test_a_stopped_attempt_keeps_its_verdict_over_a_crash(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(TextStreamed(life.who(0), "s/1", 1, "half an ans"))
    life.tell(InterruptAsked("s", "me"))
    journal.close()
    again = open_in(tmp_path)
    loaded = again.load(Policy())
    turn = loaded.sessions["s"].turn
    assert turn is not None
    assert turn.attempt is not None
    assert turn.attempt.verdict is not None
    assert turn.attempt.verdict.by == "me"
    assert turn.attempt.text == "half an ans"
    life = Life(again, now=2000.0)
    assert [type(record) for record in life.records] == [told.TurnInterrupted]
    again.close()


def test_a_question_and_its_count_survive_a_restart(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(TextStreamed(life.who(0), "s/1", 1, "let me ask"))
    life.tell(ToolStarted(life.who(0), "s/1", 1, "c1", "ask", "which?", "{}", "pure", 10))
    life.tell(Asked(life.who(0), "s/1", 1, "c1", "clarify", "Which?", ("a", "b")))
    journal.close()
    again = open_in(tmp_path)
    life = Life(again, now=9_999_999.0)
    assert life.records == []
    turn = life.state.sessions["s"].turn
    assert turn is not None
    asked_at = turn.question.at if turn.question else 0.0
    assert turn.question == Question("s/1#1", "clarify", "Which?", ("a", "b"), "c1", at=asked_at)
    assert asked_at == turn.content_at
    assert listed(again.tables.questions("", 10), "question") == ["s/1#1"]
    life.ready(0)
    life.say("m2", "the second", BusyMode.INTERRUPT)
    assert listed(again.tables.questions("", 10), "question") == []
    (asked,) = again.read.tried("s/1", 2, 10_000)
    assert (asked.text, asked.cut, asked.tools[0].result) == ("let me ask", "", "the second")
    again.close()


def test_a_withdrawn_question_is_a_cut_and_no_call_is_left_open(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(ToolStarted(life.who(0), "s/1", 1, "c1", "ask", "which?", "{}", "pure", 0))
    life.tell(ToolStarted(life.who(0), "s/1", 1, "c2", "shell", "ls", "{}", "unsafe", 0))
    life.tell(Asked(life.who(0), "s/1", 1, "c1", "clarify", "Which?", ()))
    story = journal.read.turn_story("s/1")
    assert story is not None
    assert [tool["state"] for tool in story["tools"]] == ["started", "unknown"]
    life.tell(InterruptAsked("s", "me"))
    assert listed(journal.tables.questions("", 10), "question") == []
    (turn,) = journal.read.history("s", 2, 10, 10_000)
    assert turn.attempts[0].cut == "interrupted"
    assert turn.attempts[0].tools[0].result is None
    journal.close()


def test_a_left_turn_is_taken_up_with_what_it_had_said(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(TextStreamed(life.who(0), "s/1", 1, "half an ans"))
    life.tell(StopAsked())
    journal.close()
    again = open_in(tmp_path)
    life = Life(again, now=2000.0)
    turn = life.state.sessions["s"].turn
    assert turn is not None
    assert (turn.earlier_text, turn.losses, turn.attempts) == ("half an ans", 0, 1)
    life.ready(0)
    assert [past.text for past in again.read.tried("s/1", 2, 10_000)] == ["half an ans"]
    assert again.read.tried("s/1", 2, 10_000)[0].cut == "lost"
    again.close()


def test_a_session_at_rest_is_woken_with_its_counts(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(Finished(life.who(0), "s/1", 1, "done", 1, 1))
    assert "s" not in life.state.sessions
    woken = journal.wake("s")
    assert woken is not None
    assert (woken.seq, woken.turns, woken.is_at_rest) == (4, 1, True)
    assert journal.wake("never spoken to") is None
    journal.close()


def test_sessions_come_back_in_the_order_in_which_they_waited(tmp_path: Path) -> None:
    journal = open_in(tmp_path)
    life = Life(journal)
    for name in ("zebra", "ant", "mole"):
        life.say(f"m_{name}", "hello", session=name)
    assert list(journal.load(Policy()).sessions) == ["zebra", "ant", "mole"]
    journal.close()
