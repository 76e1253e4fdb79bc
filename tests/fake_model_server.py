"""The HTTP side of the fake model server: its routes, its mode, and the records of its requests."""

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.fake_model_exchange import Exchange, Record
from tests.fake_model_messages import MessagesExchange, chat_request
from tests.fake_model_script import Mode, Script, find_mode

# The last requests that are remembered; more than any test sends between two looks.
_RECORDS_MAX = 20_000


class Server:
    """The HTTP side: routes, records, modes."""

    def __init__(self) -> None:
        self._mode = Mode("normal")
        self._used: Counter[str] = Counter()
        self._records: deque[Record] = deque(maxlen=_RECORDS_MAX)
        self._requests = 0
        self._version = 0
        self._changed = asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", _Endpoint(self.chat)),
                Route("/v1/messages", _Endpoint(self.messages)),
                Route("/v1/models", self._models),
                Route("/fake/mode", self._set_mode, methods=["POST"]),
                Route("/fake/reset", self._reset, methods=["POST"]),
                Route("/fake/requests", self._show),
            ]
        )

    async def _models(self, _: HttpRequest) -> JSONResponse:
        return JSONResponse(
            {"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "tests"}]}
        )

    async def _set_mode(self, request: HttpRequest) -> JSONResponse:
        body = await request.json()
        self._mode = Mode(body["mode"], body["options"])
        self._used.clear()
        return JSONResponse({})

    async def _reset(self, _: HttpRequest) -> JSONResponse:
        self._mode = Mode("normal")
        self._used.clear()
        self._records.clear()
        return JSONResponse({})

    async def _show(self, request: HttpRequest) -> JSONResponse:
        """The records; with `after`, waits up to `timeout` seconds for something newer than that version."""
        after = int(request.query_params.get("after", -1))
        if after >= self._version:
            self._changed.clear()
            timeout = float(request.query_params.get("timeout", 1))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)
        return JSONResponse({"version": self._version, "requests": [asdict(r) for r in self._records]})

    def touch(self) -> None:
        self._version += 1
        self._changed.set()

    async def chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive)
        await self._exchange(Exchange, request, await request.json(), send)

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The Messages API of Anthropic; records have its requests in the form of the other one."""
        request = HttpRequest(scope, receive)
        await self._exchange(MessagesExchange, request, chat_request(await request.json()), send)

    async def _exchange(
        self, kind: type[Exchange], request: HttpRequest, body: dict[str, Any], send: Send
    ) -> None:
        mode = find_mode(body, self._mode)
        if "times" in mode.options:
            self._used[mode.counted_as] += 1
            if self._used[mode.counted_as] > int(mode.options["times"]):
                mode = Mode("normal")
        self._requests += 1
        record = Record(
            number=self._requests,
            began=time.time(),
            model=str(body.get("model")),
            mode=mode.name,
            messages=body.get("messages", []),
            tools=[tool["function"]["name"] for tool in body.get("tools", [])],
            key=request.headers.get("authorization", "").removeprefix("Bearer "),
            port=request.client.port if request.client else 0,
        )
        self._records.append(record)
        self.touch()
        await kind(self.touch, record, Script(mode, body), body, request.receive, send).run()


class _Endpoint:
    """A raw ASGI endpoint: an object, so that Starlette hands it the connection itself."""

    def __init__(self, serve: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)
