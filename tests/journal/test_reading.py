"""What doors read: feeds in order, histories with their cuts, tables and stories within bounds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from ipc.messages import TurnState
from supervisor.core.events import Finished, TextStreamed
from supervisor.journal.history import AttemptPast, ToolPast, answers
from supervisor.journal.journal import Journal
from supervisor.journal.rows import Rows
from tests.journal.conftest import every_journal
from tests.journal.lives import Life, accepted, listed
from tests.journal.test_fences import DONE, FAILED, LOST, OPENED, RUNNING, SECOND, SPOKE
from tests.journal.test_round_trip import live_through_everything

OPEN: tuple[TurnState, ...] = ("queued", "running")


@every_journal
def test_the_feed_has_every_told_record_once_and_without_a_gap(journal: Journal) -> None:
    life = live_through_everything(journal)
    told = [record for record in life.records if record.seq and record.session == "s"]
    events = journal.read.events_after("s", 0, 1000)
    assert [event.seq for event in events] == list(range(1, len(told) + 1))
    assert [(event.type, event.at, event.fields) for event in events] == [
        (record.type, record.at, record.fields()) for record in told
    ]
    assert journal.read.events_after("s", 5, 3) == events[5:8]
    assert journal.read.events_after("s", len(told), 10) == []


@every_journal
def test_a_page_of_long_events_ends_early_and_the_next_goes_on(journal: Journal) -> None:
    journal.commit_now([accepted(number, text="x" * 50_000) for number in range(1, 101)])
    seen: list[int] = []
    pages = 0
    while page := journal.read.events_after("s", seen[-1] if seen else 0, 100):
        seen.extend(event.seq for event in page)
        pages += 1
    assert seen == list(range(1, 101))
    assert pages > 1


@every_journal
def test_history_gives_answers_and_cuts_with_what_was_done(journal: Journal) -> None:
    live_through_everything(journal)
    done, cut, failed = journal.read.history("s", 4, turns_max=10, bytes_max=10_000)
    assert done.messages == ("first", "and this")
    lost, asked, answered = done.attempts
    assert (lost.text, lost.cut, len(lost.tools)) == ("Grüße, 🙂 world", "lost", 3)
    answer = ToolPast("c3", "ask", "{}", "pure", "that 🙂", True, 9)
    assert asked == AttemptPast("Once more", (answer,), "")
    assert answered == AttemptPast("Once more, done.", (), "")
    assert cut.messages == ("then",)
    assert cut.attempts == (AttemptPast("a long ans", (), "interrupted"),)
    assert failed.messages == ("later",)
    # Why is for people: what an attempt is told names no fault of the host or of its server.
    assert failed.attempts == (AttemptPast("", (), "failed"),)


@every_journal
def test_an_attempt_is_told_what_the_lost_one_said_and_did(journal: Journal) -> None:
    live_through_everything(journal)
    (lost,) = journal.read.tried("s/1", 2, 10_000)
    assert (lost.text, lost.cut) == ("Grüße, 🙂 world", "lost")
    assert lost.tools == (
        ToolPast("c1", "shell", '{"cmd":"ls"}', "pure", "a b c", True, 4),
        ToolPast("c2", "shell", '{"cmd":"rm"}', "unsafe", None, False, 9),
        ToolPast("c1", "shell", "{}", "pure", None, False, 9),
    )


@every_journal
def test_history_keeps_to_its_limits_and_always_has_the_newest(journal: Journal) -> None:
    live_through_everything(journal)
    assert [turn.number for turn in journal.read.history("s", 4, 2, 10_000)] == [2, 3]
    assert [turn.number for turn in journal.read.history("s", 3, 10, 10_000)] == [1, 2]
    assert [turn.number for turn in journal.read.history("s", 4, 10, 0)] == [3]
    assert journal.read.history("s", 1, 10, 10_000) == ()


@every_journal
def test_tables_are_newest_first_and_filtered(journal: Journal) -> None:
    life = live_through_everything(journal)
    life.say("m9", "hi", session="t")
    tables = journal.tables
    assert listed(tables.sessions("", 10), "name") == ["t", "u", "s"]
    assert listed(tables.turns(None, None, "", 2), "id") == ["t/1", "s/4", "s/3"], "one more than a page has"
    assert listed(tables.turns(None, "s", "", 1), "id") == ["s/4", "s/3"]
    assert listed(tables.turns("done", None, "", 9), "id") == ["s/1"]
    assert listed(tables.turns("interrupted", "s", "", 9), "id") == ["s/2"]
    assert listed(tables.turns("interrupted", "t", "", 9), "id") == []
    queued, running = (listed(tables.turns(state, None, "", 9), "id") for state in OPEN)
    assert sorted(queued + running) == ["s/4", "t/1"]
    assert [row["killed"]["processes"] for row, _ in tables.turns("interrupted", None, "", 9) if row] == [3]


@every_journal
def test_counts_are_those_of_the_tables(journal: Journal) -> None:
    life = live_through_everything(journal)
    life.say("m9", "hi", session="t")
    counts = journal.read.counts()
    assert counts["queued"] + counts["running"] == 2
    ended = {state: counts[state] for state in ("sessions", "done", "failed", "interrupted", "held")}
    assert ended == {"sessions": 3, "done": 1, "failed": 1, "interrupted": 1, "held": 0}


@every_journal
def test_a_story_has_all_that_happened_and_no_words_of_the_sender(journal: Journal) -> None:
    live_through_everything(journal)
    story = journal.read.turn_story("s/1")
    assert story is not None
    assert [attempt["state"] for attempt in story["tried"]] == ["lost", "asked", "done"]
    assert [tool["state"] for tool in story["tools"]] == ["finished", "unknown", "unknown", "finished"]
    assert [message["id"] for message in story["messages"]] == ["m1", "m2"]
    dropped = journal.read.message_story("m3")
    assert dropped is not None
    assert (dropped["state"], dropped["ended_by"]) == ("dropped", "somebody")
    assert "never this" not in repr(dropped)
    assert journal.read.turn_story("s/99") is None
    assert journal.read.message_story("m_?") is None


@every_journal
@pytest.mark.parametrize("text", ["", "\x00", "é🙂\u2028\n", '"quotes" and \\'])
def test_any_text_comes_back_as_it_was(journal: Journal, text: str) -> None:
    journal.commit_now([accepted(1, text=text)])
    woken = journal.wake("s")
    assert woken is not None
    assert woken.waiting[0].text == text
    assert journal.read.events_after("s", 0, 1)[0].fields["text"] == text


@every_journal
def test_history_has_the_words_of_a_lost_attempt_without_tools(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    life.ready(1)
    life.say("m1", "first")
    lost = life.busy_seat()
    life.tell(TextStreamed(life.who(lost), "s/1", 1, "half an "))
    life.died(lost)
    again = life.busy_seat()
    life.tell(Finished(life.who(again), "s/1", 2, "half an answer", 1, 1))
    (turn,) = journal.read.history("s", 2, turns_max=10, bytes_max=10_000)
    first, _ = turn.attempts
    assert (first.text, first.cut, first.tools) == ("half an ", "lost", ())


@every_journal
def test_clips_are_known_by_their_messages(journal: Journal) -> None:
    live_through_everything(journal)
    assert journal.read.clips_known(["clip one", "clip two", "clip three"]) == {"clip one", "clip two"}
    assert journal.read.clip_of("m8") == ("s", "failed", "clip two")


def test_history_has_how_the_turn_ended_and_no_attempt_that_did_nothing(journal: Journal) -> None:
    done = replace(DONE, seq=6, attempt=2, text="the answer")
    journal.commit_now((*RUNNING, LOST, SECOND, done))
    (turn,) = journal.read.history("s", 99, 10, 1024)
    assert turn.attempts == (AttemptPast("the answer", (), ""),)


def test_history_tells_a_failed_turn_as_failed_though_its_attempt_was_lost_before(journal: Journal) -> None:
    journal.commit_now((*RUNNING, SPOKE, LOST, replace(FAILED, seq=5)))
    (turn,) = journal.read.history("s", 99, 10, 1024)
    assert turn.attempts == (AttemptPast("abc", (), "failed"),)


class _Answer(dict[str, Any]):
    """A row, whose iteration gives its values."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())


