"""Open requests by themselves: who joins which, and what is stopped, kept or forgotten when clients go."""

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.errors import HttpError, Unavailable
from gateway.exchange import Exchange
from gateway.limiter import Limiter
from gateway.openai import open_requests
from gateway.openai.conversation_rule import Asking, Conversation
from gateway.openai.open_requests import OpenRequests, stop_message
from gateway.openai.responses_api import post_response
from gateway.openai.session_choice import Placed, Wish
from gateway.parts import Parts
from gateway.supervisor_client import SupervisorClient
from gateway.tokens import Token
from ipc.messages import Done, Interrupt, Queue, Request, Show, Table
from tests.waiting import soon

WISH = Wish(Asking(Conversation((), ("hello",)), "", "default"), "anna", "", digest="d")
NAMED = Wish(WISH.asking, "anna", "", name="chat", digest="d")
PLACED = Placed("chat", "m_1", 1)
DROP = Queue("chat", "drop", "m_1", by="anna")
NONE = HttpError(404, "there is none", "look")


class Stopping:
    """A supervisor that answers with these, in order; `asked` is what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Request] = []

    async def ask(self, request: Request, expected: type) -> Any:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def at_once() -> Placed:
    return PLACED


def play(supervisor: Stopping, scene: Callable[[OpenRequests], Coroutine[Any, Any, None]]) -> None:
    """Nothing is left to do in the end."""

    async def run() -> None:
        requests = OpenRequests(cast(SupervisorClient, supervisor))
        await scene(requests)
        await soon(lambda: not requests._tasks)
        assert requests._open == {}

    asyncio.run(run())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGAIN_SECONDS", "_STOP_AGAIN_SECONDS"):
        monkeypatch.setattr(open_requests, name, 0.0)


def test_a_turn_is_stopped_once_the_supervisor_is_there_again() -> None:
    supervisor = Stopping(Unavailable(), Unavailable(), Done())

    async def scene(requests: OpenRequests) -> None:
        request, _ = await requests.enter(WISH, at_once)
        request.turn = "chat/1"
        requests.leave(request, is_gone=True)

    play(supervisor, scene)
    assert supervisor.asked == [Interrupt("chat", "anna", "chat/1")] * 3


def test_a_turn_that_has_ended_meanwhile_is_not_stopped_again() -> None:
    supervisor = Stopping(HttpError(409, "it has ended", "look"))

    async def scene(requests: OpenRequests) -> None:
        request, _ = await requests.enter(WISH, at_once)
        request.turn = "chat/1"
        requests.leave(request, is_gone=True)

    play(supervisor, scene)
    assert len(supervisor.asked) == 1


def test_the_same_request_begins_anew_once_the_first_one_is_being_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = Stopping(Unavailable(), Done())
    monkeypatch.setattr(open_requests, "_STOP_AGAIN_SECONDS", 0.02)

    async def scene(requests: OpenRequests) -> None:
        first, _ = await requests.enter(NAMED, at_once)
        first.turn = "chat/1"
        requests.leave(first, is_gone=True)
        await soon(lambda: supervisor.asked)
        second, _ = await requests.enter(NAMED, at_once)
        assert second is not first
        await soon(lambda: not requests._tasks)
        # The end of the first one is not that of the second.
        assert requests._open == {"d": second}
        requests.leave(second, is_gone=False)

    play(supervisor, scene)


def test_an_answer_that_was_not_delivered_is_kept_for_the_same_request_for_a_while() -> None:
    async def scene(requests: OpenRequests) -> None:
        first, _ = await requests.enter(WISH, at_once)
        first.is_ended = True
        requests.leave(first, is_gone=True)
        again, _ = await requests.enter(WISH, at_once)
        assert again is first
        await soon(lambda: not requests._tasks)
        assert requests._open == {"d": first}, "a client listens"
        requests.leave(again, is_gone=True)

    supervisor = Stopping()
    play(supervisor, scene)
    assert supervisor.asked == []


@pytest.mark.parametrize("error", [HttpError(429, "it is full", "wait"), ValueError("broken")])
def test_a_message_that_was_not_accepted_fails_for_all_that_joined_and_is_forgotten(
    error: Exception,
) -> None:
    async def scene(requests: OpenRequests) -> None:
        may_fail = asyncio.Event()

        async def failing() -> Placed:
            await may_fail.wait()
            raise error

        entering = [asyncio.create_task(requests.enter(NAMED, failing)) for _ in range(2)]
        await asyncio.sleep(0)
        assert len(requests._open) == 1
        may_fail.set()
        first, second = await asyncio.gather(*entering, return_exceptions=True)
        assert first is error
        assert isinstance(second, HttpError)
        assert requests._open == {}
        request, placed = await requests.enter(NAMED, at_once)
        assert placed == PLACED
        requests.leave(request, is_gone=False)

    play(Stopping(), scene)


def test_one_that_joined_and_goes_takes_no_other_with_it() -> None:
    async def scene(requests: OpenRequests) -> None:
        may_answer = asyncio.Event()

        async def slow() -> Placed:
            await may_answer.wait()
            return PLACED

        entering = [asyncio.create_task(requests.enter(NAMED, slow)) for _ in range(3)]
        await asyncio.sleep(0)
        entering[1].cancel()
        await asyncio.wait([entering[1]])
        may_answer.set()
        (request, _), (same, _) = await asyncio.gather(entering[0], entering[2])
        assert same is request
        requests._forget(request)

    play(Stopping(), scene)


def test_a_client_that_asks_again_in_time_keeps_its_turn() -> None:
    async def scene(requests: OpenRequests) -> None:
        first, _ = await requests.enter(NAMED, at_once)
        requests.leave(first, is_gone=True)
        again, _ = await requests.enter(NAMED, at_once)
        assert again is first
        await soon(lambda: not requests._tasks)
        assert requests._open == {"d": first}
        requests.leave(again, is_gone=False)

    supervisor = Stopping()
    play(supervisor, scene)
    assert supervisor.asked == []


def test_of_two_equal_requests_without_a_name_the_end_of_one_is_not_that_of_the_other() -> None:
    async def scene(requests: OpenRequests) -> None:
        first, _ = await requests.enter(WISH, at_once)
        second, _ = await requests.enter(WISH, at_once)
        assert second is not first
        requests.leave(first, is_gone=False)
        assert requests._open == {"d": second}
        requests.leave(second, is_gone=False)

    play(Stopping(), scene)


def test_a_response_in_the_background_is_not_open_once_it_was_answered() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"model": "default", "input": "x", "background": true}'}

    async def send(message: dict[str, Any]) -> None: ...

    async def rows(request: Show) -> list[dict[str, Any]]:
        return [{"agent": "default"}]

    async def place(wish: Wish) -> Placed:
        return PLACED

    async def scene(requests: OpenRequests) -> None:
        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "path": "/v1/responses", "headers": headers, "query_string": b""}
        exchange = Exchange(scope, receive, send)
        exchange.token = Token("t_1", "phone", "", frozenset({"talk"}))
        parts = SimpleNamespace(
            requests=requests,
            sessions=SimpleNamespace(place=place),
            supervisor=SimpleNamespace(rows=rows),
            limiter=Limiter(monotonic),
        )
        await post_response(cast(Parts, parts), exchange)
        assert exchange.status == 200

    play(Stopping(), scene)


def stopped(turn: str | None, *answers: Any) -> tuple[Done | None, list[Request]]:
    supervisor = Stopping(*answers)
    done = asyncio.run(stop_message(cast(SupervisorClient, supervisor), PLACED, turn, "anna"))
    return done, supervisor.asked


def test_a_message_that_a_turn_took_a_moment_ago_is_stopped_with_that_turn() -> None:
    story, done = Show("story", id="m_1", limit=1), Done(("chat/7",))
    found = stopped(None, NONE, Table(({"turn": "chat/7"},)), done)
    assert found == (done, [DROP, story, Interrupt("chat", "anna", "chat/7")])
    assert stopped(None, NONE, Table(({"turn": None},))) == (None, [DROP, story])
    assert stopped(None, done) == (done, [DROP])
    with pytest.raises(Unavailable):
        stopped(None, Unavailable())
