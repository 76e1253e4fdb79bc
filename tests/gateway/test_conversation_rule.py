"""The rule that maps a conversation to a session, row by row, and against clients that do what they like."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.openai.conversation_rule import (
    LOST_WORDS,
    Append,
    Branch,
    Choice,
    Conversation,
    Fork,
    Import,
    KnownTurn,
    Said,
    Same,
    choose,
    exchanges,
)


def conversation(*texts: str) -> Conversation:
    """Texts of the user and the assistant in turn; the last one is the user's."""
    past = tuple(Said("assistant" if at % 2 else "user", text) for at, text in enumerate(texts[:-1]))
    return Conversation(past, (texts[-1],))


def turn(
    number: int, user: str, text: str, state: str = "done", session: str = "s", **rest: Any
) -> KnownTurn:
    return KnownTurn(f"{session}/{number}", (user,), text, state, **rest)


ONE, TWO = turn(1, "one", "first"), turn(2, "two", "second")
S = Branch("s", (ONE, TWO))


def test_a_conversation_without_a_session_begins_one() -> None:
    assert choose(conversation("hello"), None) == Import("hello")
    assert choose(conversation("one", "first", "hello"), None) == Import("hello")


def test_a_known_past_appends() -> None:
    assert choose(conversation("one", "first", "two", "second", "three"), S) == Append("s", "s/2", "three")


def test_white_space_makes_no_difference() -> None:
    asked = conversation(" one", "first\n", "two", "  second ", "three")
    assert choose(asked, S) == Append("s", "s/2", "three")


def test_an_earlier_past_forks_behind_its_turn() -> None:
    assert choose(conversation("one", "first", "2"), S) == Fork("s", 1, "2")
    assert choose(conversation("one", "first", "two"), S) == Fork("s", 1, "two")
    assert choose(conversation("1"), S, begins=True) == Fork("s", 0, "1")


def test_an_unknown_past_is_imported() -> None:
    assert choose(conversation("one", "fourth", "two"), S) == Import("two")
    assert choose(conversation("zero", "none", "one", "first", "two", "second", "3"), S) == Import("3")


def test_the_newest_part_of_a_long_session_appends() -> None:
    assert choose(conversation("two", "second", "three"), S) == Append("s", "s/2", "three", is_exact=False)
    pruned = Branch("s", (TWO,), is_whole=False)
    asked = conversation("one", "first", "two", "second", "3")
    assert choose(asked, pruned) == Append("s", "s/2", "3", is_exact=False)


def test_the_beginning_is_preferred_to_the_end_where_both_fit() -> None:
    twice = Branch("s", (turn(1, "hi", "hello"), turn(2, "hi", "hello")))
    assert choose(conversation("hi", "hello", "well"), twice) == Fork("s", 1, "well")


def test_a_message_alone_appends_to_a_session_that_there_is() -> None:
    assert choose(conversation("three"), S) == Append("s", "s/2", "three")
    assert choose(conversation("one"), S) == Append("s", "s/2", "one")
    assert choose(conversation("new"), Branch("s", ())) == Append("s", "", "new")


def test_a_message_alone_that_repeats_the_only_one_wants_another_answer() -> None:
    only = Branch("s", (ONE,))
    assert choose(conversation("one"), only) == Fork("s", 0, "one")
    assert choose(conversation("uno"), only) == Append("s", "s/1", "uno")


@pytest.mark.parametrize("state", ["queued", "running", "asking"])
def test_the_same_request_joins_its_open_turn(state: str) -> None:
    open_ = Branch("s", (ONE, turn(2, "two", "sec", state)))
    assert choose(conversation("one", "first", "two"), open_) == Same("s", "s/1", "two")
    assert choose(conversation("two"), open_) == Same("s", "s/1", "two")
    assert choose(conversation("one", "first", "other"), open_) == Fork("s", 1, "other")


def test_a_request_that_says_to_be_a_repetition_gets_the_answer_that_was_made() -> None:
    assert choose(conversation("one", "first", "two"), S, repeats=True) == Same("s", "s/1", "two")
    failed = Branch("s", (ONE, turn(2, "two", "", "failed")))
    assert choose(conversation("one", "first", "two"), failed, repeats=True) == Same("s", "s/1", "two")
    stopped = Branch("s", (ONE, turn(2, "two", "sec", "interrupted")))
    assert choose(conversation("one", "first", "two"), stopped, repeats=True) == Fork("s", 1, "two")