class _Answers:
    """Rows with three answers of a hundred characters, newest first."""

    def some(self, sql: str, values: Sequence[Any], enough: Callable[[Any], bool]) -> list[_Answer]:
        found = [
            _Answer(kind="clarify", text=str(number) * 100, answer="x", call="", attempt=1)
            for number in (3, 2, 1)
        ]
        for at, row in enumerate(found):
            if enough(row):
                return found[: at + 1]
        return found


@pytest.mark.parametrize(("bytes_max", "told"), [(10_000, "123"), (500, "23"), (100, "")])
def test_answers_are_told_whole_the_newest_first_of_all(bytes_max: int, told: str) -> None:
    found = answers(cast("Rows", _Answers()), "s/1", bytes_max)
    assert "".join(each.text[0] for each in found) == told


def test_what_a_turn_is_asked_has_the_first_agent_and_the_last_instructions(journal: Journal) -> None:
    wishes = (("", "one"), ("coder", "two"), ("other", ""))
    messages = [
        replace(accepted(number), agent=agent, instructions=instructions)
        for number, (agent, instructions) in enumerate(wishes, 1)
    ]
    opened = replace(OPENED, seq=4, messages=tuple(each.message for each in messages))
    journal.commit_now([*messages, opened])
    asked = journal.read.asked_of("s/1")
    assert asked is not None
    assert (asked.agent, asked.instructions) == ("coder", "two")
