"""A coroutine that is begun where it is called, and what a task does with the rest of it."""

import asyncio

import pytest

from gateway.first_step import start
from tests.waiting import soon


async def _nothing(done: list[str]) -> None:
    done.append("all of it")


async def _waiting(events: list[asyncio.Event], done: list[str]) -> None:
    for number, event in enumerate(events):
        done.append(f"before {number}")
        await event.wait()
    done.append("all of it")


async def _failing() -> None:
    raise BrokenPipeError("no")


def test_a_coroutine_that_waits_for_nothing_is_run_at_once() -> None:
    done: list[str] = []
    assert start(_nothing(done)) is None
    assert done == ["all of it"]


def test_the_rest_goes_on_in_the_task_that_awaits_it() -> None:
    async def scene() -> None:
        events, done = [asyncio.Event(), asyncio.Event()], list[str]()
        rest = start(_waiting(events, done))
        assert rest is not None
        assert done == ["before 0"]

        async def finish() -> None:
            await rest

        task = asyncio.ensure_future(finish())
        await asyncio.sleep(0)
        assert done == ["before 0"]
        events[0].set()
        await soon(lambda: len(done) == 2)
        assert not task.done()
        events[1].set()
        await task
        assert done == ["before 0", "before 1", "all of it"]

    asyncio.run(scene())


def test_what_it_waits_for_may_be_there_before_the_task_is() -> None:
    async def scene() -> None:
        event, done = asyncio.Event(), list[str]()
        rest = start(_waiting([event], done))
        assert rest is not None
        event.set()
        await asyncio.sleep(0)
        await rest
        assert done == ["before 0", "all of it"]

    asyncio.run(scene())


def test_an_exception_is_that_of_the_task() -> None:
    async def scene() -> None:
        rest = start(_failing())
        assert rest is not None
        with pytest.raises(BrokenPipeError, match="no"):
            await rest

    asyncio.run(scene())
