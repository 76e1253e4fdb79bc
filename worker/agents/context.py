"""The contract with foreign agents: what an agent gets of a turn, and what it may do while it answers.

    history    earlier turns of the session        say, note          text of the answer, a transient note
    messages   what is to be answered now          tool_started, …    a record before and after each tool
    earlier    attempts at this turn that were     ask, approve       a question to a person
               lost: what they said and did        steers, spend      messages meanwhile, tokens used

A synchronous agent gets a `Context`, whose methods return when they are done; they may be called from any
thread except the one of an event loop that must go on. An asynchronous agent gets an `AsyncContext`, whose
methods have the same names and are awaited, in any event loop. Both send their calls to the worker's event
loop, where `Host` carries them out on the attempt: frames, and the order of text and tools, have one place.

Two kinds of error:

- A call that is wrong by itself (a bad argument, a call after the end) raises in the caller, has no effect,
  and the turn goes on.
- What ends the attempt (a question that is not answered in time, an answer that is too long) ends it in the
  worker's loop. The call never returns, so no `except` of the agent can hide it; its thread is abandoned, and
  the worker that holds it serves no other turn.
"""

import asyncio
import concurrent.futures
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, get_args

from ipc.bounds import NAME_CHARACTERS_MAX, SENTENCE_CHARACTERS_MAX, TEXT_CHARACTERS_MAX
from ipc.errors import WireError
from ipc.message_parts import Cut
from ipc.messages import Assign, PastAttempt, PastTurn, QuestionKind, ToolClass, ToolTrace, Usage
from worker import spending
from worker.attempt import Attempt, result_text
from worker.errors import AttemptError, HumanNeeded
from worker.repeated_calls import RepeatedCalls
from worker.tools import Report

_Result = TypeVar("_Result")

_CHOICES_MAX = 20
_TOKENS_MAX = 10**12
# Answers that approve; any other one denies.
_YES = frozenset({"yes", "y"})
_APPROVAL_CHOICES = ("yes", "no")


class ContextClosed(RuntimeError):
    """The turn is over: what is said or done now has no effect."""

    def __init__(self) -> None:
        super().__init__("the turn is over: this call has no effect; return only when all is said and done")


@dataclass(frozen=True)
class ToolRun:
    """A tool call of the past. `result` is None when the call was cut off and its outcome is unknown."""

    name: str
    arguments: str
    result: str | None
    ok: bool
    # The effect of a repetition: "pure" (none), "idempotent" (the same again) or "unsafe".
    repeat: ToolClass


@dataclass(frozen=True)
class EarlierAttempt:
    """An attempt at this turn that did not end it. Its text is said: this attempt's text follows it."""

    text: str
    tools: tuple[ToolRun, ...]


@dataclass(frozen=True)
class EarlierTurn:
    """An earlier turn of the session; `cut` is "interrupted" or "failed" when it has no whole answer."""

    messages: tuple[str, ...]
    answer: str
    tools: tuple[ToolRun, ...]
    cut: Cut = ""


