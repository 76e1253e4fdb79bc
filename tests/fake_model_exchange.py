"""One request of the fake model server and its answer, as OpenAI's chat completions API has them."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Send

from tests.fake_model_cruelty import CRUELTIES, Mistreatment
from tests.fake_model_script import GARBAGE, REFUSALS, Cut, Script, arguments_of, tokens_of


@dataclass
class Record:
    """One chat request as the server saw it; `disconnected` says the client left before the answer's end."""

    number: int
    began: float
    model: str
    mode: str
    messages: list[dict[str, Any]]
    tools: list[str]
    key: str
    # The client's port: two requests with the same one came over the same connection.
    port: int
    tokens: int = 0
    ended: bool = False
    disconnected: bool = False


class _Left(Exception):
    """The client has disconnected."""


class Exchange:
    """One request and its answer, aware at every pause of whether the client is still there."""

    def __init__(
        self,
        touch: Callable[[], None],
        record: Record,
        script: Script,
        body: dict[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        self._touch = touch
        self._record = record
        self._script = script
        self._streamed = bool(body.get("stream"))
        self._wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._receive = receive
        self._send = send
        self._left = asyncio.Event()

    async def run(self) -> None:
        watcher = asyncio.create_task(self._watch())
        try:
            await self._answer()
            self._record.ended = True
        except _Left:
            self._record.disconnected = True
        except Cut:
            # An unfinished response makes uvicorn close the connection, which is what is wanted.
            self._record.ended = True
        finally:
            watcher.cancel()
            self._touch()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left.set()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(
                self._left.wait(), None if seconds == float("inf") else max(seconds, 0.0001)
            )
        except TimeoutError:
            return
        raise _Left

    async def _answer(self) -> None:
        mode = self._script.mode.name
        if overflow := self._script.overflow():
            await self._overflow(*overflow)
        elif mode == "silent":
            await self._pause(float("inf"))
        elif mode in REFUSALS:
            status, kind, content, headers = REFUSALS[mode](self._script)
            await self._whole(status, kind, content, headers)
        elif mode in CRUELTIES:
            await self._mistreat(CRUELTIES[mode](self._script))
        elif mode == "garbage":
            await self._garbage(self._script.option("kind", "json"))
        elif mode == "huge" and self._script.option("kind", "") == "line":
            await self._start("text/event-stream")
            while True:
                await self._pause(0)
                await self._write(b"x" * 65536)
                self._record.tokens += 1
        elif self._streamed:
            await self._stream()
        else:
            await self._complete()

    async def _stream(self) -> None:
        await self._start("text/event-stream")
        await self._chunk({"role": "assistant", "content": ""})
        async for thought in self._script.thoughts(self._pause):
            await self._chunk(thought)
        calls = self._script.calls()
        if calls and (before := self._script.option("before", "")):
            await self._token(before)
        for index, call in enumerate(calls):
            await self._call(index, call)
        if not calls:
            async for token in self._script.tokens(self._pause):
                await self._token(token)
        await self._chunk({}, self._script.finish)
        if self._wants_usage and self._script.option("usage", "on") != "off":
            await self._event({"choices": [], "usage": self._usage()})
        await self._write(b"data: [DONE]\n\n")
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _token(self, token: str) -> None:
        self._check_client()
        field = "refusal" if self._script.mode.name == "refusal" else "content"
        await self._chunk({field: token})
        self._counted()

    def _check_client(self) -> None:
        if self._left.is_set():
            raise _Left

    def _counted(self) -> None:
        self._record.tokens += 1
        self._touch()

    async def _whole_text(self) -> str:
        text = ""
        async for token in self._script.tokens(self._pause):
            text += token
            self._record.tokens += 1
        return text

    async def _call(self, index: int, call: dict[str, Any]) -> None:
        """A tool call in several deltas: its head with the first piece of its arguments, then the others."""
        arguments = arguments_of(call)
        size = -(-len(arguments) // self._script.option("pieces", 2)) or 1
        first, *rest = [arguments[at : at + size] for at in range(0, len(arguments), size)] or [""]
        head = {"name": call["name"], "arguments": first}
        name = self._call_id(index)
        await self._chunk(
            {"tool_calls": [{"index": index, "id": name, "type": "function", "function": head}]}
        )
        for piece in rest:
            await self._pause(self._script.option("interval", 0.0))
            await self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def _call_id(self, index: int) -> str:
        return f"{self._script.option('id', f'call_{self._record.number}')}_{index}"

    async def _complete(self) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls = self._script.calls()
        if calls:
            message["tool_calls"] = [
                {
                    "id": self._call_id(index),
                    "type": "function",
                    "function": {"name": call["name"], "arguments": arguments_of(call)},
                }
                for index, call in enumerate(calls)
            ]
        else:
            message["content"] = await self._whole_text()
        choice = {"index": 0, "message": message, "finish_reason": self._script.finish}
        answer = self._head("chat.completion") | {"choices": [choice], "usage": self._usage()}
        await self._whole(200, "application/json", json.dumps(answer), {})

    async def _overflow(self, kind: str, refusal: tuple[int, str, str, dict[str, str]]) -> None:
        status, media_type, content, headers = refusal
        if kind == "stream":
            media_type, content = "text/event-stream", f"data: {content}\n\n"
        await self._whole(status, media_type, content, headers)

    async def _garbage(self, kind: str) -> None:
        await self._start("text/event-stream")
        for part in GARBAGE[kind]:
            await self._write(part)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _mistreat(self, how: Mistreatment) -> None:
        headers = [(name.encode(), value.encode()) for name, value in how.headers]
        await self._send({"type": "http.response.start", "status": how.status, "headers": headers})
        for part in how.parts:
            await self._pause(0)
            await self._write(part)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        await self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    async def _event(self, event: dict[str, Any]) -> None:
        line = json.dumps(self._head("chat.completion.chunk") | event)
        await self._write(f"data: {line}\n\n".encode())

    def _head(self, kind: str) -> dict[str, Any]:
        created = int(self._record.began)
        return {
            "id": f"fake-{self._record.number}",
            "object": kind,
            "created": created,
            "model": self._record.model,
        }

    def _usage(self) -> dict[str, int]:
        asked = sum(len(tokens_of(str(message.get("content")))) for message in self._record.messages)
        spoken = self._record.tokens
        if (used := self._script.option("usage", "on")).isdecimal():
            asked = int(used)
        return {"prompt_tokens": asked, "completion_tokens": spoken, "total_tokens": asked + spoken}

    async def _start(self, kind: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        pairs = [(b"content-type", kind.encode())]
        pairs += [(key.encode(), value.encode()) for key, value in (headers or {}).items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def _write(self, content: bytes) -> None:
        await self._send({"type": "http.response.body", "body": content, "more_body": True})

    async def _whole(self, status: int, kind: str, content: str, headers: dict[str, str]) -> None:
        await self._start(kind, status, headers)
        await self._send({"type": "http.response.body", "body": content.encode(), "more_body": False})
