"""Names of an owner's sessions: none of another owner, however alike the names are."""

import pytest

from gateway.namespace import Namespace


@pytest.mark.parametrize("name", ["annabel:chat", "annachat", "anna", "bob:chat", ":chat", None])
def test_an_owner_owns_only_what_begins_with_the_whole_prefix(name: str | None) -> None:
    assert not Namespace("anna").owns(name)


def test_an_owner_owns_what_its_own_names_mean() -> None:
    anna = Namespace("anna")
    for name in ("chat", "chat/3", "bob:chat"):
        assert anna.owns(anna.inward(name))
        assert anna.outward(anna.inward(name)) == name


def test_a_token_without_an_owner_owns_every_session() -> None:
    assert Namespace("").owns("annabel:chat")
    assert not Namespace("").owns(None)


def test_names_and_sentences_lose_the_prefix_and_texts_keep_it() -> None:
    row = {
        "session": "anna:chat",
        "turns": ("anna:chat/1", "anna:chat/2"),
        "retries": "anna:chat/1",
        "expect_turn": "anna:chat/3",
        "text": "anna:chat is written like this",
        "note": "anna:chat waits for anna:chat/1",
        "unwritten": "anna:chat cannot be written",
        "detail": {"turn": "anna:chat/1", "reason": "anna:chat was stopped", "count": 3},
    }
    assert Namespace("anna").row(row) == {
        "session": "chat",
        "turns": ["chat/1", "chat/2"],
        "retries": "chat/1",
        "expect_turn": "chat/3",
        "text": "anna:chat is written like this",
        "note": "chat waits for chat/1",
        "unwritten": "chat cannot be written",
        "detail": {"turn": "chat/1", "reason": "chat was stopped", "count": 3},
    }
    assert Namespace("").row(row) == row


def test_a_seat_shows_nothing_of_another_owners_session() -> None:
    busy = {"seat": 1, "session": "bob:chat", "turn": "bob:chat/1", "words": "my secret"}
    assert Namespace("anna").seat(busy) == {"seat": 1, "session": None, "turn": None, "words": ""}
    own = Namespace("bob").seat(busy)
    assert (own["session"], own["turn"], own["words"]) == ("chat", "chat/1", "my secret")
    idle = {"seat": 2, "session": None, "turn": None, "words": "waits"}
    assert Namespace("anna").seat(idle) == idle
    assert Namespace("").seat(busy) == busy