class Host:
    """The worker's side: carries out the calls of one agent in the worker's event loop."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._repeats = RepeatedCalls(attempt)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._is_closed = False
        # Calls that were started and not finished, with the time of their start.
        self._calls: dict[str, float] = {}
        self._calls_made = 0
        # Gets the error that ends the attempt while the agent still runs.
        self.ending: asyncio.Future[NoReturn] = self._loop.create_future()

    @property
    def attempt(self) -> Attempt:
        """For work in the worker's loop."""
        return self._attempt

    @property
    def assign(self) -> Assign:
        return self._attempt.assign

    def close(self) -> None:
        """The agent has ended; later calls of it raise ContextClosed."""
        self._is_closed = True
        if self.ending.done() and not self.ending.cancelled():
            self.ending.exception()  # seen
        self.ending.cancel()

    def submit(
        self, work: Callable[[], Awaitable[_Result]], *, waits: bool = False
    ) -> "concurrent.futures.Future[_Result]":
        """Runs the work in the worker's loop, from any thread; one that then waits must be another one."""
        if self._is_closed:
            raise ContextClosed
        if waits and threading.get_ident() == self._thread:
            raise RuntimeError("this call would block the worker: call it in another thread")
        return asyncio.run_coroutine_threadsafe(self._run(work), self._loop)

    def wait(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Runs the work in the worker's loop, and returns its result in the calling thread."""
        return self.submit(work, waits=True).result()

    async def _run(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        if self._is_closed:
            raise ContextClosed
        try:
            return await work()
        except (AttemptError, HumanNeeded, WireError) as end:
            if not self.ending.done():
                self.ending.set_exception(end)
        never: asyncio.Future[_Result] = self._loop.create_future()
        return await never

    async def say(self, text: str) -> None:
        await self._attempt.stream(text)

    async def note(self, text: str) -> None:
        self._attempt.note(text)

    async def tool_started(self, name: str, arguments: str, repeat: ToolClass) -> str:
        """Returns the call once its record is durable: only then may the tool run."""
        call = self._next_call()
        await spending.check(self._attempt, holds=True)
        await self._repeats.check(name, arguments, holds=True)
        await self._attempt.begin_tool(name, repeat, call, arguments)
        self._calls[call] = time.monotonic()
        return call

    async def refuse(self, name: str, arguments: str, repeat: ToolClass, reason: str) -> None:
        """Records a call that is not run, with the reason as its result."""
        call = self._next_call()
        await self._repeats.check(name, arguments, holds=True)
        await self._attempt.begin_tool(name, repeat, call, arguments)
        await self._attempt.end_tool(call, Report(result_text(reason), ok=False), 0.0)

    def _next_call(self) -> str:
        self._calls_made += 1
        return f"call_{self.assign.attempt}_{self._calls_made}"

    async def tool_finished(self, call: str, result: str, ok: bool) -> None:
        began = self._calls.pop(call, None)
        if began is None:
            raise ValueError(f"no tool call {call!r} is running: pass what tool_started returned, once")
        await self._attempt.end_tool(call, Report(result_text(result), ok), time.monotonic() - began)

    async def question(self, kind: QuestionKind, text: str, choices: tuple[str, ...]) -> str:
        """Returns the answer. The attempt holds for it; the same question of a later attempt has the same."""
        return await self._attempt.question(kind, text, choices, holds=True)

    async def steers(self) -> list[str]:
        return await self._attempt.take_steers()

    async def spend(self, usage: Usage, model: str = "") -> None:
        self._attempt.spend(usage, model)


class Turn:
    """What both contexts have in common: the turn as it was when the attempt began."""

    def __init__(self, host: Host) -> None:
        assign = host.assign
        self._host = host
        self.session: str = assign.session
        self.turn: str = assign.turn
        # Counts from 1; above 1 earlier attempts were lost.
        self.attempt: int = assign.attempt
        # What [agents.NAME] and [sessions."PATTERN"] in hermes.toml say beside the messages.
        self.instructions: str = assign.agent.options.get("instructions", "")
        self.messages: tuple[str, ...] = tuple(message.text for message in assign.messages)
        self.history: tuple[EarlierTurn, ...] = tuple(map(_turn, assign.history))
        self.earlier: tuple[EarlierAttempt, ...] = tuple(map(_attempt, assign.tried))

    @property
    def text(self) -> str:
        """The messages as one text."""
        return "\n\n".join(self.messages)


class Context(Turn):
    """For synchronous agents. Each method returns when it is done; call them from any thread."""

    def say(self, text: str) -> None:
        """Adds text to the answer; people see it at once."""
        _check_text("text", text)
        self._call(lambda: self._host.say(text))

    def note(self, text: str) -> None:
        """Shows a transient note, such as what the agent is doing; it is not part of the answer."""
        _check_text("text", text)
        self._call(lambda: self._host.note(text))

    def tool_started(
        self, name: str, arguments: Mapping[str, Any] | str = "", *, repeat: ToolClass = "unsafe"
    ) -> str:
        """Records that a tool is about to run; run it after this has returned."""
        written = _check_tool(name, arguments, repeat)
        return self._call(lambda: self._host.tool_started(name, written, repeat))

    def tool_finished(self, call: str, result: str = "", ok: bool = True) -> None:
        """Records the result of the call that tool_started returned."""
        _check_text("result", result)
        self._call(lambda: self._host.tool_finished(call, result, ok))

    def ask(self, text: str, choices: Sequence[str] = ()) -> str:
        """Asks a person and returns the answer. If that takes long, a later attempt gets it."""
        offered = _check_question(text, choices)
        return self._call(lambda: self._host.question("clarify", text, offered))

    def approve(self, text: str) -> bool:
        """Asks a person for permission."""
        _check_question(text, ())
        return _is_yes(self._call(lambda: self._host.question("approve", text, _APPROVAL_CHOICES)))

    def steers(self) -> list[str]:
        """Returns the messages that have come since the last call, and reports them as delivered."""
        return self._call(self._host.steers)

    def spend(self, input_tokens: int, output_tokens: int) -> None:
        """Counts tokens of a model that the agent asked itself."""
        usage = _check_usage(input_tokens, output_tokens)
        self._call(lambda: self._host.spend(usage))

    def _call(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        return self._host.wait(work)


class AsyncContext(Turn):
    """For asynchronous agents: the methods of Context, to be awaited."""

    @property
    def in_threads(self) -> Context:
        """The same for code that runs in other threads."""
        return Context(self._host)

    async def say(self, text: str) -> None:
        _check_text("text", text)
        await self._call(lambda: self._host.say(text))

    async def note(self, text: str) -> None:
        _check_text("text", text)
        await self._call(lambda: self._host.note(text))

    async def tool_started(
        self, name: str, arguments: Mapping[str, Any] | str = "", *, repeat: ToolClass = "unsafe"
    ) -> str:
        written = _check_tool(name, arguments, repeat)
        return await self._call(lambda: self._host.tool_started(name, written, repeat))

    async def tool_finished(self, call: str, result: str = "", ok: bool = True) -> None:
        _check_text("result", result)
        await self._call(lambda: self._host.tool_finished(call, result, ok))

    async def ask(self, text: str, choices: Sequence[str] = ()) -> str:
        offered = _check_question(text, choices)
        return await self._call(lambda: self._host.question("clarify", text, offered))

    async def approve(self, text: str) -> bool:
        _check_question(text, ())
        return _is_yes(await self._call(lambda: self._host.question("approve", text, _APPROVAL_CHOICES)))

    async def steers(self) -> list[str]:
        return await self._call(self._host.steers)

    async def spend(self, input_tokens: int, output_tokens: int) -> None:
        usage = _check_usage(input_tokens, output_tokens)
        await self._call(lambda: self._host.spend(usage))

    async def _call(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        return await asyncio.wrap_future(self._host.submit(work))


def _is_yes(answer: str) -> bool:
    return answer.strip().lower() in _YES


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, and a text is needed: pass a str")


def _check_tool(name: str, arguments: Mapping[str, Any] | str, repeat: str) -> str:
    """Returns the arguments as they are recorded: JSON."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS_MAX:
        raise ValueError(f"a tool needs a name of 1 to {NAME_CHARACTERS_MAX} characters")
    if repeat not in get_args(ToolClass):
        raise ValueError(f"repeat is {repeat!r}: pass one of {', '.join(get_args(ToolClass))}")
    written = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    if len(written) > TEXT_CHARACTERS_MAX:
        raise ValueError(f"the arguments have more than {TEXT_CHARACTERS_MAX} characters: record a summary")
    return written


def _check_question(text: str, choices: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(text, str) or not text.strip() or len(text) > SENTENCE_CHARACTERS_MAX:
        raise ValueError(f"a question needs a text of 1 to {SENTENCE_CHARACTERS_MAX} characters")
    offered = tuple(choices)
    if isinstance(choices, str) or not all(isinstance(each, str) and each for each in offered):
        raise ValueError("choices are a list of texts that are not empty")
    if len(offered) > _CHOICES_MAX or any(len(each) > SENTENCE_CHARACTERS_MAX for each in offered):
        raise ValueError(
            f"at most {_CHOICES_MAX} choices of {SENTENCE_CHARACTERS_MAX} characters can be offered"
        )
    return offered


def _check_usage(input_tokens: int, output_tokens: int) -> Usage:
    for count in (input_tokens, output_tokens):
        if not isinstance(count, int) or not 0 <= count <= _TOKENS_MAX:
            raise ValueError(f"a number of tokens is a whole number from 0 to {_TOKENS_MAX}")
    return Usage(input_tokens, output_tokens)


def _turn(past: PastTurn) -> EarlierTurn:
    return EarlierTurn(
        past.messages,
        "".join(attempt.text for attempt in past.attempts),
        tuple(_tool(tool) for attempt in past.attempts for tool in attempt.tools),
        past.attempts[-1].cut if past.attempts else "",
    )


def _attempt(past: PastAttempt) -> EarlierAttempt:
    return EarlierAttempt(past.text, tuple(map(_tool, past.tools)))


def _tool(trace: ToolTrace) -> ToolRun:
    return ToolRun(trace.name, trace.arguments, trace.result, trace.ok, trace.repeat)
