"""What an ACP agent reports while it answers, as text, notes and records of an attempt.

| update | becomes |
| --- | --- |
| agent_message_chunk | text |
| agent_thought_chunk | a note with a count; the thought itself is neither the answer nor history |
| tool_call, tool_call_update | records of the start and the end of a tool call |
| plan | a note |
| others | nothing |

A tool call is announced before its arguments are known, by some agents. Its start is recorded when the
arguments or a content come, when it begins or ends, or when the agent asks for permission; the permission
is given after that record is durable. `hermes acp` sends a content and then nothing until the end. A tool
that needs no permission has begun by then: the agent runs it, not this host. The third of the same calls in
a row asks a person at that moment; one that needs a permission has not begun, any other may end meanwhile.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from typing import Any

from acp import schema

from ipc.bounds import ID_CHARACTERS_MAX, TEXT_CHARACTERS_MAX
from ipc.messages import ToolClass
from worker.attempt import Attempt, result_text
from worker.repeated_calls import RepeatedCalls
from worker.tools import Report

_PURE_KINDS = frozenset({"read", "search", "fetch", "think"})
_NOTE_SECONDS = 0.5
_ENDED = frozenset({"completed", "failed"})
NO_RESULT = "the agent reported no result of this call"


@dataclass(slots=True)
class Call:
    """A tool call as far as the agent has described it."""

    id: str  # in our records
    kind: str = "other"
    title: str = ""
    arguments: Any = None
    output: str = ""
    began: float | None = None  # when its start was recorded
    is_over: bool = False

    @property
    def repeat(self) -> ToolClass:
        return "pure" if self.kind in _PURE_KINDS else "unsafe"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments; of a call without any, its title."""
        if isinstance(self.arguments, dict) and self.arguments:
            return self.arguments
        return {"title": self.title} | ({"input": self.arguments} if self.arguments else {})

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.given, ensure_ascii=False, default=str)[: TEXT_CHARACTERS_MAX // 2]


class Updates:
    """The updates of one prompt, taken one after the other."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._repeats = RepeatedCalls(attempt)
        self._calls: dict[str, Call] = {}
        self._has_called = False
        self._thought = 0
        self._noted_at = 0.0

    async def take(self, update: Any) -> None:
        match update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
                await self._text(text)
            case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
                self._think(len(text))
            case schema.ToolCallStart() | schema.ToolCallProgress():
                await self._call(update)
            case schema.AgentPlanUpdate(entries=entries):
                self._attempt.note(
                    "plan: " + "; ".join(f"{each.content} [{each.status}]" for each in entries)
                )

    async def begin(self, update: schema.ToolCallUpdate) -> Call:
        """Records the start of a call that needs a permission; returns once that is durable."""
        call = self._described(update)
        await self._start(call)
        return call

    async def end(self, call: Call, report: Report) -> None:
        """Records the end of a call once; what the agent reports of it later is dropped."""
        if not call.is_over:
            await self._start(call)
            call.is_over = True
            report = replace(report, text=result_text(report.text))
            await self._attempt.end_tool(call.id, report, self._loop.time() - (call.began or 0.0))

    async def close(self) -> None:
        """Ends the calls of which the agent has not reported the end."""
        for call in self._calls.values():
            if call.began is not None:
                await self.end(call, Report(call.output or NO_RESULT, ok=False))

    async def _text(self, text: str) -> None:
        if text and self._has_called:
            self._has_called = False
            # Text before a tool call and text after it are two paragraphs.
            if (said := self._attempt.text) and not said.endswith("\n") and not text.startswith("\n"):
                text = "\n\n" + text
        await self._attempt.stream(text)

    def _think(self, characters: int) -> None:
        self._thought += characters
        now = self._loop.time()
        if now - self._noted_at >= _NOTE_SECONDS:
            self._noted_at = now
            self._attempt.note(f"thinking… {self._thought:,} characters", replaces=True)

    async def _call(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> None:
        call = self._described(update)
        if call.is_over:
            return
        if update.status in _ENDED:
            await self.end(call, Report(call.output, ok=update.status == "completed"))
        elif call.arguments or update.content or update.status == "in_progress":
            await self._start(call)
            if update.content and call.output:
                self._attempt.note(call.output[-400:], call=call.id, replaces=True)

    def _described(self, update: schema.ToolCall | schema.ToolCallUpdate) -> Call:
        call = self._calls.get(update.tool_call_id)
        if call is None:
            call = self._calls[update.tool_call_id] = Call(self._own_id(update.tool_call_id))
        self._has_called = True
        call.kind = update.kind or call.kind
        call.title = update.title or call.title
        call.arguments = update.raw_input or call.arguments
        call.output = _output(update) or call.output
        return call

    async def _start(self, call: Call) -> None:
        if call.began is None:
            call.began = self._loop.time()
            await self._repeats.check(call.kind, call.arguments_text, holds=True)
            await self._attempt.begin_tool(call.kind, call.repeat, call.id, call.arguments_text)

    def _own_id(self, given: str) -> str:
        """The agent's id if it can be recorded: a loaded session may count from the beginning again."""
        assign = self._attempt.assign
        past = {tool.call for attempt in assign.tried for tool in attempt.tools}
        if 0 < len(given) <= ID_CHARACTERS_MAX and given not in past:
            return given
        return f"acp_{assign.attempt}_{len(self._calls) + 1}"


def _output(update: schema.ToolCall | schema.ToolCallUpdate) -> str:
    """The text of a call's content, or its raw output."""
    parts = []
    for each in update.content or ():
        match each:
            case schema.ContentToolCallContent(content=schema.TextContentBlock(text=text)):
                parts.append(text)
            case schema.FileEditToolCallContent(path=path):
                parts.append(f"[changed {path}]")
    if parts:
        return "\n".join(parts)
    raw = update.raw_output
    if raw is None or isinstance(raw, str):
        return raw or ""
    return json.dumps(raw, ensure_ascii=False, default=str)