def test_a_branch_goes_on_where_its_answers_are_those_of_the_client() -> None:
    other = Branch("s~1", (KnownTurn("", ("one",), "first", "past"), turn(1, "two", "deux", session="s~1")))
    asked = conversation("one", "first", "two", "deux", "three")
    assert choose(asked, S) == Import("three")
    assert choose(asked, S, [other]) == Append("s~1", "s~1/1", "three")
    assert choose(conversation("one", "first", "2"), S, [other]) == Fork("s~1", 0, "2")
    running = Branch("s~2", (KnownTurn("", ("one",), "first", "past"), turn(1, "two", "", "running", "s~2")))
    assert choose(conversation("one", "first", "two"), S, [running, other]) == Same("s~2", "", "two")


def test_a_session_is_not_forked_within_the_history_it_has_begun_with() -> None:
    begun = Branch("s", (*(KnownTurn("", (str(n),), f"a{n}", "past") for n in range(3)), turn(1, "x", "y")))
    assert choose(conversation("0", "a0", "new"), begun) == Import("new")
    assert choose(conversation("0", "a0", "1", "a1", "2", "a2", "new"), begun) == Fork("s", 0, "new")


@pytest.mark.parametrize("shown", ["sec", "second and more", "sec\n"])
def test_a_turn_that_was_cut_is_known_by_a_part_of_its_text(shown: str) -> None:
    cut = Branch("s", (ONE, turn(2, "two", "second", "interrupted")))
    wanted = Append("s", "s/2", "three", is_exact="more" not in shown)
    assert choose(conversation("one", "first", "two", shown, "three"), cut) == wanted
    assert choose(conversation("one", "first", "two", "else", "three"), cut) == Import("three")


def test_a_branch_that_has_the_whole_answer_comes_before_a_turn_that_was_cut() -> None:
    cut = Branch("s", (turn(1, "one", "first", "interrupted"),))
    other = Branch("s~1", (turn(1, "one", "first and last", session="s~1"), turn(2, "x", "y", session="s~1")))
    asked = conversation("one", "first and last", "two")
    assert choose(asked, cut) == Append("s", "s/1", "two", is_exact=False)
    assert choose(asked, cut, [other]) == Fork("s~1", 1, "two")
    assert choose(conversation("one", "fir", "two"), cut, [other]) == Append("s", "s/1", "two")


@pytest.mark.parametrize("state", ["interrupted", "failed", "poison"])
def test_a_turn_that_left_nothing_at_the_client_is_known_by_its_message(state: str) -> None:
    cut = Branch("s", (ONE, turn(2, "two", "", state)))
    past = (Said("user", "one"), Said("assistant", "first"))
    assert choose(Conversation(past, ("two", "three")), cut) == Append("s", "s/2", "three")
    assert choose(Conversation(past, ("two",)), cut) == Fork("s", 1, "two")


def test_a_question_and_its_answer_are_parts_of_one_turn() -> None:
    asked = Branch("s", (KnownTurn("s/1", ("paint",), "Let me see.", "asking"),))
    question = "Let me see.\n\nWhich colour?\n- red\n- blue"
    assert choose(conversation("paint", question, "blue"), asked) == Append("s", "s/1", "blue")
    done = Branch("s", (KnownTurn("s/1", ("paint", "blue"), "Let me see.It is blue.", "done"),))
    whole = conversation("paint", question, "blue", "It is blue.", "thanks")
    assert choose(whole, done) == Append("s", "s/1", "thanks")
    other = conversation("paint", question, "red", "It is red.", "thanks")
    assert choose(other, done) == Import("thanks")


def test_the_words_about_a_lost_attempt_are_no_part_of_the_answer() -> None:
    lost = Branch("s", (turn(1, "one", "a b c d"),))
    shown = f"a b c x\n\n{LOST_WORDS}\n\nd"
    assert choose(conversation("one", shown, "two"), lost) == Append("s", "s/1", "two")
    assert choose(conversation("one", f"a\n\n{LOST_WORDS}\n\nz", "two"), lost) == Import("two")


