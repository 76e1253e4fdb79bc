"""Turns with their content: as they happened, newest first, within the size of a page."""

from typing import Any

import pytest

from ipc.paging import PAGE_BYTES, page
from supervisor.core.events import (
    AnswerArrived,
    Asked,
    InterruptAsked,
    TextStreamed,
    ToolFinished,
    ToolStarted,
)
from supervisor.core.records import TurnFailed
from supervisor.journal.journal import Journal
from tests.journal.conftest import every_journal
from tests.journal.lives import Life, listed
from tests.journal.test_fences import RUNNING
from tests.journal.test_round_trip import live_through_everything


def rows(journal: Journal, session: str, limit: int = 100) -> list[dict[str, Any]]:
    """All pages."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        table = page(journal.tables.history(session, after, limit), limit)
        found += table.rows
        after = table.more
        if not after:
            return found


@every_journal
def test_a_turn_has_its_messages_answer_calls_and_usage(journal: Journal) -> None:
    live_through_everything(journal)
    shown = {row["turn"]: row for row in rows(journal, "s")}
    done = shown["s/1"]
    assert (done["state"], done["attempts"], done["error"]) == ("done", 3, "")
    assert [(each["message"], each["kind"], each["text"]) for each in done["messages"]] == [
        ("m1", "text", "first"),
        ("m2", "text", "and this"),
    ]
    assert done["text"].endswith("Once more, done.")
    assert [(each["call"], each["attempt"], each["state"], each["ok"]) for each in done["tools"]] == [
        ("c1", 1, "finished", True),
        ("c2", 1, "unknown", None),
        ("c1", 1, "unknown", None),
        ("c3", 2, "finished", True),
    ]
    assert (done["tools"][0]["arguments"], done["tools"][0]["result"]) == ('{"cmd":"ls"}', "a b c")
    assert (done["tools"][1]["arguments"], done["tools"][1]["result"]) == ('{"cmd":"rm"}', None)
    assert (done["usage"]["input_tokens"], done["usage"]["output_tokens"]) == (10, 20)
    assert done["opened_at"] < done["ended_at"]
    assert done["question"] is None


@every_journal
def test_a_turn_without_an_answer_has_what_was_said_and_why_it_ended(journal: Journal) -> None:
    live_through_everything(journal)
    shown = {row["turn"]: row for row in rows(journal, "s")}
    assert (shown["s/2"]["state"], shown["s/2"]["text"], shown["s/2"]["by"]) == (
        "interrupted",
        "a long ans",
        "me",
    )
    assert shown["s/2"]["killed"]["processes"] == 3
    assert (shown["s/3"]["state"], shown["s/3"]["error"], shown["s/3"]["hint"]) == (
        "failed",
        "no credit",
        "pay",
    )


@every_journal
def test_an_open_turn_has_its_text_so_far_and_its_question(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    life.say("m1", "first")
    life.tell(TextStreamed(life.who(0), "s/1", 1, "let me ask"))
    (running,) = rows(journal, "s")
    assert (running["state"], running["text"], running["question"]) == ("running", "let me ask", None)
    life.tell(ToolStarted(life.who(0), "s/1", 1, "c1", "ask", "which?", "{}", "pure", 10))
    life.tell(Asked(life.who(0), "s/1", 1, "c1", "clarify", "Which?", ("a", "b")))
    (asking,) = rows(journal, "s")
    assert asking["question"] == {
        "question": "s/1#1", "kind": "clarify", "text": "Which?", "call": "c1", "choices": ["a", "b"],
    }  # fmt: skip
    assert asking["ended_at"] is None
    life.tell(AnswerArrived("s", "s/1#1", "b", "someone"))
    (answered,) = rows(journal, "s")
    assert (answered["question"], answered["answered"]) == (
        None,
        [{"question": "s/1#1", "text": "Which?", "answer": "b", "by": "someone"}],
    )


@every_journal
def test_one_turn_is_the_same_row_and_an_unknown_one_is_none(journal: Journal) -> None:
    live_through_everything(journal)
    for row in rows(journal, "s"):
        assert [each for each, _ in journal.tables.turn(row["turn"], "")] == [row]
    for wrong in ("s/99", "s/1 ", "s", "", "nobody/1", "s/01", "s/1.0", "s/-1", "t/x"):
        assert list(journal.tables.turn(wrong, "")) == []


@every_journal
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_pages_of_a_history_have_every_turn_once_newest_first(journal: Journal, limit: int) -> None:
    life = live_through_everything(journal)
    count = sum(1 for record in life.records if record.type == "turn.opened" and record.session == "s")
    assert [row["turn"] for row in rows(journal, "s", limit)] == [f"s/{n}" for n in range(count, 0, -1)]
    assert rows(journal, "nobody") == []


@every_journal
def test_a_page_has_a_bounded_number_of_turns(journal: Journal) -> None:
    life = Life(journal)
    for number in range(1, 61):
        life.say(f"m{number}", "x")
        life.tell(InterruptAsked("s", "me"))
    first = page(journal.tables.history("s", "", 1000), 1000)
    assert len(first.rows) == 50
    assert first.more
    assert [row["turn"] for row in rows(journal, "s", 1000)] == [f"s/{n}" for n in range(60, 0, -1)]


@every_journal
def test_a_turn_with_huge_results_fits_a_page_and_says_what_is_left_out(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    life.say("m1", "a question of a person")
    for number in range(30):
        life.tell(ToolStarted(life.who(0), "s/1", 1, f"c{number}", "shell", "", "{}", "pure", 0))
        life.tell(ToolFinished(life.who(0), "s/1", 1, f"c{number}", True, 1, "ä" * 200_000))
    (row,) = rows(journal, "s")
    assert len(str(row).encode()) < 2 * PAGE_BYTES
    assert row["messages"][0]["text"] == "a question of a person"
    assert row["tools"][-1]["call"] == "c29"
    assert any("characters left out" in each["result"] for each in row["tools"])
    assert 0 < row["tools_left_out"] == 30 - len(row["tools"])


@every_journal
def test_turns_and_questions_are_listed_by_the_beginning_of_their_session(journal: Journal) -> None:
    life = Life(journal)
    life.ready(0)
    for session in ("anna:a", "anna:b", "annabel", "bert:a"):
        life.say(f"m {session}", "x", session=session)
    tables = journal.tables
    assert set(listed(tables.turns(None, None, "", 9, "anna:"), "session")) == {"anna:a", "anna:b"}
    assert set(listed(tables.turns("queued", None, "", 9, "ann"), "session")) <= {
        "anna:a",
        "anna:b",
        "annabel",
    }
    assert listed(tables.turns(None, None, "", 9, "nobody"), "session") == []
    life.tell(ToolStarted(life.who(0), "anna:a/1", 1, "c1", "ask", "which?", "{}", "pure", 0))
    life.tell(Asked(life.who(0), "anna:a/1", 1, "c1", "clarify", "Which?", ()))
    assert listed(tables.questions("", 9, "anna:"), "question") == ["anna:a/1#1"]
    assert listed(tables.questions("", 9, "bert:"), "question") == []


def test_a_turn_that_cost_too_many_workers_is_shown_as_poison(journal: Journal) -> None:
    failed = TurnFailed(session="s", at=5.0, seq=4, turn="s/1", attempt=1, error="e", hint="h", poison=True)
    journal.commit_now((*RUNNING, failed))
    assert [row["state"] for row in rows(journal, "s")] == ["poison"]
