"""One attempt at a turn: sends the agent's text and tool calls as frames, in order, and ends exactly once."""

import asyncio
import json
import time
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from ipc.bounds import NAME_CHARACTERS_MAX, TEXT_CHARACTERS_MAX, sentence
from ipc.errors import WireError
from ipc.messages import (
    AgentFault,
    Answered,
    Asked,
    Assign,
    Delta,
    Failed,
    Finished,
    ModelAway,
    Noted,
    QuestionKind,
    Steer,
    Steered,
    ToolClass,
    ToolFinished,
    ToolStarted,
    Usage,
)
from worker import log
from worker.errors import AgentError, AttemptError, HumanNeeded, InputNeeded, ModelError
from worker.held_questions import HeldQuestions
from worker.outbox import Outbox
from worker.tools import Note, Report, Tool

# One Delta: small enough that a burst of text does not hold the loop or the socket for long.
_DELTA_CHARACTERS_MAX = 32_768
# As much as a model can use; a longer result is cut in the middle, where logs have the least information.
_RESULT_CHARACTERS_MAX = 64_000
_SUMMARY_CHARACTERS_MAX = 120
_NOTE_CHARACTERS_MAX = 500
# More than a person types during one tool call; further ones become the next message.
_STEERS_MAX = 32

# Returns why the model ended its answer: the `finish` of its Finished.
Answer = Callable[["Attempt"], Awaitable[str]]
# Ends every process that the agent left; returns false when that takes too long.
EndProcesses = Callable[[], Awaitable[bool]]


async def _no_processes() -> bool:
    return True


