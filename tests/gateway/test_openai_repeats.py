"""Requests that are sent again: by the SDK itself over a cut connection, by hand, at the same time."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import openai
import pytest

from tests.gateway.cutting_proxy import CuttingProxy
from tests.gateway.gateway_process import GatewayProcess
from tests.gateway.test_chat_completions import (
    ask,
    assistant,
    gateway_sdk,
    named,
    sessions,
    streamed,
    turns,
    user,
)
from tests.service import Service
from tests.waiting import until

# Long enough to be cut off in the middle, and slow before its first word.
SLOW = "[[slow text='late but true' interval=0.7]]"


@pytest.fixture
def proxy(gateway: GatewayProcess) -> Iterator[CuttingProxy]:
    with CuttingProxy(gateway.address) as proxy:
        yield proxy


@pytest.fixture
def sdk(gateway: GatewayProcess, proxy: CuttingProxy) -> Iterator[openai.OpenAI]:
    with gateway_sdk(gateway, address=proxy.address) as client:
        yield client


def beside(call: Callable[[], Any]) -> "Future[Any]":
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


def running(service: Service, session: str) -> list[Any]:
    return [row for row in service.show("turns", session=session) if row["state"] == "running"]


def messages(service: Service, session: str) -> list[str]:
    return [event.fields["text"] for event in _events(service, session) if event.type == "message.accepted"]


def _events(service: Service, session: str) -> list[Any]:
    listener = service.listen(session)
    seq = next(row["seq"] for row in service.show("sessions", prefix=session) if row["session"] == session)
    listener.until(lambda: listener.events and listener.events[-1].seq >= seq)
    return listener.events


def cut_once(proxy: CuttingProxy, service: Service, session: str) -> None:
    """Cuts the connection of a request whose turn runs, before anything of the answer got through."""
    until(lambda: running(service, session))
    assert proxy.connections == 1
    proxy.cut()
    proxy.is_deaf = False


@pytest.mark.parametrize("call", [ask, streamed], ids=["whole", "streamed"])
def test_the_retry_of_the_sdk_after_a_cut_connection_is_one_message(
    sdk: openai.OpenAI, proxy: CuttingProxy, service: Service, call: Callable[..., str]
) -> None:
    session = f"retry-{call.__name__}"
    proxy.is_deaf = True
    answer = beside(lambda: call(sdk, user(SLOW), extra_headers=named(session)))
    cut_once(proxy, service, session)
    assert answer.result(60) == "late but true"
    assert proxy.connections == 2
    assert turns(service, session) == [(f"{session}/1", [SLOW], "done")]
    assert sessions(service, session) == [session]


def test_the_retry_of_a_response_is_one_message(
    sdk: openai.OpenAI, proxy: CuttingProxy, service: Service
) -> None:
    proxy.is_deaf = True
    answer = beside(lambda: sdk.responses.create(model="default", input=SLOW, conversation="retry-response"))
    cut_once(proxy, service, "retry-response")
    assert answer.result(60).output_text == "late but true"
    assert messages(service, "retry-response") == [SLOW]


def test_a_retry_without_a_name_finds_its_message_also_after_the_death_of_the_gateway(
    gateway: GatewayProcess, service: Service
) -> None:
    with gateway_sdk(gateway, max_retries=9) as sdk:
        answer = beside(lambda: ask(sdk, user(SLOW + " nameless")))
        (session,) = until(lambda: [name for name in sessions(service, "chat-") if running(service, name)])
        gateway.kill()
        gateway.start()
        assert answer.result(60) == "late but true"
    assert messages(service, session) == [SLOW + " nameless"]
    assert sessions(service, session.rpartition("-")[0]) == [session]


def test_a_retry_whose_answer_was_made_meanwhile_gets_that_answer(
    sdk: openai.OpenAI, proxy: CuttingProxy, service: Service
) -> None:
    proxy.is_deaf = True
    answer = beside(lambda: ask(sdk, user("quick"), extra_headers=named("quick")))
    until(lambda: [row for row in service.show("turns", session="quick") if row["state"] == "done"])
    proxy.cut()
    proxy.is_deaf = False
    assert answer.result(60) == "You said: quick"
    assert messages(service, "quick") == ["quick"]
    assert sessions(service, "quick") == ["quick"]


def test_the_same_request_while_its_turn_is_open_joins_it(gateway: GatewayProcess, service: Service) -> None:
    """From several clients that mark nothing, as the AI SDK."""
    barrier = threading.Barrier(3)

    def one() -> str:
        with gateway_sdk(gateway, max_retries=0) as sdk:
            barrier.wait()
            return ask(sdk, user(SLOW), extra_headers=named("together"))

    answers = [beside(one) for _ in range(3)]
    assert {answer.result(60) for answer in answers} == {"late but true"}
    assert messages(service, "together") == [SLOW]


def test_an_open_turn_is_joined_by_a_gateway_that_never_saw_it(
    gateway: GatewayProcess, service: Service
) -> None:
    with gateway_sdk(gateway, max_retries=0) as sdk:
        beside(lambda: ask(sdk, user(SLOW), extra_headers=named("orphan")))
        until(lambda: running(service, "orphan"))
        gateway.kill()
        gateway.start()
        assert ask(sdk, user(SLOW), extra_headers=named("orphan")) == "late but true"
    assert messages(service, "orphan") == [SLOW]


def test_after_its_answer_the_same_request_is_a_regeneration_in_a_branch(
    sdk: openai.OpenAI, service: Service
) -> None:
    headers = named("first")
    assert [ask(sdk, user("one"), extra_headers=headers) for _ in range(2)] == ["You said: one"] * 2
    (branch,) = [name for name in sessions(service, "first") if name != "first"]
    assert turns(service, "first") == [("first/1", ["one"], "done")]
    assert turns(service, branch) == [(f"{branch}/1", ["one"], "done")]


def test_a_later_message_is_regenerated_behind_the_turns_before_it(
    sdk: openai.OpenAI, service: Service
) -> None:
    headers = named("later")
    past = [user("one"), assistant(ask(sdk, user("one"), extra_headers=headers))]
    for _ in range(3):
        ask(sdk, *past, user("two"), extra_headers=headers)
    assert [users for _, users, _ in turns(service, "later")] == [["one"], ["two"]]
    branches = [name for name in sessions(service, "later") if name != "later"]
    assert len(branches) == 2
    for branch in branches:
        assert turns(service, branch) == [("", ["one"], "past"), (f"{branch}/1", ["two"], "done")]


def test_an_edit_makes_a_branch_that_knows_what_came_before(sdk: openai.OpenAI, service: Service) -> None:
    headers = named("edit")
    past: list[Any] = []
    for text in ("one", "two", "three"):
        past += [user(text), assistant(ask(sdk, *past, user(text), extra_headers=headers))]
    assert [users for _, users, _ in turns(service, "edit")] == [["one"], ["two"], ["three"]]
    told = ask(sdk, *past[:2], user("[[recite]] 2"), extra_headers=headers)
    assert told.startswith("I was given 4 messages: system, user, assistant, user.")
    (branch,) = [name for name in sessions(service, "edit") if name != "edit"]
    begun = _events(service, branch)[0]
    assert (begun.type, begun.fields["from"], begun.fields["through"]) == ("session.begun", "edit", 1)
    more = [*past[:2], user("[[recite]] 2"), assistant(told)]
    ask(sdk, *more, user("on"), extra_headers=headers)
    assert [users for _, users, _ in turns(service, branch)] == [["one"], ["[[recite]] 2"], ["on"]]
    ask(sdk, user("first of another"), extra_headers={**headers, "X-Parent": "None"})
    assert len(sessions(service, "edit")) == 3


def test_an_unknown_past_is_imported(sdk: openai.OpenAI, service: Service) -> None:
    past = [user("long ago"), assistant("in a galaxy")]
    told = ask(sdk, *past, user("[[recite]]"), extra_headers=named("import"))
    assert told.endswith("The first said: long ago")
    assert turns(service, "import")[0] == ("", ["long ago"], "past")
    assert [state for _, _, state in turns(service, "import")] == ["past", "done"]


def test_equal_requests_without_a_name_are_different_ones(gateway: GatewayProcess, service: Service) -> None:
    def one() -> str:
        with gateway_sdk(gateway, max_retries=0) as sdk:
            return ask(sdk, user("[[slow text='mine' interval=1]] equal"))

    before = set(sessions(service, "chat-"))
    answers = [beside(one), beside(one)]
    assert [answer.result(60) for answer in answers] == ["mine", "mine"]
    assert len(set(sessions(service, "chat-")) - before) == 2
