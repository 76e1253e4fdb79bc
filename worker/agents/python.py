"""The kind `python`: a function of the user, which gets a context and returns its answer.

    entry = "mypkg.mymod:agent"

The function is one of four: synchronous, a generator of texts, asynchronous, an asynchronous generator. It
runs in a thread of its own, so it may block: the worker's loop goes on. An asynchronous one runs there in an
event loop that lives as long as the worker: clients that a module keeps between turns go on working. Tasks,
and the threads of that loop's executor, end with the turn.

At the end of a turn nothing of it may be left, or it could act on the next one: its processes are ended, and
a worker in which the agent left a thread serves no other turn (`Attempt.has_left_threads`).

Standard output and error are the agent's. They go nowhere, or to the file in the workspace that `output`
names: what an agent prints may quote a person, and a log must not. The worker's own log goes on beside them.
"""

import asyncio
import contextlib
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ipc.messages import AgentSpec
from worker import descendants, log
from worker.agents import agent_entry
from worker.agents.agent_entry import Function
from worker.agents.context import AsyncContext, Context, Host
from worker.attempt import Attempt
from worker.errors import AgentError
from worker.tools import spawn

# Time for threads that are about to end, such as those of an executor that was shut down.
_THREADS_SECONDS_MAX = 0.5
_LOOK_AGAIN_SECONDS = 0.005

# How the agent ended: its error, or None.
_Ended = asyncio.Future[BaseException | None]
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
        self._divert_output()
        descendants.leave_statuses_to_agents()
        host = Host(attempt)
        ended: _Ended = asyncio.get_running_loop().create_future()
        before = set(threading.enumerate())
        threading.Thread(target=self._run, args=(host, before, ended), name="agent", daemon=True).start()
        await asyncio.wait((ended, host.ending), return_when=asyncio.FIRST_COMPLETED)
        try:
            if host.ending.done():
                attempt.has_left_threads = True
                await host.ending
            if (error := await ended) is not None:
                raise error
        finally:
            host.close()
            attempt.has_left_threads = attempt.has_left_threads or await _are_left(before)
        if not any(text.strip() for text in (attempt.text, *(past.text for past in attempt.assign.tried))):
            raise AgentError(
                f"the agent {self._name!r} returned None and said nothing",
                f"let {self._entry} return a text, or say one through its context",
            )
        return "stop"

    def _run(self, host: Host, before: set[threading.Thread], ended: _Ended) -> None:
        """In the agent's thread: runs it, and passes on how it ended."""
        error: BaseException | None = None
        try:
            spawn.restrict_this_thread()
            function = agent_entry.load(self._entry, self._path, self._name)
            before.update(threading.enumerate())  # with those that its module keeps
            self._call(function, host)
        except Exception as fault:
            error = fault
        except BaseException as fault:
            # SystemExit and its like are for a process of the agent's own.
            error = AgentError(
                f"the agent {self._name!r} raised {type(fault).__name__}", "let it return instead of exiting"
            )
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the agent may have closed or replaced it
                stream.flush()
        ended.get_loop().call_soon_threadsafe(ended.set_result, error)

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

    def _divert_output(self) -> None:
        log.keep_stream()
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            output = os.open(self._output, flags, 0o600) if self._output else os.open(os.devnull, os.O_WRONLY)
        except OSError as error:
            raise AgentError(
                f"the output of the agent {self._name!r} cannot be written: {error.strerror}",
                f"set [agents.{self._name}] output to the name of a file in the workspace, or remove it",
            ) from None
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)


async def _are_left(before: set[threading.Thread]) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _THREADS_SECONDS_MAX
    while any(thread not in before for thread in threading.enumerate()):
        if loop.time() > deadline:
            return True
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return False


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