class Attempt:
    """The agent's interface to the supervisor. A method that waits does so until the supervisor keeps up."""

    def __init__(self, assign: Assign, outbox: Outbox) -> None:
        self.assign = assign
        self._outbox = outbox
        self._texts: list[str] = []
        self._length = 0
        self._pending: list[str] = []
        self._pending_length = 0
        self._steers: deque[Steer] = deque()
        self._questions = HeldQuestions(assign, outbox)
        self._usage = Usage()
        self._model = ""  # that gave the last reply
        self._is_over = False
        self.is_cancelled = False
        # What an agent does that can end its turn by itself; others are killed.
        self.on_cancel: Callable[[], object] = lambda: None
        self.has_left_processes = False
        # Threads of the agent: no other attempt may share their process.
        self.has_left_threads = False

    @property
    def text(self) -> str:
        """The text of this attempt so far."""
        return "".join(self._texts)

    @property
    def offset(self) -> int:
        """Length of the text so far in code points, including earlier attempts at the turn."""
        return self.assign.offset + self._length

    @property
    def usage(self) -> Usage:
        """The use of this attempt so far."""
        return self._usage

    def cancel(self) -> None:
        """The turn was interrupted: has the agent end it, if it can, before the worker is killed."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self.on_cancel()

    async def run(self, answer: Answer, end_processes: EndProcesses = _no_processes) -> None:
        """Runs the agent, ends its processes, and then sends the end of the attempt.

        A value that no frame can carry ends it as Failed too.
        """
        try:
            await self._run(answer, end_processes)
        except WireError as error:
            await self._fail(error.fault, error.hint)

    async def _run(self, answer: Answer, end_processes: EndProcesses) -> None:
        task = asyncio.current_task()
        try:
            try:
                finish = await answer(self)
            finally:
                if not await end_processes():
                    self.has_left_processes = True
                    raise AgentError("it left processes that could not be ended", "send it again", again=True)
        except HumanNeeded as question:
            self._end()
            turn, attempt = self.assign.turn, self.assign.attempt
            asked = question.call, question.kind, question.text, question.choices
            await self._outbox.send(Asked(turn, attempt, *asked, usage=self._usage, model=self._model))
        except AttemptError as error:
            if error.cannot_start:
                await self._outbox.send(AgentFault(sentence(error.error), sentence(error.hint)))
            waiting = error.wait_seconds if error.outage else None
            await self._fail(error.error, error.hint, error.again, waiting, getattr(error, "endpoint", ""))
        except WireError:
            raise
        except asyncio.CancelledError:
            # A cancellation of this task; otherwise something inside the agent was cancelled.
            if task is None or task.cancelling():
                raise
            await self._fail("the agent cancelled itself", "send the message again", True)
        except Exception as error:
            print_trace(error)
            name = type(error).__name__
            await self._fail(f"the agent broke ({name})", "the worker's log says where: hermesctl logs")
        else:
            self._end()
            turn, attempt = self.assign.turn, self.assign.attempt
            await self._outbox.send(Finished(turn, attempt, self.text, self._usage, finish, self._model))

    async def stream(self, text: str) -> None:
        """Streams text. The text of one iteration of the loop is sent as one Delta."""
        self._check_open()
        text = clean(text)
        if self.offset + len(text) > TEXT_CHARACTERS_MAX:
            raise AgentError(
                f"the answer grew past {TEXT_CHARACTERS_MAX} characters", "ask for less at a time"
            )
        for start in range(0, len(text), _DELTA_CHARACTERS_MAX):
            await self._outbox.room()
            self._check_open()
            self._send_text(text[start : start + _DELTA_CHARACTERS_MAX])

    def spend(self, usage: Usage, model: str = "") -> None:
        """Adds the tokens of a reply of that model, however the attempt ends."""
        self._model = model[:NAME_CHARACTERS_MAX]
        self._usage += usage

    async def model_away(self, error: ModelError) -> None:
        """Reports that a model could not be reached; the attempt goes on with another one."""
        self._check_open()
        told = sentence(error.endpoint), sentence(error.error), sentence(error.hint), error.wait_seconds
        await self._outbox.send(ModelAway(self.assign.turn, self.assign.attempt, *told))

    def note(self, text: str, *, call: str = "", replaces: bool = False) -> None:
        """Sends a transient note; it is not part of the history."""
        self._check_open()
        text = clean(text)[:_NOTE_CHARACTERS_MAX]
        self._outbox.post_fleeting(Noted(self.assign.turn, self.assign.attempt, text, call, replaces))

    async def tool(self, tool: Tool, call: str, arguments: str) -> Report:
        """Runs a tool after its record is durable, and returns its result for the model.

        Several may run at once. Their frames have the order of the events.
        """
        arguments = clean(arguments)
        await self.begin_tool(tool.name, tool.repeat, call, arguments)
        began = time.monotonic()
        try:
            report = await _run(tool, arguments, partial(self.note, call=call))
        except InputNeeded as needed:
            # The call stays open; a later attempt gets the answer as its result.
            text, choices = sentence(clean(needed.text)), tuple(map(clean, needed.choices))
            raise HumanNeeded("clarify", text, choices, call) from None
        await self.end_tool(call, report, time.monotonic() - began)
        return report

    async def refuse(self, tool: Tool, call: str, arguments: str, text: str) -> str:
        """Records a call that is not run, with the reason as its result."""
        await self.begin_tool(tool.name, tool.repeat, call, arguments)
        await self.end_tool(call, Report(result_text(text), ok=False), 0.0)
        return text

    async def end_tool(self, call: str, report: Report, seconds: float) -> None:
        """Records the result of a call that `begin_tool` recorded; its text is one of `result_text`."""
        self._check_open()
        frame = ToolFinished(
            turn=self.assign.turn,
            attempt=self.assign.attempt,
            call=call,
            ok=report.ok,
            ms=int(seconds * 1000),
            result=report.text,
            exit=report.exit,
            signal=report.signal,
        )
        await self._outbox.send(frame)

    async def question(
        self,
        kind: QuestionKind,
        text: str,
        choices: tuple[str, ...] = (),
        call: str = "",
        holds: bool = False,
    ) -> str:
        """Returns a person's answer. The same question is asked once in a turn, however many attempts it has.

        Without `holds` a new question ends the attempt, and a later attempt asks again and gets the answer.
        With it the attempt goes on and this waits; without an answer in time, the worker is killed. `call`
        is the running tool call that the question is about.
        """
        self._check_open()
        text, choices = clean(text), tuple(map(clean, choices))
        if (answer := self._questions.known(kind, text)) is not None:
            return answer
        if not holds:
            raise HumanNeeded(kind, text, choices, call)
        self._flush()
        return await self._questions.ask(kind, text, choices, call, self._usage, self._model)

    def answers(self, kind: QuestionKind) -> dict[str, str]:
        """Returns the answers that the turn has to questions of this kind, by their texts."""
        return self._questions.answers(kind)

    def answered(self, answered: Answered) -> None:
        """Delivers an answer that the attempt holds for."""
        if not self._is_over:
            self._questions.answered(answered)

    async def ask(
        self,
        tool: Tool,
        call: str,
        arguments: str,
        text: str,
        choices: tuple[str, ...],
        kind: QuestionKind = "clarify",
    ) -> NoReturn:
        """Records a call and ends the attempt with a question about it.

        A later attempt gets the answer to a clarification as the result of this call.
        """
        await self.begin_tool(tool.name, tool.repeat, call, arguments)
        raise HumanNeeded(kind, clean(text), tuple(map(clean, choices)), call)

    async def begin_tool(self, name: str, repeat: ToolClass, call: str, arguments: str) -> None:
        """Records the start of a tool, and waits until the record is durable."""
        self._check_open()
        self._flush()
        arguments = clean(arguments)
        frame = await self._outbox.send(
            ToolStarted(
                turn=self.assign.turn,
                attempt=self.assign.attempt,
                call=call,
                name=name,
                summary=_summary(arguments),
                arguments=arguments,
                repeat=repeat,
                offset=self._length,
                usage=self._usage,
                model=self._model,
            )
        )
        await self._outbox.acknowledged(frame)

    def steer(self, steer: Steer) -> None:
        """Keeps a message for the agent's next tool boundary; above the limit it waits for the next turn."""
        if not self._is_over and len(self._steers) < _STEERS_MAX:
            self._steers.append(steer)

    async def take_steers(self) -> list[str]:
        """Returns the texts received since the last boundary, and reports each as delivered."""
        self._check_open()
        texts: list[str] = []
        while self._steers:
            steer = self._steers.popleft()
            await self._outbox.send(Steered(self.assign.turn, self.assign.attempt, steer.message))
            texts.append(steer.text)
        return texts

    def _send_text(self, text: str) -> None:
        if self._pending_length + len(text) > _DELTA_CHARACTERS_MAX:
            self._flush()
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending.append(text)
        self._pending_length += len(text)
        self._texts.append(text)
        self._length += len(text)

    def _flush(self) -> None:
        if self._pending:
            text = "".join(self._pending)
            offset = self.offset - self._pending_length
            self._pending.clear()
            self._pending_length = 0
            assign = self.assign
            self._outbox.post(Delta(assign.session, assign.turn, assign.attempt, offset, text))

    async def _fail(
        self,
        error: str,
        hint: str,
        again: bool = False,
        outage_seconds: int | None = None,
        endpoint: str = "",
    ) -> None:
        """`outage_seconds`: the model at `endpoint` could not be reached, and asks for that pause."""
        self._end()
        frame = Failed(
            turn=self.assign.turn,
            attempt=self.assign.attempt,
            error=sentence(error),
            hint=sentence(hint),
            again=again,
            usage=self._usage,
            outage=outage_seconds is not None,
            wait_seconds=outage_seconds or 0,
            endpoint=sentence(endpoint) if outage_seconds is not None else "",
            model=self._model,
        )
        await self._outbox.send(frame)

    def _end(self) -> None:
        self._flush()
        self._is_over = True

    def _check_open(self) -> None:
        if self._is_over:
            raise RuntimeError("the attempt is over")


