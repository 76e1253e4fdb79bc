"""How a request gets its session: anew where another one was first, or where its message was dropped."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from gateway.errors import HttpError
from gateway.openai import session_choice
from gateway.openai.conversation_rule import Conversation, Role, Said
from gateway.openai.session_choice import Placed, SessionChoice, _imported
from gateway.supervisor_client import SupervisorClient
from ipc.messages import Accepted, Begin, Done, Show, Submit, Table
from tests.gateway.test_open_requests import NAMED, WISH, Stopping

PAST = Conversation((Said("user", "one"), Said("assistant", "first")), ("two",))
BEGINS = replace(NAMED, asking=replace(NAMED.asking, conversation=PAST))
_ROLES: tuple[Role, ...] = ("user", "assistant")
BEGUN = HttpError(409, "the session has begun", "look")
# Nothing in the session, at both looks.
EMPTY = (Table(()), Table(()))


def placed(wish: Any, *answers: Any) -> tuple[Placed, Stopping]:
    supervisor = Stopping(*answers)
    choice = SessionChoice(cast(SupervisorClient, supervisor))
    return asyncio.run(choice.place(wish)), supervisor


def test_a_message_that_was_dropped_is_sent_as_another_one() -> None:
    again = Accepted("m_1", 1, again=True)
    found, supervisor = placed(WISH, again, Table(({"state": "dropped"},)), Accepted("m_2", 7))
    assert (found.message, found.seq) == ("m_2", 7)
    first, second = (each for each in supervisor.asked if isinstance(each, Submit))
    assert first.key != second.key
    assert replace_key(second, first.key) == first
    found, _ = placed(WISH, again, Table(({"state": "waiting"},)))
    assert found.message == "m_1"


def replace_key(submit: Submit, key: str) -> Submit:
    return Submit(submit.session, submit.text, key, by=submit.by, agent=submit.agent)


def test_a_session_that_begins_meanwhile_is_looked_at_again_three_times() -> None:
    found, supervisor = placed(BEGINS, *EMPTY, BEGUN, *EMPTY, Done(), Accepted("m_1", 3))
    assert found == Placed("chat", "m_1", 3)
    assert len([each for each in supervisor.asked if isinstance(each, Begin)]) == 2
    with pytest.raises(HttpError, match="begins again and again"):
        placed(BEGINS, *(*EMPTY, BEGUN) * 3)
    with pytest.raises(HttpError, match="it is full"):
        placed(BEGINS, *EMPTY, HttpError(429, "it is full", "wait"))


def imported(count: int, text: str) -> list[str]:
    """What is imported of so many exchanges, by the words of their users."""
    past = [Said(role, f"{number} {text}") for number in range(count) for role in _ROLES]
    asking = replace(NAMED.asking, conversation=Conversation(tuple(past), ("on",)))
    return [each.user.partition(" ")[0] for each in _imported(replace(NAMED, asking=asking))]


def test_the_newest_exchanges_are_imported_up_to_200_or_a_mebibyte() -> None:
    assert imported(201, "x") == [str(number) for number in range(1, 201)]
    half = "x" * (256 * 1024 - 2)
    assert imported(3, half) == ["1", "2"]
    # One that is larger than that is imported as far as it fits a text.
    assert imported(2, "é" * 512 * 1024) == ["1"]


def test_the_root_that_was_asked_for_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_choice, "_REMEMBERED_MAX", 2)
    supervisor = Stopping(*[Table(())] * 3)
    choice = SessionChoice(cast(SupervisorClient, supervisor))

    async def ask() -> None:
        for root in ("a", "b", "a", "c"):
            await choice._branches_of(root)

    asyncio.run(ask())
    assert list(choice._branches) == ["a", "c"]
    assert [each.prefix for each in supervisor.asked if isinstance(each, Show)] == ["a~", "b~", "c~"]


def test_10000_roots_are_remembered() -> None:
    async def no_branches(prefix: str) -> list[str]:
        return []

    choice = SessionChoice(cast(SupervisorClient, Stopping()))
    choice._search = no_branches  # type: ignore[method-assign]

    async def ask() -> None:
        for number in range(10_001):
            await choice._branches_of(str(number))

    asyncio.run(ask())
    assert len(choice._branches) == 10_000
    assert "0" not in choice._branches


def test_a_request_is_compared_with_the_twenty_newest_branches() -> None:
    pages = [Table(tuple({"session": f"chat~{number}"} for number in page), more) for page, more in (
        (range(12), "p"), (range(12, 24), "q"))]  # fmt: skip
    supervisor = Stopping(*pages)
    choice = SessionChoice(cast(SupervisorClient, supervisor))

    async def ask() -> None:
        assert await choice._branches_of("chat") == [f"chat~{number}" for number in range(20)]
        choice._remember("chat", "chat~new")
        choice._remember("unknown", "unknown~new")
        assert await choice._branches_of("chat") == ["chat~new", *(f"chat~{number}" for number in range(19))]

    asyncio.run(ask())
    assert [each.after for each in supervisor.asked if isinstance(each, Show)] == ["", "p"]
    assert list(choice._branches) == ["chat"]
