"""A question to the journal is answered once, in place or by a thread: by its result, or by an error."""

import asyncio
import threading
from typing import Any

import pytest

from ipc.errors import BadPlace, WireError
from supervisor.journal.asking import Asking, InPlace
from supervisor.journal.errors import JournalError
from supervisor.journal.postgres.read_threads import ReadThreads
from tests.waiting import soon

KINDS = {"in place": InPlace, "threads": ReadThreads}
FAULT = JournalError("no", "none")


def handled_here() -> list[dict[str, Any]]:
    """What reaches the handler of the running loop from now on."""
    handled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: handled.append(context))
    return handled


def broken() -> str:
    raise KeyError


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outcome", [7, FAULT, BadPlace()])
def test_each_question_is_answered_once(kind: str, outcome: object) -> None:
    async def act() -> None:
        asking: Asking = KINDS[kind]()
        told: list[object] = []

        def read() -> object:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        asking.ask(read, told.append, told.append)
        await soon(lambda: told)
        assert told == [outcome]

    asyncio.run(act())


def test_a_defect_of_a_read_in_a_thread_is_told_and_reaches_the_handler_of_the_loop() -> None:
    async def act() -> None:
        handled = handled_here()
        told: list[JournalError] = []
        asking = ReadThreads(1)
        asking.ask(broken, pytest.fail, told.append)  # type: ignore[arg-type]
        await soon(lambda: handled)
        assert [error.fault for error in told] == ["the journal could not be read (KeyError)"]
        assert isinstance(handled[0]["exception"], KeyError)
        asking.close()

    asyncio.run(act())


def test_threads_that_are_closed_are_not_waited_for() -> None:
    """A server that does not answer must not keep the service from its end."""

    async def act() -> None:
        asking, may_end, handled = ReadThreads(1), threading.Event(), handled_here()
        told: list[object] = []
        for _ in range(2):
            asking.ask(may_end.wait, told.append, told.append)
        asking.close()
        assert not told
        may_end.set()
        await soon(lambda: told)
        assert told == [True], "the question behind it was not asked any more"
        assert not handled

    asyncio.run(act())


def test_a_place_that_no_page_has_given_is_told_in_place_too() -> None:
    def read() -> object:
        raise BadPlace

    told: list[JournalError | WireError] = []
    InPlace().ask(read, lambda found: pytest.fail("there is none"), told.append)
    assert [type(each) for each in told] == [BadPlace]