def test_several_messages_in_a_row_are_one() -> None:
    both = Branch("s", (turn(1, "one\n\nmore", "first"),))
    past = (Said("user", "one"), Said("user", "more"), Said("assistant", "first"))
    assert choose(Conversation(past, ("two", "three")), both) == Append("s", "s/1", "two\n\nthree")


def test_an_import_is_made_of_pairs() -> None:
    past = [Said("assistant", "hi"), Said("user", "a"), Said("user", "b"), Said("assistant", "c")]
    assert list(exchanges(past)) == [("", "hi"), ("a\n\nb", "c")]
    begun = Branch("s", (KnownTurn("", ("",), "hi", "past"), KnownTurn("", ("a\n\nb",), "c", "past")))
    assert choose(Conversation(tuple(past), ("d",)), begun) == Append("s", "", "d")


# Few words, so that texts meet by chance.
_WORDS = st.sampled_from(["a", "b", "c d"])


@dataclass
class World:
    """Sessions as the journal has them, and one client that shows a conversation and changes it."""

    sessions: dict[str, list[KnownTurn]] = field(default_factory=dict)
    shown: list[tuple[str, str]] = field(default_factory=list)

    def branch(self, name: str) -> Branch:
        return Branch(name, tuple(self.sessions[name]))

    def send(self, keep: int, text: str, answer: str, kept: int | None) -> None:
        """Sends a text behind the first `keep` exchanges; `kept` is how much is left of a stopped answer."""
        self.shown = self.shown[:keep]
        past = [
            said for user, answer in self.shown for said in (Said("user", user), Said("assistant", answer))
        ]
        asked = Conversation(tuple(said for said in past if said.text), (text,))
        root = self.branch("s") if "s" in self.sessions else None
        branches = [self.branch(name) for name in reversed(self.sessions) if name != "s"]
        choice = choose(asked, root, branches, begins=not keep)
        session = self.carry_out(choice)
        self.agrees(session)
        number = sum(bool(each.id) for each in self.sessions[session]) + 1
        state = "done" if kept is None else "interrupted"
        self.sessions[session].append(turn(number, text, answer, state, session))
        self.shown.append((text, answer if kept is None else answer[:kept]))

    def carry_out(self, choice: Choice) -> str:
        match choice:
            case Append():
                assert choice.after == (self.sessions[choice.session] or [KnownTurn("", (), "")])[-1].id
                return choice.session
            case Fork():
                kept = [each for each in self.sessions[choice.session] if each.number <= choice.through]
                states = ["past" if each.state == "done" else each.state for each in kept]
                turns = [
                    KnownTurn("", each.users, each.text, state)
                    for each, state in zip(kept, states, strict=True)
                ]
            case Import():
                turns = [KnownTurn("", (user,), answer, "past") for user, answer in self.shown]
            case Same():
                raise AssertionError("nothing is open")
        name = f"s~{len(self.sessions)}" if self.sessions else "s"
        self.sessions[name] = turns
        return name

    def agrees(self, session: str) -> None:
        """The agent is told what the client shows: the same messages, and no answer but those."""
        told = self.sessions[session]
        assert [each.users[0] for each in told] == [user for user, _ in self.shown]
        for each, (_, shown) in zip(told, self.shown, strict=True):
            same = each.text.split() == shown.split()
            assert same or (each.state == "interrupted" and each.text.startswith(shown.strip()))


_STEPS = st.lists(
    st.tuples(st.floats(0, 1), _WORDS, st.sampled_from(["x", "y", "x y z"]), st.none() | st.integers(1, 4)),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(_STEPS)
def test_whatever_a_client_edits_repeats_and_stops_the_agent_is_told_what_it_shows(steps: Any) -> None:
    world = World()
    for where, text, answer, kept in steps:
        # Mostly at the end, sometimes anywhere before.
        keep = len(world.shown) if where > 0.5 else int(where * 2 * (len(world.shown) + 1))
        world.send(min(keep, len(world.shown)), text, answer, kept)
    assert sum(name == "s" for name in world.sessions) == bool(steps)
