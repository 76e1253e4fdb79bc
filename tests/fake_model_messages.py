"""The fake model server as Anthropic's Messages API has it: the same script, in other events.

A request is turned into the form of a chat completion first. So modes, directives and records are the same
for both, and a test does not care which API its agent speaks.
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.fake_model_exchange import Exchange
from tests.fake_model_script import arguments_of

_Json = dict[str, Any]
_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
# Claude Code's own words in the person's message.
_REMINDER = "<system-reminder>"


def chat_request(body: _Json) -> _Json:
    """The request as a chat completion would have it."""
    messages = [{"role": "system", "content": _text(body["system"])}] if body.get("system") else []
    for message in body.get("messages", ()):
        messages += _ROLES[message["role"]](message)
    tools = [{"type": "function", "function": {"name": tool["name"]}} for tool in body.get("tools") or ()]
    return {**body, "messages": messages, "tools": tools}


def _assistant(message: _Json) -> Iterator[_Json]:
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in _blocks(message["content"])
        if block["type"] == "tool_use"
    ]
    content = _text(message["content"])
    yield {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})


def _user(message: _Json) -> Iterator[_Json]:
    """Results of tools, then what the person said."""
    for block in _blocks(message["content"]):
        if block["type"] == "tool_result":
            result = _text(block.get("content") or "")
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": result}
    if said := _text(message["content"]):
        yield {"role": "user", "content": said}


def _system(message: _Json) -> Iterator[_Json]:
    yield {"role": "system", "content": _text(message["content"])}


_ROLES = {"assistant": _assistant, "user": _user, "system": _system}


def _text(content: str | list[_Json]) -> str:
    texts = [block["text"] for block in _blocks(content) if block["type"] == "text"]
    return "\n\n".join(text for text in texts if not text.startswith(_REMINDER))


def _blocks(content: str | list[_Json]) -> list[_Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class MessagesExchange(Exchange):
    """Writes the answer as blocks of content: texts and uses of tools."""

    async def _stream(self) -> None:
        await self._start("text/event-stream")
        await self._named_event("message_start", message=self._message([], None))
        calls = self._script.calls() if self._record.tools else []
        if not calls:
            await self._text_block()
        for index, call in enumerate(calls):
            await self._tool_block(index, call)
        delta = {"stop_reason": self._stop_reason(bool(calls)), "stop_sequence": None}
        await self._named_event("message_delta", delta=delta, usage=self._usage())
        await self._named_event("message_stop")
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _complete(self) -> None:
        calls = self._script.calls() if self._record.tools else []
        if calls:
            content = [
                {
                    "type": "tool_use",
                    "id": self._call_id(index),
                    "name": call["name"],
                    "input": json.loads(arguments_of(call)),
                }
                for index, call in enumerate(calls)
            ]
        else:
            content = [{"type": "text", "text": await self._whole_text()}]
        answer = self._message(content, self._stop_reason(bool(calls)))
        await self._whole(200, "application/json", json.dumps(answer), {})

    async def _text_block(self) -> None:
        await self._named_event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        async for token in self._script.tokens(self._pause):
            self._check_client()
            delta = {"type": "text_delta", "text": token}
            await self._named_event("content_block_delta", index=0, delta=delta)
            self._counted()
        await self._named_event("content_block_stop", index=0)

    async def _tool_block(self, index: int, call: _Json) -> None:
        block = {"type": "tool_use", "id": self._call_id(index), "name": call["name"], "input": {}}
        await self._named_event("content_block_start", index=index, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": arguments_of(call)}
        await self._named_event("content_block_delta", index=index, delta=delta)
        await self._named_event("content_block_stop", index=index)

    def _message(self, content: list[_Json], stop_reason: str | None) -> _Json:
        return {
            "id": f"msg_fake_{self._record.number}",
            "type": "message",
            "role": "assistant",
            "model": self._record.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(),
        }

    def _stop_reason(self, calls_tools: bool) -> str:
        finish = "tool_calls" if calls_tools else str(self._script.option("finish", "stop"))
        return _STOP_REASONS.get(finish, finish)

    def _usage(self) -> dict[str, int]:
        usage = super()._usage()
        return {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}

    async def _named_event(self, name: str, **fields: Any) -> None:
        await self._write(f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode())
