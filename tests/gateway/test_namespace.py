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
