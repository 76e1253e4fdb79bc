"""The kind `python`: a function of the user, which gets a context and returns its answer.

    entry = "mypkg.mymod:agent"

The function is one of four: synchronous, a generator of texts, asynchronous, an asynchronous generator. It
runs in a thread of its own (agent_thread.py). An asynchronous one runs there in an
event loop that lives as long as the worker: clients that a module keeps between turns go on working. Tasks,
and the threads of that loop's executor, end with the turn.

Standard output and error are the agent's. They go nowhere, or to the file in the workspace that `output`
names.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from ipc.messages import AgentSpec
from worker import spending
from worker.agents import agent_entry, agent_thread
from worker.agents.agent_entry import Function
from worker.agents.context import AsyncContext, Context, Host
from worker.attempt import Attempt
from worker.errors import AgentError

# The event loop of this worker's asynchronous agent, made in its first turn.
_runner: asyncio.Runner | None = None


# Our modules are out of its sight (worker/own_modules.py).
RUNS_FOREIGN_CODE = True


def load(entry: str) -> "PythonKind":
    """Imports the entry in the zygote where that can be done; AgentError if it can be had in no worker."""
    if entry:
        agent_entry.preload(entry)
    return PythonKind()


class PythonKind:
    """Agents that are functions of the user: there is nothing to rehearse without running them."""

    def rehearse(self) -> None: ...

    def agent(self, spec: AgentSpec) -> "Python":
        return Python(spec)


class Python:
    """An agent that is a function of the user."""

    def __init__(self, spec: AgentSpec) -> None:
        self._name = spec.name
        self._entry = str(spec.options.get("entry", ""))
        self._path: Sequence[str] = spec.options.get("path", ())
        self._output = str(spec.options.get("output", ""))

    async def answer(self, attempt: Attempt) -> str:
        await spending.check(attempt, holds=True)
        agent_thread.divert_output(self._name, self._output)
        await agent_thread.run(attempt, self._name, self._load)
        if not agent_thread.has_text(attempt):
            raise AgentError(
                f"the agent {self._name!r} returned None and said nothing",
                f"let {self._entry} return a text, or say one through its context",
            )
        return "stop"

    def _load(self) -> agent_thread.Work:
        return partial(self._call, agent_entry.load(self._entry, self._path, self._name))

    def _call(self, function: Function, host: Host) -> None:
        if _is_async(function):
            given = function(AsyncContext(host))
            work = self._speak(host, given) if isinstance(given, AsyncIterator) else self._await(host, given)
            _run_in_loop(work)
            return
        context = Context(host)
        given = function(context)
        if isinstance(given, Iterator):
            given = self._say_all(context, given)
        if text := self._text(given):
            context.say(text)

    def _say_all(self, context: Context, given: Iterator[Any]) -> Any:
        """Says what a generator yields, and returns what it returns."""
        while True:
            try:
                text = self._text(next(given))
            except StopIteration as end:
                return end.value
            if text:
                context.say(text)

    async def _speak(self, host: Host, given: AsyncIterator[Any]) -> None:
        context = AsyncContext(host)
        async for each in given:
            if text := self._text(each):
                await context.say(text)

    async def _await(self, host: Host, given: Awaitable[Any]) -> None:
        if text := self._text(await given):
            await AsyncContext(host).say(text)

    def _text(self, given: object) -> str:
        if given is None:
            return ""
        if isinstance(given, str):
            return given
        if inspect.iscoroutine(given):
            given.close()  # or the interpreter warns of it
        raise AgentError(
            f"the agent {self._name!r} gave {_kind_of(given)}, which is no text",
            f"let {self._entry} return or yield a str, or None",
        )


def _run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
    _runner.run(_alone(work))


async def _alone(work: Coroutine[Any, Any, None]) -> None:
    """Ends the tasks and the executor of the work with it: the loop goes on in the next turn."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(thread_name_prefix="agent")
    loop.set_default_executor(executor)
    try:
        await work
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _is_async(function: Function) -> bool:
    """Looks at an object's own __call__ too."""
    called = (function, getattr(function, "__call__", None))  # noqa: B004
    return any(map(inspect.iscoroutinefunction, called)) or any(map(inspect.isasyncgenfunction, called))


def _kind_of(given: object) -> str:
    if inspect.iscoroutine(given) or inspect.isasyncgen(given):
        return "something to be awaited from a function that is not async"
    return f"a value of type {type(given).__name__}"
