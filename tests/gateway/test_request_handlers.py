"""Handlers of /api by themselves: which request a body, a path and a query become, and what is answered."""

from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from gateway import queries_api
from gateway.clip_download import get_clip
from gateway.errors import HttpError
from gateway.limiter import STREAMS_PER_TOKEN_MAX
from gateway.messages_api import (
    delete_waiting,
    post_answer,
    post_fork,
    post_interrupt,
    post_message,
    post_resume,
    post_retry,
)
from ipc.messages import Accepted, Begin, Done, Interrupt, Queue, Respond, Show, Submit, Table
from tests.gateway.one_exchange import ANNA, Asked, answered


def test_all_that_a_message_says_reaches_the_supervisor_and_its_note_the_client() -> None:
    supervisor = Asked(Accepted("m_1", 7, note="anna:demo is full"))
    body = {"text": "go", "busy": "steer", "expect_turn": "demo/1", "agent": "coder", "instructions": "short"}
    shown = answered(post_message, supervisor, body, session="demo")
    (submit,) = supervisor.requests
    options = {"by": "phone", "agent": "coder", "instructions": "short"}
    assert submit == Submit("anna:demo", "go", "k", "steer", "anna:demo/1", **options)
    assert shown == {"message": "m_1", "seq": 7, "note": "demo is full"}


def test_an_interrupt_names_its_turn_and_what_is_dropped_and_leaves_no_reader() -> None:
    supervisor = Asked(Done())
    shown = answered(post_interrupt, supervisor, {"expect_turn": "demo/1", "drop": True}, session="demo")
    assert supervisor.requests == [Interrupt("anna:demo", "phone", "anna:demo/1", drop=True)]
    assert (shown["turn"], shown["note"]) == (None, "nothing runs in this session")
    assert supervisor.closed == 1


def test_a_change_of_the_queue_and_an_answer_have_their_author() -> None:
    supervisor = Asked(*[Done()] * 4)
    answered(delete_waiting, supervisor, session="demo", message="m_1")
    answered(delete_waiting, supervisor, session="demo")
    answered(post_resume, supervisor, session="demo")
    answered(post_answer, supervisor, {"text": "yes"}, question="demo/1#1")
    assert supervisor.requests == [
        Queue("anna:demo", "drop", "m_1", by="phone"),
        Queue("anna:demo", "clear", None, by="phone"),
        Queue("anna:demo", "resume", None, by="phone"),
        Respond("anna:demo/1#1", "yes", "phone"),
    ]


def test_a_fork_is_of_a_session_of_its_owner() -> None:
    supervisor = Asked(Done())
    answered(post_fork, supervisor, {"through_turn": 3, "session": "other"}, session="demo")
    assert supervisor.requests == [Begin("anna:other", "k", from_session="anna:demo", through_turn=3)]


def test_the_clip_of_a_stranger_is_not_transcribed_again() -> None:
    supervisor = Asked(Table(({"id": "m_1", "session": "bob:demo"},)), Accepted("m_1", 1))
    with pytest.raises(HttpError, match="there is no turn or message m_1"):
        answered(post_retry, supervisor, message="m_1")
    assert supervisor.requests == [Show("story", id="m_1")]


def test_pages_of_the_supervisor_are_joined_to_as_many_rows_as_were_asked_for() -> None:
    supervisor = Asked(Table((), "p"), Table(({"session": "anna:a"},) * 2, "q"), Table(({},), "r"))
    shown = answered(queries_api.get_sessions, supervisor, query=b"limit=3&words=sea%20swim&after=o")
    assert shown == {"sessions": [{"session": "a"}, {"session": "a"}, {}], "more": "r"}
    wanted = Show("sessions", prefix="anna:", words="sea swim", limit=3, after="o")
    later = replace(wanted, after="p"), replace(wanted, after="q", limit=1)
    assert supervisor.requests == [wanted, *later]


def test_a_search_without_a_result_ends_after_twenty_pages_with_its_place() -> None:
    supervisor = Asked(*(Table((), f"p{number}") for number in range(30)))
    shown = answered(queries_api.get_sessions, supervisor, query=b"words=x")
    assert (len(supervisor.requests), shown["more"]) == (20, "p19")


def test_turns_are_selected_by_session_and_state() -> None:
    supervisor = Asked(Table(()), Table(()))
    answered(queries_api.get_turns, supervisor, query=b"session=demo&state=failed")
    answered(queries_api.get_turns, supervisor)
    assert supervisor.requests == [
        Show("turns", prefix="anna:", session="anna:demo", state="failed", limit=100),
        Show("turns", prefix="anna:", limit=100),
    ]


def test_only_the_first_page_of_a_history_asks_whether_there_is_a_session() -> None:
    supervisor = Asked(Table(()), Table(()))
    answered(queries_api.get_history, supervisor, query=b"before=3", session="demo")
    assert supervisor.required == []
    answered(queries_api.get_history, supervisor, session="demo")
    assert supervisor.required == ["anna:demo"]


def test_an_empty_queue_is_one_of_a_session_that_is_there() -> None:
    supervisor = Asked(Table(()), Table(({"message": "m_1"},)))
    answered(queries_api.get_queue, supervisor, session="demo")
    answered(queries_api.get_queue, supervisor, session="demo")
    assert supervisor.required == ["anna:demo"]


def test_the_place_of_a_page_is_bounded() -> None:
    supervisor = Asked(Table(()))
    answered(queries_api.get_questions, supervisor, query=b"after=" + b"x" * 4096)
    with pytest.raises(HttpError, match="after is no place of a page"):
        answered(queries_api.get_questions, supervisor, query=b"after=" + b"x" * 4097)
    assert len(supervisor.requests) == 1


def test_of_an_agent_its_name_and_its_kind_are_shown() -> None:
    supervisor = Asked(Table(({"agent": "coder", "kind": "acp", "command": "/opt/coder --key 1"},)))
    shown = answered(queries_api.get_agents, supervisor)
    assert shown == {"agents": [{"agent": "coder", "kind": "acp"}]}


def test_a_download_counts_among_the_streams_of_its_token() -> None:
    supervisor = Asked(Table(({"clip": "abc", "session": "anna:demo"},)))
    parts = supervisor.parts
    with ExitStack() as opened:
        for _ in range(STREAMS_PER_TOKEN_MAX):
            opened.enter_context(parts.limiter.streams.one(ANNA.id))
        with pytest.raises(HttpError, match="1,000 open streams"):
            answered(lambda _, exchange: get_clip(parts, exchange), supervisor, message="m_1")
