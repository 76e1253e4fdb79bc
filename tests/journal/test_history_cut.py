"""What a later attempt is told fits its budget of bytes, and every cut is marked."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.codec import encode
from ipc.messages import Assign
from supervisor.config.live import Live
from supervisor.config.settings import Settings
from supervisor.core.effects import AssignTurn
from supervisor.core.events import Finished, TextStreamed, ToolFinished, ToolStarted
from supervisor.core.policy import Policy
from supervisor.core.state import BusyMode, Message, Who
from supervisor.journal.budget import Budget, cut, told_within
from supervisor.journal.journal import Journal
from supervisor.workers.assignment import HISTORY_BYTES_MAX, SAY_BYTES_MAX, TRIED_BYTES_MAX, AssignBuilder
from tests.journal.conftest import every_journal
from tests.journal.lives import Life

MIB = 1024 * 1024


@given(text=st.text(max_size=400), most=st.integers(0, 500))
def test_a_cut_keeps_both_ends_and_counts_what_is_between(text: str, most: int) -> None:
    told = cut(text, most)
    if len(text.encode()) <= most:
        assert told.text == text
        return
    mark = re.search(r"\[… (\d+) characters left out …\]", told.text)
    assert mark is not None
    head, tail = told.text[: told.at], told.text[told.at + told.mark :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + told.left_out + len(tail) == len(text)
    assert len((head + tail).encode()) <= most
    for offset in range(len(text) + 1):
        assert 0 <= told.place(offset) <= len(told.text)
    assert told.place(0) == 0
    assert told.place(len(text)) == len(told.text)


def test_what_fits_is_never_cut() -> None:
    texts = ["x" * 4000, "y" * 4000]
    told = told_within(9000, lambda budget: [budget.take(text).text for text in texts])
    assert told == texts
    shared = told_within(7000, lambda budget: [budget.take(text).text for text in texts])
    assert all("characters left out" in text for text in shared)
    assert sum(map(len, shared)) < 7000


def test_a_budget_without_room_says_so() -> None:
    budget = Budget(0)
    assert budget.is_spent
    budget.take("a few words")
    assert budget.was_cut


def life(journal: Journal) -> tuple[Life, Who]:
    """A session whose first turn runs."""
    lived = Life(journal, Policy(busy_seats=1, spares=0))
    lived.ready(0)
    lived.say("m1", "first")
    return lived, lived.who(0)


def use_tool(lived: Life, who: Who, number: int, arguments: str, result: str, offset: int = 0) -> None:
    call = f"c{number}"
    lived.tell(ToolStarted(who, "s/1", 1, call, "shell", "…", arguments, "unsafe", offset))
    lived.tell(ToolFinished(who, "s/1", 1, call, True, 5, result))


@every_journal
def test_h16_the_newest_calls_are_told_and_the_others_counted(journal: Journal) -> None:
    lived, who = life(journal)
    lived.tell(TextStreamed(who, "s/1", 1, "I begin. "))
    for number in range(200):
        use_tool(lived, who, number, '{"command": "cat"}', f"{number} " + "x" * 50_000, offset=9)
    lived.tell(Finished(who, "s/1", 1, "I begin. Done.", 1, 1))
    (turn,) = journal.read.history("s", 2, 10, MIB)
    (attempt,) = turn.attempts
    assert attempt.tools[-1].call == "c199"
    assert attempt.tools[-1].result == "199 " + "x" * 50_000
    mark = re.match(r"\[… (\d+) earlier tool calls left out …\]\n", attempt.text)
    assert mark is not None
    assert int(mark[1]) == 200 - len(attempt.tools) > 0
    assert attempt.text.endswith("I begin. Done.")
    assert {attempt.text[: tool.offset] for tool in attempt.tools} == {mark[0] + "I begin. "}


@every_journal
def test_h16_one_huge_call_is_cut_and_stays_a_call(journal: Journal) -> None:
    lived, who = life(journal)
    wide = "\U0001f600" * 1_000_000
    use_tool(lived, who, 1, '{"command": "ls"}', "before")
    use_tool(lived, who, 2, wide, wide)
    lived.tell(Finished(who, "s/1", 1, "Done.", 1, 1))
    (turn,) = journal.read.history("s", 2, 10, MIB)
    small, huge = turn.attempts[0].tools
    assert (small.arguments, small.result) == ('{"command": "ls"}', "before")
    assert huge.arguments.startswith('{"cut": "')
    assert "characters left out" in huge.arguments
    assert huge.result is not None
    assert "characters left out" in huge.result
    assert len(huge.result.encode()) + len(huge.arguments.encode()) < MIB


@every_journal
def test_an_older_turn_is_told_whole_or_not_at_all(journal: Journal) -> None:
    lived, who = life(journal)
    lived.tell(Finished(who, "s/1", 1, "a" * 600_000, 1, 1))
    lived.ready(0)
    lived.say("m2", "second")
    lived.tell(Finished(lived.who(0), "s/2", 1, "b" * 600_000, 1, 1))
    (told,) = journal.read.history("s", 3, 10, MIB)
    assert told.number == 2
    assert told.attempts[0].text == "b" * 600_000
    assert [turn.number for turn in journal.read.history("s", 3, 10, 2 * MIB)] == [1, 2]


def brief(journal: Journal, *texts: str, turn: int = 1, attempt: int = 1) -> Assign:
    messages = tuple(Message(f"m{n}", text, BusyMode.COLLECT, 1.0) for n, text in enumerate(texts))
    effect = AssignTurn(Who(1, 0, 1), "s", f"s/{turn}", attempt, "default", messages)
    return AssignBuilder(journal.read, Live(Settings()), lambda names: ())(effect)


@every_journal
@pytest.mark.parametrize(("count", "size"), [(1, MIB), (3, MIB), (10, MIB), (1000, MIB // 8), (50_000, 1)])
def test_h16_whatever_is_asked_at_once_fits_a_frame(journal: Journal, count: int, size: int) -> None:
    assign = brief(journal, *["x" * size] * count)
    assert len(encode(assign)) < SAY_BYTES_MAX + MIB
    assert assign.messages[-1].text == "x" * size, "the newest is whole"
    if count <= 3:
        assert len(assign.messages) == count
        assert all(said.text == "x" * size for said in assign.messages)


@every_journal
def test_h16_an_assign_with_everything_at_its_limit_fits_a_frame(journal: Journal) -> None:
    lived, who = life(journal)
    for number in range(60):
        use_tool(lived, who, number, "{}", "é" * 500_000)
    lived.tell(Finished(who, "s/1", 1, "ü" * 1_000_000, 1, 1))
    lived.ready(0)
    lived.say("m2", "second")
    who = lived.who(0)
    for number in range(60):
        call = f"c{number}"
        lived.tell(ToolStarted(who, "s/2", 1, call, "shell", "…", "{}", "unsafe", 0))
        lived.tell(ToolFinished(who, "s/2", 1, call, True, 5, "é" * 500_000))
    lived.died(0)
    assign = brief(journal, *["x" * MIB] * 20, turn=2, attempt=2)
    assert assign.history
    assert assign.tried
    assert len(encode(assign)) < SAY_BYTES_MAX + TRIED_BYTES_MAX + HISTORY_BYTES_MAX + MIB // 2
