"""The built-in agent: a conversation with a model that may use tools; steers arrive between tool calls."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from ipc.bounds import ID_CHARACTERS_MAX
from ipc.message_parts import MCP_ENTRY
from ipc.messages import AgentSpec, Setup, Usage
from worker.agents import rehearsal
from worker.agents.approved_calls import WAITING, approved_calls, unfinished_call
from worker.agents.chat_messages import GO_ON, ChatMessage
from worker.agents.context_window import Window
from worker.agents.written_calls import HeldText, written_calls
from worker.approvals import CHOICES, Approvals
from worker.attempt import Attempt
from worker.errors import AgentError, ContextOverflow
from worker.model import Model, Reply, ToolCall
from worker.model_chain import ModelChain
from worker.model_faults import empty_answer
from worker.repeated_calls import RepeatedCalls
from worker.tools import MakeTool, Tool
from worker.tools.ask import Ask, Question, read_question
from worker.tools.fetch import Fetch
from worker.tools.files import Edit, Read, Write
from worker.tools.shell import Shell

if TYPE_CHECKING:
    from worker.mcp_servers.server_tools import ServerTools

# Short on purpose: a longer one makes the small embedded model answer in nonsense.
_SYSTEM = "You are a helpful assistant."
# Some 50,000 tokens: half of the context of common models, the other half is for this turn's tools and
# answer.
_HISTORY_CHARACTERS_MAX = 200_000
# The context of a model whose settings do not say it.
_CONTEXT_TOKENS = 128_000
# Rounds of tool calls in one attempt; a model that needs more is looping.
_ROUNDS_MAX = 50
# More commands than this at once slow each other down on most hosts; the others begin as these end.
_CALLS_AT_ONCE = 8

_Option = TypeVar("_Option", str, int)
_TYPE_NAMES: dict[type, str] = {str: "a text", int: "a whole number"}
_TOOLS: Mapping[str, MakeTool] = MappingProxyType(
    {tool.name: tool for tool in (Shell, Read, Write, Edit, Fetch, Ask)}
)
# What `fetch_private` in the settings of an agent changes.
_FETCH_PRIVATE: Mapping[str, MakeTool] = MappingProxyType({Fetch.name: partial(Fetch, private=True)})


def load(entry: str) -> "BuiltinKind":
    return BuiltinKind(has_servers=entry == MCP_ENTRY)


class BuiltinKind:
    """Built-in agents, which share the model client of their worker."""

    def __init__(self, has_servers: bool = False) -> None:
        self._model = Model()
        self._has_servers = has_servers

    def rehearse(self) -> None:
        rehearsal.rehearse(Builtin)
        if self._has_servers:
            # Only here: importing the SDK takes 0.9 s of CPU, and most agents have no servers.
            from worker.mcp_servers import client_rehearsal

            client_rehearsal.rehearse()

    def agent(self, spec: AgentSpec) -> "Builtin":
        return Builtin(spec, self._model)


class Builtin:
    """Calls the model, runs its tool calls, and calls it again until it sends text only."""

    def __init__(self, spec: AgentSpec, model: Model, tools: Mapping[str, MakeTool] = _TOOLS) -> None:
        self._model = model
        self._known_tools = tools
        self._servers: ServerTools | None = None
        # Set up once, it answers all turns of its worker, whose options may change.
        self._is_kept = False
        self._tools: dict[str, Tool] = {}
        self._read(spec)

    def _read(self, spec: AgentSpec) -> None:
        self._spec, tools = spec, self._known_tools
        if spec.options.get("fetch_private"):
            tools = {**tools, **_FETCH_PRIVATE}
        self._made_by = {name: _named(name, tools, spec) for name in spec.options.get("tools", ())}
        parts = (_option(spec, "system", _SYSTEM), _option(spec, "instructions", ""))
        self._system = "\n\n".join(part for part in parts if part)
        self._characters_max = _option(spec, "history_characters_max", _HISTORY_CHARACTERS_MAX)

    async def set_up(self, setup: Setup) -> None:
        """Starts the MCP servers, which live as long as the worker."""
        self._is_kept = True
        if setup.servers:
            # The zygote of agents with servers has imported it.
            from worker.mcp_servers.server_tools import ServerTools

            self._servers = ServerTools()
            await self._servers.set_up(setup, self._made_by)

    async def answer(self, attempt: Attempt) -> str:
        if self._is_kept and attempt.assign.agent != self._spec:
            self._read(attempt.assign.agent)
        self._approvals = Approvals(self._spec, attempt)
        self._repeats = RepeatedCalls(attempt)
        self._tools = {name: make() for name, make in self._made_by.items()}
        if self._servers is not None:
            self._tools |= self._servers.make()
            for note in self._servers.take_notes():
                attempt.note(note)
        try:
            return await self._converse(attempt)
        finally:
            for tool in self._tools.values():
                tool.close()

    async def _converse(self, attempt: Attempt) -> str:
        self._schemas = [_schema(tool) for tool in self._tools.values()]
        window = Window(attempt.assign, self._system, self._characters_max, self._schemas)
        models = ModelChain(self._model, attempt)
        await self._make_approved_calls(attempt, window)
        await self._call_again(attempt, window)
        for rounds_left in range(_ROUNDS_MAX, -1, -1):
            reply = await self._ask(attempt, window, models)
            if not reply.calls:
                if _has_no_text(attempt):
                    raise empty_answer(reply.finish, reply.thought)
                return reply.finish
            if rounds_left:
                await self._use_tools(attempt, window, reply)
        raise AgentError(
            f"the model called tools {_ROUNDS_MAX} times without coming to an answer",
            "say what to do in smaller steps, or choose another [model] name in hermes.toml",
        )

    async def _ask(self, attempt: Attempt, window: Window, models: ModelChain) -> Reply:
        """Returns the model's next reply; shortens a conversation that is too long for the model."""
        offset_before = attempt.offset

        async def on_text(text: str) -> None:
            if not (text := held.take(text) if self._tools else text):
                return
            # Text before a tool call and text after it are two paragraphs. Text that was cut off continues.
            if offset_before and attempt.offset == offset_before and window.messages[-1] != GO_ON:
                await attempt.stream("\n\n")
            await attempt.stream(text)

        was_cut = window.is_cut
        window.fit(models.context_tokens or _CONTEXT_TOKENS)
        while True:
            if window.is_cut and not was_cut:
                attempt.note("the conversation is too long for the model; its oldest parts are left out")
                was_cut = True
            held = HeldText()
            try:
                reply = await models.answer(window.messages, self._schemas, on_text)
            except ContextOverflow as error:
                if attempt.offset > offset_before:
                    # Streamed text must not be repeated: another attempt continues where it stopped.
                    error.again = True
                    raise
                if not window.cut():
                    raise
            else:
                window.counted(reply.usage.input_tokens)
                rest = held.release()
                if calls := written_calls(rest, self._tools):
                    return replace(reply, text="", calls=reply.calls or calls)
                if rest:
                    await on_text(rest)
                return reply

    async def _make_approved_calls(self, attempt: Attempt, window: Window) -> None:
        if calls := approved_calls(attempt.assign):
            await self._use_tools(attempt, window, Reply("", calls, Usage()))

    async def _call_again(self, attempt: Attempt, window: Window) -> None:
        """Continues the call of an MCP tool that asked a person, with the answers it has had until now."""
        found = unfinished_call(attempt.assign)
        if found is None or self._servers is None:
            return
        last, answers = found
        tool = self._tools.get(last.name)
        if tool is None or last.name in self._made_by:
            return
        self._servers.give_answers(tool, answers)
        await self._use_tools(attempt, window, Reply("", (ToolCall("", last.name, last.arguments),), Usage()))

    async def _use_tools(self, attempt: Attempt, window: Window, reply: Reply) -> None:
        taken = {message["tool_call_id"] for message in window.messages if message["role"] == "tool"}
        calls = _with_own_ids(reply.calls, taken)
        for call in calls:
            await self._repeats.check(call.name, call.arguments)
        window.add(_calling(reply, calls))
        asking = next((call for call in calls if self._needs_person(call)), None)
        window.add(*await self._use_all(attempt, [call for call in calls if call is not asking]))
        if asking is not None:
            await self._ask_person(attempt, asking)
        window.add(*({"role": "user", "content": text} for text in await attempt.take_steers()))

    async def _use_all(self, attempt: Attempt, calls: list[ToolCall]) -> list[ChatMessage]:
        """Runs the calls side by side; returns the results in the order of the calls."""
        slots = asyncio.Semaphore(_CALLS_AT_ONCE)

        async def use(call: ToolCall) -> ChatMessage:
            async with slots:
                content = await self._use(attempt, call)
            return {"role": "tool", "tool_call_id": call.call, "content": content}

        tasks = [asyncio.create_task(use(call)) for call in calls]
        # A call that fails the attempt waits for the others: each gets a result, which is recorded.
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks]

    def _needs_person(self, call: ToolCall) -> bool:
        if self._question_of(call):
            return True
        return (
            call.name in self._tools and self._approvals.verdict(call.name, call.arguments).decision == "ask"
        )

    async def _ask_person(self, attempt: Attempt, call: ToolCall) -> None:
        """Ends the attempt with a question of the model, or with one about the call itself."""
        tool = self._tools[call.name]
        verdict = self._approvals.verdict(call.name, call.arguments)
        if verdict.decision == "ask":
            await attempt.ask(tool, call.call, call.arguments, verdict.text, CHOICES, "approve")
        elif question := self._question_of(call):
            await attempt.ask(tool, call.call, call.arguments, question.question, question.choices)

    def _question_of(self, call: ToolCall) -> Question | None:
        """Returns the question of a call of the ask tool, if no rule denies it."""
        if not isinstance(self._tools.get(call.name), Ask):
            return None
        is_denied = self._approvals.verdict(call.name, call.arguments).decision == "deny"
        return None if is_denied else read_question(call.arguments)

    async def _use(self, attempt: Attempt, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            return f"error: there is no tool of that name; there are: {', '.join(self._tools) or 'none'}"
        verdict = self._approvals.verdict(call.name, call.arguments)
        if verdict.decision != "allow":
            reason = verdict.text if verdict.decision == "deny" else WAITING
            return await attempt.refuse(tool, call.call, call.arguments, reason)
        return (await attempt.tool(tool, call.call, call.arguments)).text


def _has_no_text(attempt: Attempt) -> bool:
    """True without text in this and earlier attempts: a complete answer may end without further text."""
    return not attempt.text.strip() and not any(past.text.strip() for past in attempt.assign.tried)


def _calling(reply: Reply, calls: list[ToolCall]) -> ChatMessage:
    """Returns the reply in the form that the model gets back, with the reasoning of its calls."""
    made = [
        {
            "id": call.call,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": reply.text or None, **reply.reasoning, "tool_calls": made}


def _with_own_ids(calls: tuple[ToolCall, ...], taken: set[str]) -> list[ToolCall]:
    """Some servers number calls from zero in every answer, or not at all; a result must match its call."""
    named: list[ToolCall] = []
    for call in calls:
        usable = 0 < len(call.call) <= ID_CHARACTERS_MAX and call.call not in taken
        name = call.call if usable else f"call_{len(taken) + 1}"
        while name in taken:
            name += "_"
        taken.add(name)
        named.append(ToolCall(name, call.name, call.arguments))
    return named


def _named(name: str, tools: Mapping[str, MakeTool], spec: AgentSpec) -> MakeTool:
    if name not in tools:
        raise AgentError(
            f"there is no tool named {name!r}",
            f"set [agents.{spec.name}] tools in hermes.toml to some of: {', '.join(tools)}",
        )
    return tools[name]


def _schema(tool: Tool) -> ChatMessage:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _option(spec: AgentSpec, name: str, default: _Option) -> _Option:
    value = spec.options.get(name, default)
    if not isinstance(value, type(default)):
        raise AgentError(
            f"{name} of the agent {spec.name!r} is not {_TYPE_NAMES[type(default)]}",
            f"correct [agents.{spec.name}] {name} in hermes.toml",
        )
    return value