async def _run(tool: Tool, arguments: str, note: Note) -> Report:
    """Returns the result of the call, or its fault, which the model gets so that it can correct the call."""
    try:
        given: Any = json.loads(arguments or "{}")
    except ValueError:
        return Report("error: the arguments are not valid JSON", ok=False)
    except RecursionError:
        return Report("error: the arguments are nested too deeply", ok=False)
    if not isinstance(given, dict):
        return Report("error: the arguments are not a JSON object", ok=False)
    try:
        given_back = await tool.run(given, note)
    except (AttemptError, InputNeeded):
        raise
    except Exception as error:
        return Report(result_text(f"error: {type(error).__name__}: {error}"), ok=False)
    report = Report(given_back) if isinstance(given_back, str) else given_back
    return replace(report, text=result_text(report.text))


def result_text(text: str) -> str:
    """Returns the result of a tool as it can be recorded."""
    text = clean(text)
    if len(text) <= _RESULT_CHARACTERS_MAX:
        return text
    half = _RESULT_CHARACTERS_MAX // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _summary(arguments: str) -> str:
    line = " ".join(arguments.split())
    return line if len(line) <= _SUMMARY_CHARACTERS_MAX else line[: _SUMMARY_CHARACTERS_MAX - 1] + "…"


def clean(text: str) -> str:
    """Replaces unpaired surrogates, which JSON can carry and UTF-8 cannot, by question marks."""
    return text.encode(errors="replace").decode()


def print_trace(error: BaseException) -> None:
    """Prints the traceback without the exception's message, which may quote a person."""
    trace = "".join(traceback.format_tb(error.__traceback__))
    print(trace, type(error).__name__, file=log.stream(), flush=True)
